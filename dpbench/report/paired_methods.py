"""The methods of one's own trials against the best of each cell, by differences of the same runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpbench.contracts import TextTable
from dpbench.errors import UserError
from dpbench.grid.records import Trial
from dpbench.report.claims.statements import paired_outcome
from dpbench.report.frames.frame import LEVEL, trial_frame
from dpbench.report.text import number

HEADER = ["data set", "ε", "metric", "method", "mean", "minus the best", "interval", "pairs", "verdict"]
BEST, WORSE, OPEN, ALONE = "best mean", "worse", "cannot tell", "no pairs"
CELL = ["dataset", "panel", "epsilon", "delta", "metric"]
RULE = (
    f"A method is worse where the {100 * LEVEL:.0f} % interval (Student's t) of its paired differences from the method "
    "with the best mean of its cell excludes 0: pairs have the same data set, split and repetition. The best is chosen "
    "by the same trials, and no level is corrected for the number of comparisons. Trials without a finite score are "
    "left out of the pairs."
)


def methods_table(trials: Iterable[Trial]) -> TextTable:
    """Of each data set, epsilon and metric that has a direction, the methods with their differences from the best.

    Raises `UserError` if no cell has two methods.
    """
    frame = trial_frame(trials, by=["release.seed"])
    frame = frame[frame["direction"].isin(["lower", "higher"]) & np.isfinite(frame["epsilon"])]
    parts = ("mechanism", "calibration", "model", "variant")
    frame = frame.assign(method=list(map(method_name, *(frame[part] for part in parts))))
    found = [_cell(cell) for _, cell in frame.groupby(CELL) if cell["method"].nunique() > 1]
    if not found:
        raise UserError("no data set was run with two methods at the same epsilon: there is nothing to compare")
    tidy = pd.concat(found, ignore_index=True)
    rows = [
        [row["dataset"], number(row["epsilon"]), row["metric"], row["method"], f"{row['mean']:.4g}", *_texts(row)]
        for row in tidy.to_dict("records")
    ]
    return TextTable(HEADER, rows, [RULE], tidy)


def method_name(mechanism: str, calibration: str, model: str, variant: str) -> str:
    """A method as tables of a terminal name it.

    >>> method_name("aim", "tight", "linear_rows", "")
    'aim (tight)/linear_rows'
    """
    own = f" ({calibration})" if calibration else ""
    return f"{mechanism}{own}/{model}{f', {variant}' if variant else ''}"


def _cell(cell: pd.DataFrame) -> pd.DataFrame:
    """A row for each method of a cell, the best first."""
    lower = cell["direction"].iloc[0] == "lower"
    finite = cell.assign(value=cell["value"].where(np.isfinite(cell["value"])))
    runs = finite.pivot_table(index=["release.seed", "repetition"], columns="method", values="value", dropna=False)
    means = runs.mean().sort_values(ascending=lower)
    best = runs[means.index[0]]
    rows = []
    for method, mean in means.items():
        paired = paired_outcome((best - runs[method]) * (1 if lower else -1), "better", 0.0)
        sign = -1 if lower else 1
        ends = sorted([sign * paired["low"], sign * paired["high"]])
        numbers = {"difference": sign * paired["difference"], "low": ends[0], "high": ends[1], "pairs": paired["pairs"]}
        verdict = WORSE if paired["high"] < 0 else OPEN if paired["pairs"] > 1 else ALONE
        rows.append({"method": method, "mean": mean, **numbers, "verdict": verdict})
    rows[0]["verdict"] = BEST
    return pd.DataFrame(rows).assign(**{name: cell[name].iloc[0] for name in CELL})


def _texts(row: Mapping[Hashable, Any]) -> list[str]:
    if row["verdict"] == BEST:
        return ["", "", str(row["pairs"]), BEST]
    return [
        f"{row['difference']:.4g}",
        f"{row['low']:.2g} to {row['high']:.2g}",
        str(row["pairs"]),
        str(row["verdict"]),
    ]
