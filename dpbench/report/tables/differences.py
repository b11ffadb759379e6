"""The effect of a setting or a method: paired differences of a metric over the repetitions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.errors import check_known
from dpbench.privacy.budget import CALIBRATIONS
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.frame import LEVEL, has_value, reach
from dpbench.report.frames.series import declared_titles, mark_series, series_of, without_variant
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import mean_and_error, number

KEYS = ["row", "series_order", "series", "x", "repetition"]
STATISTICS = {"mean": "mean ± standard error", "mean_95": "mean with its 95 % interval (Student's t)"}


def difference_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
) -> TextTable:
    """Mean paired difference of `spec["metric"]`: where `setting` has the first of two `values`, minus the second.

    A row for each data set and series, a column for each number of the setting `x`. Repetitions, which share their
    splits, are pairs where both have a value. `spec` has metric, x, setting, values and perhaps statistic, "mean" (the
    default), with standard errors, or "mean_95", with 95 % intervals; `panels` maps data sets to titles, in their
    order; `where` is as for `metric_by_setting`. Papers publish no such differences: `published` is not used.
    """
    first, second = spec["values"]
    rows = _with_values(frame, labels, spec)
    rows = rows[np.isfinite(rows["x"])]
    parts = [rows[rows[spec["setting"]] == value] for value in (first, second)]
    one, other = (part.groupby(KEYS)["value"].mean() for part in parts)
    pairs = (one - other).dropna().rename("value").reset_index()
    trials = pd.concat(part.merge(pairs[KEYS], on=KEYS) for part in parts)
    return _table(pairs, trials, f"at {spec['setting']} = {first} minus that at {second}", frame, labels, spec)


def method_difference_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
) -> TextTable:
    """Mean paired difference of `spec["metric"]` from that of another method; as `difference_table`, except for `less`:

    the label of a method, at the same `x`, and under the same calibration if it has any; that label and a calibration,
    as "AIM (tight)", for that one alone; or a mechanism, for the same model on its release. A method without `x`, such
    as one without noise, is compared at each.

    Raises `UserError` for one that does not exist.
    """
    less, mechanisms = str(spec["less"]), {method.partition("/")[0] for method in labels}
    calibrated = {
        f"{label} ({calibration})": (label, calibration) for label in labels.values() for calibration in CALIBRATIONS
    }
    label, calibration = calibrated.get(less, (less, None))
    check_known("method or mechanism", label, {*labels.values(), *mechanisms})
    rows = _with_values(frame, labels, spec)
    if label in mechanisms:
        is_other, same, said = rows["mechanism"] == label, ["model"], f"minus that of the same model on {label}"
    else:
        is_other, same = (rows["mechanism"] + "/" + rows["model"]).map(dict(labels)) == label, []
        said = f"minus that of {less}"
    if calibration is not None:
        is_other &= rows["calibration"] == calibration
    other, rows = rows[is_other], rows[~is_other & np.isfinite(rows["x"])]
    same += ["x"] if np.isfinite(other["x"]).any() else []
    same += ["calibration"] if calibration is None and (other["calibration"] != "").any() else []
    on = ["row", "repetition", *same]
    pairs = rows.merge(other.groupby(on)["value"].mean().rename("other").reset_index(), on=on)
    others = pairs[list(dict.fromkeys([*KEYS, *on]))].merge(other[[*on, "trial"]], on=on)
    pairs = pairs.assign(value=pairs["value"] - pairs["other"])
    return _table(pairs, pd.concat([pairs, others]), said, frame, labels, spec)


def _with_values(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec) -> pd.DataFrame:
    """The rows of the metric that have a value, with their series and, as `row`, their panel."""
    rows = frame[frame["metric"] == spec["metric"]]
    marked = mark_series(rows, series_of(rows, labels)).assign(row=rows["panel"])
    return marked[has_value(marked)]


def _table(
    pairs: pd.DataFrame,
    trials: pd.DataFrame,
    said: str,
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    spec: Spec,
) -> TextTable:
    """The table of differences (`value`), described by `said`; `trials` has the trials of both sides of each."""
    statistic = str(spec.get("statistic") or "mean")
    check_known("statistic", statistic, STATISTICS)
    rows, titles, cells = frame[frame["metric"] == spec["metric"]], declared_titles(spec), _cells(pairs)
    order = [*titles, *sorted(set(cells["row"]) - set(titles))]
    columns = sorted(cells["x"].unique())
    lines, keys = [], []
    for name in (name for name in order if (cells["row"] == name).any()):
        here = cells[cells["row"] == name]
        for series in dict.fromkeys(here["series"]):
            texts = {row["x"]: _text(row, statistic) for _, row in here[here["series"] == series].iterrows()}
            keys.append((name, series))
            lines.append([titles.get(name, name), series, *(texts.get(x, NOT_RUN) for x in columns)])
    below = [
        f"Cells: {spec['metric']} {said}, {STATISTICS[statistic]} of the paired differences (pairs)",
        *_summary(cells),
        *sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), series_of(rows, labels)),
    ]
    tidy = cells.assign(row=[titles.get(name, name) for name in cells["row"]])
    places = trials_at(trials, ["row", "series"], "x", keys, [None, None, *columns])
    return TextTable(["", "", *map(number, columns)], lines, below, tidy, places)


def _cells(pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard error, half of the 95 % interval and count of each row, series and x, in the series' order."""
    cells = pairs.groupby(KEYS[:-1])["value"].agg(["mean", "sem", "count"]).rename(columns={"sem": "se"})
    cells["half"] = reach(cells["count"]) * cells["se"]
    tidy: pd.DataFrame = cells.reset_index().drop(columns=["series_order"])
    return tidy


def _text(cell: pd.Series, statistic: str) -> str:
    error = cell["se" if statistic == "mean" else "half"]
    return f"{mean_and_error(cell['mean'], error)} ({cell['count']:.0f})"


def _summary(cells: pd.DataFrame) -> list[str]:
    """A summary of the cells: their mean, and in how many the interval excludes 0, also for each method."""
    if cells.empty:
        return ["No repetition has both values"]
    above, below = (sign * cells["mean"] > cells["half"] for sign in (1, -1))
    sentences = [
        f"Mean of all {len(cells)} cells: {cells['mean'].mean():.2g}; their Student's interval of {100 * LEVEL:.0f} % "
        f"lies above 0 in {above.sum()}, below 0 in {below.sum()}"
    ]
    methods = without_variant(cells["series"])
    each = [
        f"{method} {above[own].sum()} above, {below[own].sum()} below, of {own.sum()}"
        for method, own in ((method, methods == method) for method in dict.fromkeys(methods))
    ]
    return sentences + ["By method: " + "; ".join(each)] * (1 < len(each) < len(cells))
