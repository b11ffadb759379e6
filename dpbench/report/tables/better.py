"""On how many data sets a method is better than the trivial answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.frame import LEVEL, has_value, reach
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import number

TIDY = ["epsilon", "series", "better", "worse", "datasets", "without_value", "runs"]
CELL = ["epsilon", "series_order"]


def better_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """On how many data sets the mean of `spec["metric"]` is better than `spec["level"]`, and on how many worse, by the
    95 % interval of the mean (Student's t): a row for each private series, that better on most on top, a column for
    each epsilon.

    The level is the trivial answer's score, such as 0 of `gain_kept`, or 1 where `spec["relative"]` divides by that
    answer's score on the same split. A run without a value counts as the trivial answer. A paper publishes no such
    counts: `published` is not read.
    """
    rows = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    known, titles = series_of(rows, labels), declared_titles(spec)
    marked = mark_series(rows, known)
    means = judged(marked, float(spec["level"]))
    found = means.groupby(CELL)[["better", "worse", "datasets", "without", "runs"]].sum()
    order = list(found["better"].groupby("series_order").sum().sort_values(ascending=False, kind="stable").index)
    epsilons = sorted(rows["epsilon"].unique())
    cells = dict(zip(found.index, found.to_dict("records"), strict=True))
    lines = [[known[place].label, *(_text(cells.get((epsilon, place))) for epsilon in epsilons)] for place in order]
    below = [
        about_level(spec, "data sets on"),
        *(sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []),
    ]
    tidy = found.reset_index().rename(columns={"without": "without_value"})
    tidy = tidy.assign(series=[known[place].label for place in tidy["series_order"]])[TIDY]
    trials = trials_at(marked, ["series_order"], "epsilon", [(place,) for place in order], [None, *epsilons])
    return TextTable(["", *(f"ε = {number(epsilon)}" for epsilon in epsilons)], lines, below, tidy, trials)


def about_level(spec: Spec, cases: str = "pairs of a data set and an ε at") -> str:
    """The sentence on what cells count, and how."""
    return (
        f"Cells: the number of {cases} which {compared(spec)}, by its {100 * LEVEL:.0f} % interval (Student's t), the "
        "number where it is worse, and of how many. A run without a value counts as the trivial answer"
    )


def compared(spec: Spec) -> str:
    """Such as "the mean of mse is better than 0.2"."""
    about = ", divided by that of the trivial answer on the same split," if spec.get("relative") else ""
    return f"the mean of {spec['metric']}{about} is better than {number(float(spec['level']))}"


def judged(marked: pd.DataFrame, level: float) -> pd.DataFrame:
    """Whether the mean of a method's values is `better` than this level, or `worse`, by its interval: a row for each
    series, epsilon and data set. A run without a value counts as the level.
    """
    valued, sign = has_value(marked), -1.0 if (marked["direction"] == "lower").any() else 1.0
    values = marked.assign(without=~valued, value=sign * (marked["value"].where(valued, level) - level))
    means = values.groupby([*CELL, "dataset"]).agg(
        mean=("value", "mean"), se=("value", "sem"), runs=("value", "size"), without=("without", "sum")
    )
    half = means["se"] * reach(means["runs"])
    return means.assign(better=means["mean"] > half, worse=means["mean"] < -half, datasets=1)


def _text(cell: Mapping[str, int] | None) -> str:
    return NOT_RUN if cell is None else f"{cell['better']} better, {cell['worse']} worse, of {cell['datasets']}"
