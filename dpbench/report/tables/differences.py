"""What a setting or a method is worth: a metric less the same at another one, repetition by repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpbench.contracts import TextTable
from dpbench.errors import UserError, check_known
from dpbench.report.claims.statements import LEVEL
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.panels import declared_titles
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import has_value
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.text import mean_and_error, number

KEYS = ["row", "series_order", "series", "x", "repetition"]
TOLD = {"mean": "mean ± standard error", "mean_95": "mean with its 95 % interval (Student's t)"}


def difference_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], published: Mapping[str, Any]
) -> TextTable:
    """Mean paired difference of `spec["metric"]`: from another value of a setting, or from another method.

    A row for each data set and series, a column for each number of the setting `x`. Repetitions, which share their
    splits, are pairs where both have a value. `spec` has one of

    - setting, values: where the setting has the first of two values, less where it has the second
    - less: the label of a method, less that method at the same `x`, and under the same calibration if it has any; or
      a mechanism, less the same model on its release. What has no `x`, such as no noise, is held against each

    and perhaps statistic, "mean" (the default), with standard errors, or "mean_95", with 95 % intervals. `panels` maps
    data sets to titles, in their order; `where` is as for `metric_by_setting`. A paper publishes no such differences:
    `published` is not read.

    Raises `UserError` for a spec that has both or neither.
    """
    if ("less" in spec) == ("setting" in spec and "values" in spec):
        raise UserError(f"{spec['name']}: a difference_table needs either setting and values, or less")
    statistic = str(spec.get("statistic") or "mean")
    check_known("statistic", statistic, TOLD)
    rows = frame[frame["metric"] == spec["metric"]]
    titles = declared_titles(spec)
    marked = mark_series(rows, series_of(rows, labels)).assign(row=rows["panel"])
    marked = marked[has_value(marked)]
    if "less" in spec:
        pairs, said = _from_method(marked, labels, str(spec["less"]))
    else:
        first, second = spec["values"]
        pairs = _from_setting(marked, str(spec["setting"]), first, second)
        said = f"at {spec['setting']} = {first} less that at {second}"
    cells = _cells(pairs)
    order = [*titles, *sorted(set(cells["row"]) - set(titles))]
    columns = sorted(cells["x"].unique())
    lines = []
    for name in (name for name in order if (cells["row"] == name).any()):
        here = cells[cells["row"] == name]
        for series in dict.fromkeys(here["series"]):
            texts = {row["x"]: _text(row, statistic) for _, row in here[here["series"] == series].iterrows()}
            lines.append([titles.get(name, name), series, *(texts.get(x, NOT_RUN) for x in columns)])
    below = [
        f"Cells: {spec['metric']} {said}, {TOLD[statistic]} of the paired differences (pairs)",
        *_summary(cells),
        *sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), series_of(rows, labels)),
    ]
    tidy = cells.assign(row=[titles.get(name, name) for name in cells["row"]])
    return TextTable(["", "", *map(number, columns)], lines, below, tidy)


def _from_setting(rows: pd.DataFrame, setting: str, one: Any, other: Any) -> pd.DataFrame:
    """The differences, as `value`, of the rows where a setting has one value from those where it has the other."""
    rows = rows[np.isfinite(rows["x"])]
    first, second = (rows[rows[setting] == value].groupby(KEYS)["value"].mean() for value in (one, other))
    pairs: pd.DataFrame = (first - second).dropna().rename("value").reset_index()
    return pairs


def _from_method(rows: pd.DataFrame, labels: Mapping[str, str], less: str) -> tuple[pd.DataFrame, str]:
    """The differences, as `value`, of the other methods from this one, and how a reader is told."""
    mechanisms = {method.partition("/")[0] for method in labels}
    check_known("method or mechanism", less, {*labels.values(), *mechanisms})
    if less in mechanisms:
        is_other, same, said = rows["mechanism"] == less, ["model"], f"less that of the same model on {less}"
    else:
        is_other, same = (rows["mechanism"] + "/" + rows["model"]).map(dict(labels)) == less, []
        said = f"less that of {less}"
    other, rows = rows[is_other], rows[~is_other & np.isfinite(rows["x"])]
    same += ["x"] if np.isfinite(other["x"]).any() else []
    same += ["calibration"] if (other["calibration"] != "").any() else []
    on = ["row", "repetition", *same]
    pairs = rows.merge(other.groupby(on)["value"].mean().rename("other").reset_index(), on=on)
    return pairs.assign(value=pairs["value"] - pairs["other"]), said


def _cells(pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard error, half of the 95 % interval and count of each row, series and x, in the series' order."""
    cells = pairs.groupby(KEYS[:-1])["value"].agg(["mean", "sem", "count"]).rename(columns={"sem": "se"})
    cells["half"] = stdtrit((cells["count"] - 1).clip(lower=1), (1 + LEVEL) / 2) * cells["se"]
    tidy: pd.DataFrame = cells.reset_index().drop(columns=["series_order"])
    return tidy


def _text(cell: pd.Series, statistic: str) -> str:
    error = cell["se" if statistic == "mean" else "half"]
    return f"{mean_and_error(cell['mean'], error)} ({cell['count']:.0f})"


def _summary(cells: pd.DataFrame) -> list[str]:
    """What the cells come to: their mean, and in how many an interval leaves 0 out."""
    if cells.empty:
        return ["No repetition has a value at both"]
    above, below = ((sign * cells["mean"] > cells["half"]).sum() for sign in (1, -1))
    return [
        f"Mean of all {len(cells)} cells: {cells['mean'].mean():.2g}; their Student's interval of {100 * LEVEL:.0f} % "
        f"lies above 0 in {above}, below 0 in {below}"
    ]
