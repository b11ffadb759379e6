"""Two sets of trials cell by cell: the differences of their scores, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpbench.errors import UserError
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.frames.frame import LEVEL, TrialRows, rows_of
from dpbench.report.frames.settings import leaves_of, series_group, variants

EQUAL, GONE, DIFFERS = "equal", "values missing in the second", "differs"
ROUNDED = "equal but for rounding"
HELD, BROKEN, IMPRECISE = "within the tolerance", "beyond the tolerance", "not precise enough"
MIXED = "several versions of the code"
VERDICTS = (GONE, BROKEN, IMPRECISE, MIXED, DIFFERS, HELD, ROUNDED, EQUAL)  # in the order in which they are shown
_SCORE, _RUN = ["cell", "metric"], ["cell", "seed", "repetition"]
_ASIDE = ["equal", "rounded", "gone"]
ROUNDING = 1e-9  # relative: what another processor or library may change


@dataclass(frozen=True)
class Comparison:
    """`cells`: a row for each metric of each cell that both sets have, with its `verdict`.

    `first_only`, `second_only`: how many cells are in one of them alone. `unpaired`: how many trials of each set, in
    the cells of both, have no trial of their seed and repetition in the other.
    """

    cells: pd.DataFrame
    first_only: int
    second_only: int
    unpaired: tuple[int, int]


def compare_trials(first: Sequence[Trial], second: Sequence[Trial], tolerance: float | None = None) -> Comparison:
    """The mean of each metric in the second set minus that in the first, with its interval of level `LEVEL`.

    A cell holds the trials with the same settings except seed and repetition, by any version of the code. Where seed
    and repetition are in both, trials saw the same split, and the interval is that of their paired differences
    (Student's t); cells with different seeds have no pairs, and get Welch's interval. A trial without a finite score
    has no value.

    The verdict is `EQUAL` where all pairs are equal, and `GONE` where the second lacks a value that the first has in
    the same pair, or has none at all. It is `MIXED` where several versions of the code made the cell of one set: they
    are not averaged, and there are no means. For the others, with a `tolerance` (a fraction of the first mean), the
    verdict says whether the interval lies within it or beyond it; without one it is `ROUNDED` where no pair differs by
    more than `ROUNDING`.

    Raises `UserError` if no cell is in both.
    """
    rows = rows_of(first), rows_of(second)
    names = [[_cell(key) for key in one.keys] for one in rows]
    keys = dict(zip([*names[0], *names[1]], [*rows[0].keys, *rows[1].keys], strict=True))
    here, there = (set(own) for own in names)
    both = here & there
    if not both:
        raise UserError("the two sets have no cell in common: no trial of one has the settings of a trial of the other")
    values = [_values(part, own, both) for part, own in zip(rows, names, strict=True)]
    cells = _differences(*values)
    mixed = _mixed(rows[0].keys, names[0]) | _mixed(rows[1].keys, names[1])
    cells["verdict"] = _verdicts(cells, tolerance, cells["cell"].isin(mixed))
    cells.loc[cells["verdict"] == MIXED, ["first", "second", "difference", "low", "high"]] = np.nan
    shared = [keys[name] for name in sorted(both)]
    labels = pd.DataFrame(_labels(shared), index=sorted(both))
    cells = cells.join(labels, on="cell")
    order = cells["verdict"].map(VERDICTS.index)
    cells = cells.assign(order=order).sort_values(["order", *labels.columns, "metric"], ignore_index=True)
    runs, others = (set(one[_RUN].drop_duplicates().itertuples(index=False, name=None)) for one in values)
    unpaired = len(runs - others), len(others - runs)
    return Comparison(cells.drop(columns=["order", *_ASIDE]), len(here - there), len(there - here), unpaired)


def _cell(key: TrialKey) -> str:
    """The settings that all repetitions of a trial share, by any version of the code."""
    release = replace(key.release, repetition=0, seed=0)
    return TrialKey(replace(key.fit, release=release), key.metrics).unversioned().id


def _mixed(keys: Sequence[TrialKey], names: Sequence[str]) -> set[str]:
    """The cells that several versions of the code made."""
    made: dict[str, set[str]] = {}
    for key, name in zip(keys, names, strict=True):
        release = replace(key.release, repetition=0, seed=0)
        made.setdefault(name, set()).add(TrialKey(replace(key.fit, release=release), key.metrics).id)
    return {name for name, versions in made.items() if len(versions) > 1}


def _labels(keys: Sequence[TrialKey]) -> list[dict[str, object]]:
    texts = variants(keys, [leaves_of(key) for key in keys], [])
    groups = (
        dict(zip(("dataset", "mechanism", "calibration", "model"), series_group(key), strict=True)) for key in keys
    )
    return [
        {**group, "variant": variant, "epsilon": key.release.budget.epsilon, "delta": key.release.budget.delta}
        for group, variant, key in zip(groups, texts, keys, strict=True)
    ]


def _values(rows: TrialRows, names: Sequence[str], kept: set[str]) -> pd.DataFrame:
    """`value` by cell, metric, seed and repetition; NaN where there is no finite score."""
    place = rows.scores["setting"].to_numpy()
    seeds = np.array([key.release.seed for key in rows.keys])[place]
    value = rows.scores["value"].where(np.isfinite(rows.scores["value"]))
    scores = rows.scores.assign(cell=np.array(names)[place], seed=seeds, value=value)
    run = [*_SCORE, "seed", "repetition"]
    return scores.loc[scores["cell"].isin(kept), [*run, "value"]].drop_duplicates([*run, "value"])


def _differences(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """A row for each score of a cell: means, their difference with its interval, the pairs (0: no trial is in both).

    `equal`, `rounded`: whether all pairs are, or are but for rounding; `gone`: whether the second lacks values that the
    first has.
    """
    pairs = first.merge(second, on=[*_SCORE, "seed", "repetition"], suffixes=("_first", "_second"))
    values = pairs[["value_first", "value_second"]].set_axis(["first", "second"], axis=1)
    complete = values.where(values.notna().all(axis=1))  # of both, or of neither
    same = values["first"].eq(values["second"]) | values.isna().all(axis=1)
    near = (values["first"] - values["second"]).abs() <= ROUNDING * values.abs().max(axis=1)
    lost = values["first"].notna() & values["second"].isna()
    marked = (
        pairs[_SCORE]
        .join(complete)
        .assign(difference=complete["second"] - complete["first"], equal=same, rounded=same | near, lost=lost)
    )
    of_pairs = marked.groupby(_SCORE).agg(
        first=("first", "mean"),
        second=("second", "mean"),
        error=("difference", "sem"),
        pairs=("difference", "count"),
        equal=("equal", "all"),
        rounded=("rounded", "all"),
        lost=("lost", "any"),
    )
    one, other = (frame.groupby(_SCORE)["value"].agg(["mean", "sem", "count"]) for frame in (first, second))
    found = one.add_suffix("_first").join(other.add_suffix("_second"), how="inner").join(of_pairs)
    paired = found["pairs"].notna()
    parts = [found["sem_first"] ** 2, found["sem_second"] ** 2]
    spread = parts[0] ** 2 / (found["count_first"] - 1) + parts[1] ** 2 / (found["count_second"] - 1)
    first_mean = found["first"].where(paired, found["mean_first"])
    second_mean = found["second"].where(paired, found["mean_second"])
    error = found["error"].where(paired, np.sqrt(parts[0] + parts[1]))
    freedom = (found["pairs"] - 1).where(paired, (parts[0] + parts[1]) ** 2 / spread)
    half = (stdtrit(freedom, (1 + LEVEL) / 2) * error).where(error != 0, 0.0)  # no spread, no degrees of freedom
    difference = second_mean - first_mean
    cells = pd.DataFrame(
        {
            "first": first_mean,
            "second": second_mean,
            "difference": difference,
            "low": difference - half,
            "high": difference + half,
            "pairs": found["pairs"].fillna(0).astype("int64"),
            "equal": found["equal"].eq(True),
            "rounded": found["rounded"].eq(True),
            "gone": found["lost"].eq(True) | ((found["count_first"] > 0) & (found["count_second"] == 0)),
        }
    )
    return cells.reset_index()


def _verdicts(cells: pd.DataFrame, tolerance: float | None, mixed: pd.Series) -> np.ndarray[Any, Any]:
    first, verdicts = [cells["equal"], cells["gone"], mixed], [EQUAL, GONE, MIXED]
    if tolerance is None:
        return np.select([*first, cells["rounded"]], [*verdicts, ROUNDED], DIFFERS)
    bound, low, high = tolerance * cells["first"].abs(), cells["low"], cells["high"]
    within, beyond = (-bound <= low) & (high <= bound), (low > bound) | (high < -bound)
    return np.select([*first, within, beyond], [*verdicts, HELD, BROKEN], IMPRECISE)
