"""The mean ranks behind a figure of them, with places and the critical difference (Demšar 2006, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.report.figures.mean_ranks import (
    DELTAS,
    NEMENYI,
    RANKED,
    SAMPLES,
    counted,
    friedman_sentence,
    ranks_of,
    without_rank,
)
from dpbench.report.footnotes import listed, sweep_footnotes
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import number

COLUMNS = ("mean rank", "best", "first")  # of each epsilon
CRITICAL = "critical difference"
TIDY = [
    "epsilon", "series", "mean_rank", "critical_difference", "best", "second", "first", "first_without_one", "datasets",
    "friedman_p",
]  # fmt: skip
CAPTION = (
    f"{RANKED}. best: the number of data sets on which the method is; ties share it. first: the part of {SAMPLES:,} "
    "bootstrap samples of the data sets in which it has the least mean rank. "
    f"Where mean ranks differ by more than the critical difference, {NEMENYI}"
)


def mean_ranks_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
) -> TextTable:
    """Mean rank by `spec["metric"]` of each private series, one row per series, the best on top, and for each epsilon
    the columns of `COLUMNS`; the last row is the critical difference of the mean ranks.

    Ranks are those of the figure `mean_ranks`. A paper publishes none: `published` is not read.
    """
    rows = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    known, titles = series_of(rows, labels), declared_titles(spec)
    parts = [(float(str(epsilon)), here) for epsilon, here in mark_series(rows, known).groupby("epsilon")]
    ranked = [ranks_of(here).assign(epsilon=epsilon) for epsilon, here in parts]
    found = pd.concat(ranked, ignore_index=True) if ranked else pd.DataFrame(columns=["series_order", *TIDY])
    mean = found.groupby("series_order")["mean_rank"].mean()
    order = list(mean.sort_values(kind="stable").index)
    cells = {(row["series_order"], row["epsilon"]): row for row in found.to_dict("records")}
    lines = [
        [known[place].label, *(text for epsilon, _ in parts for text in _texts(cells.get((place, epsilon))))]
        for place in order
    ]
    if ranked:
        reach = (ranks["critical_difference"].iloc[0] for ranks in ranked)
        lines.append([CRITICAL, *(text for value in reach for text in (_text(value), "", ""))])
    below = [CAPTION, *map(friedman_sentence, ranked), *map(_without_one, ranked)]
    below += without_rank([here for _, here in parts])
    below += [DELTAS] if (rows.groupby("dataset")["delta"].nunique() > 1).any() else []
    below += sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if ranked else []
    header = ["", *(f"{column}, ε = {number(epsilon)}" for epsilon, _ in parts for column in COLUMNS)]
    return TextTable(header, lines, below, found[TIDY], _trials(parts, order))


def _without_one(ranks: pd.DataFrame) -> str:
    """Which methods are first without a data set, and how many data sets that is true of."""
    own = ranks[ranks["first_without_one"] > 0].sort_values("first_without_one", ascending=False, kind="stable")
    names = [f"{series} ({count})" for series, count in zip(own["series"], own["first_without_one"], strict=True)]
    where = f"ε = {number(ranks['epsilon'].iloc[0])}"
    return f"{where}: leaving out one data set at a time, first is {listed(names)}" if names else ""


def _trials(parts: Sequence[tuple[float, pd.DataFrame]], order: Sequence[int]) -> dict[tuple[int, int], list[str]]:
    """The trials of each series at each epsilon, on the data sets that count: its three numbers come from them."""
    if not parts:
        return {}
    rows = pd.concat([counted(here) for _, here in parts])
    columns = [None, *(at for epsilon, _ in parts for at in (epsilon, None, None))]
    found = trials_at(rows, ["series_order"], "epsilon", [(place,) for place in order], columns)
    return {(row, column + more): own for (row, column), own in found.items() for more in range(len(COLUMNS))}


def _texts(ranks: Mapping[Any, Any] | None) -> list[str]:
    """The cells of a series at an epsilon."""
    if ranks is None or not ranks["datasets"]:
        return [NOT_RUN if ranks is None else "no data set", "", ""]
    return [_text(ranks["mean_rank"]), str(ranks["best"]), f"{100 * ranks['first']:.0f} %"]


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
