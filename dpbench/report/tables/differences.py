"""What a setting is worth: a metric at one of its values less the same at another, repetition by repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpbench.contracts import TextTable
from dpbench.report.claims.statements import LEVEL
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.panels import declared_titles
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import has_value
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.text import mean_and_error, number


def difference_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], published: Mapping[str, Any]
) -> TextTable:
    """Mean paired difference of `spec["metric"]`: where `setting` has the first of two `values`, less the second.

    A row for each data set and series, a column for each number of the setting `x`. Repetitions, which share their
    splits, are pairs where both have a value. `panels` maps data sets to titles, in their order; `where` is as for
    `metric_by_setting`. A paper publishes no such differences: `published` is not read.
    """
    rows = frame[frame["metric"] == spec["metric"]]
    titles = declared_titles(spec)
    cells = _cells(rows, labels, str(spec["setting"]), list(spec["values"]))
    order = [*titles, *sorted(set(cells["row"]) - set(titles))]
    columns = sorted(cells["x"].unique())
    lines = []
    for name in (name for name in order if (cells["row"] == name).any()):
        here = cells[cells["row"] == name]
        for series in dict.fromkeys(here["series"]):
            texts = {row["x"]: _text(row) for _, row in here[here["series"] == series].iterrows()}
            lines.append([titles.get(name, name), series, *(texts.get(x, NOT_RUN) for x in columns)])
    below = [
        "Cells: {metric} at {setting} = {0} less that at {1}, mean ± standard error of the paired differences "
        "(pairs)".format(*spec["values"], metric=spec["metric"], setting=spec["setting"]),
        *_summary(cells),
        *sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), series_of(rows, labels)),
    ]
    tidy = cells.assign(row=[titles.get(name, name) for name in cells["row"]])
    return TextTable(["", "", *map(number, columns)], lines, below, tidy)


def _cells(rows: pd.DataFrame, labels: Mapping[str, str], setting: str, values: list[Any]) -> pd.DataFrame:
    """Mean, standard error and count of the differences of each row, series and x, in the order of the series."""
    marked = mark_series(rows, series_of(rows, labels)).assign(row=rows["panel"])
    marked = marked[has_value(marked) & np.isfinite(marked["x"])]
    keys = ["row", "series_order", "series", "x", "repetition"]
    first, second = (marked[marked[setting] == value].groupby(keys)["value"].mean() for value in values)
    pairs = (first - second).dropna().rename("value").reset_index()
    cells = pairs.groupby(keys[:-1])["value"].agg(["mean", "sem", "count"]).rename(columns={"sem": "se"})
    tidy: pd.DataFrame = cells.reset_index().drop(columns=["series_order"])
    return tidy


def _text(cell: pd.Series) -> str:
    return f"{mean_and_error(cell['mean'], cell['se'])} ({cell['count']:.0f})"


def _summary(cells: pd.DataFrame) -> list[str]:
    """What the cells come to: their mean, and in how many an interval leaves 0 out."""
    if cells.empty:
        return ["No repetition has a value at both"]
    half = stdtrit(cells["count"] - 1, (1 + LEVEL) / 2) * cells["se"]
    above, below = ((sign * cells["mean"] > half).sum() for sign in (1, -1))
    return [
        f"Mean of all {len(cells)} cells: {cells['mean'].mean():.2g}; their Student's interval of {100 * LEVEL:.0f} % "
        f"lies above 0 in {above}, below 0 in {below}"
    ]
