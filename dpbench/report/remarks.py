"""What stands under every figure and table: the data, the budget, and whatever a reader must not overlook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from dpbench.report.frame import SERIES
from dpbench.report.series import Series, mark_series
from dpbench.report.stats import summarise
from dpbench.report.text import number

_SLACK = 1.001  # spent and asked epsilon are called different beyond this ratio: accountants round


def remarks(frame: pd.DataFrame, known: Sequence[Series], notes: str = "") -> list[str]:
    """Sentences on rows of one metric: what was run, then failures, gaps, overspending, inputs, `notes`."""
    cells = mark_series(summarise(frame), known) if len(frame) else frame
    told = [*_data(frame), *_protocol(frame)]
    if len(cells):
        told += [*_failures(cells), *_gaps(cells), *_overspending(cells), *_inputs(frame, known)]
    return [*told, notes] if notes else told


def _data(frame: pd.DataFrame) -> list[str]:
    """The data sets with their rows. The split takes all rows there are, up to the number asked for."""
    columns = ("dataset", "train_rows", "test_rows")
    sizes = frame[list(columns)].drop_duplicates().sort_values(list(columns))
    rows = sizes.itertuples(index=False)
    return [f"{row.dataset}: up to {row.train_rows:,} training and {row.test_rows:,} test rows" for row in rows]


def _protocol(frame: pd.DataFrame) -> list[str]:
    private = frame[np.isfinite(frame["epsilon"])]
    told = []
    if len(private):
        told.append("δ = " + ", ".join(number(delta) for delta in sorted(private["delta"].dropna().unique())))
        told.append("Neighbours: " + ", ".join(sorted(set(private["relation"]) - {""})).replace("_", "/"))
    repetitions = frame["repetition"].nunique()
    told.append(f"Mean ± standard error of {repetitions} repetition" + ("s" if repetitions != 1 else ""))
    return [text for text in told if not text.endswith(": ")]


def _failures(cells: pd.DataFrame) -> list[str]:
    missing = cells["failed"] + cells["nonfinite"]
    counted = cells.assign(missing=missing, trials=missing + cells["count"])
    told = _by_series(counted, missing > 0, lambda row: f"{row['missing']} of {row['trials']}")
    return [f"No value (failed or not finite): {told}"] if told else []


def _gaps(cells: pd.DataFrame) -> list[str]:
    """Budgets at which a private series has no trial at all though another series of the data set has."""
    private = cells[np.isfinite(cells["epsilon"])]
    missing = []
    for _, panel in private.groupby(["dataset", "delta"], sort=True, dropna=False):
        budgets = sorted(panel["epsilon"].unique())
        for _, one in panel.groupby("series_order", sort=True):
            gaps = [number(budget) for budget in budgets if budget not in set(one["epsilon"])]
            missing += [f"{one['series'].iloc[0]} at ε = {', '.join(gaps)}"] if gaps else []
    return [f"Not run: {'; '.join(dict.fromkeys(missing))}"] if missing else []


def _overspending(cells: pd.DataFrame) -> list[str]:
    """Series whose ledger spent more than was asked for (printed constants that do not hold)."""
    over = cells["spent_epsilon"] > _SLACK * cells["epsilon"]
    told = _by_series(cells, over, lambda row: f"{row['spent_epsilon']:.2g}")
    return [f"Spent ε exceeds the asked ε: {told}"] if told else []


def _inputs(frame: pd.DataFrame, known: Sequence[Series]) -> list[str]:
    used = frame[np.isfinite(frame["epsilon"]) & (frame["nonprivate_inputs"] != "")]
    if not len(used):
        return []
    rows = mark_series(used[[*SERIES, "nonprivate_inputs"]].drop_duplicates(), known).sort_values("series_order")
    told = [f"{row['series']}: {row['nonprivate_inputs']}" for _, row in rows.iterrows()]
    return [f"Non-private inputs: {'; '.join(dict.fromkeys(told))}"]


def _by_series(cells: pd.DataFrame, wanted: pd.Series[bool], say: Callable[[pd.Series], str]) -> str:
    """What `say` makes of each wanted cell, as "SSP (paper) 0.13 at ε = 0.1, 1.6 at ε = 1; AdaSSP ...".

    Data sets are named where not all of them agree.
    """
    datasets = sorted(cells["dataset"].unique())
    told: dict[str, dict[str, list[str]]] = {}
    for _, row in cells[wanted].sort_values(["series_order", "epsilon", "delta", "dataset"]).iterrows():
        parts = told.setdefault(str(row["series"]), {})
        parts.setdefault(f"{say(row)} at ε = {number(row['epsilon'])}", []).append(str(row["dataset"]))
    sentences = []
    for series, parts in told.items():
        places = {what: sorted(set(where)) for what, where in parts.items()}
        words = [what if where == datasets else f"{what} on {' and '.join(where)}" for what, where in places.items()]
        sentences.append(f"{series} {', '.join(words)}")
    return "; ".join(sentences)


def as_text(sentences: Iterable[str]) -> str:
    """The remarks in one paragraph."""
    return ". ".join(sentence.rstrip(".") for sentence in sentences) + "."
