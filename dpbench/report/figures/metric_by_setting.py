"""A metric against a setting, such as the number of rows, one line per series (BinAgg, Figures 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.lines import draw_lines, statistic_of
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.series import declared_titles, in_order, series_of
from dpbench.report.picture.picture import Picture

MODEL = "model.name"
SHOWN = {
    "mean": "Mean ± standard error",
    "mean_95": "Mean with its 95 % interval (Student's t)",
    "median": "Medians with bars from quartile to quartile",
}


def metric_by_setting(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """`spec["metric"]` against the setting `spec["x"]`: a panel per data set, a line per series.

    `frame` is `placed` by `spec`, which is as for `metric_by_epsilon`, and perhaps has

    - panel: the setting whose values have a panel each, in place of the data sets; `panels` maps them to titles
    - rates: {label: dotted name of a function of x}, curves of that shape, drawn from the first point on
    - where: {setting: value}, the only rows that are shown; those of a method without the setting are too
    - categories: {value of `x`: name}, for values that are words: they are side by side in this order, then the others,
      and no line joins them. Where `x` is model.name, models are not series but categories of one, which has the label
      of its method with the first of them
    - xscale: "linear", for values that are evenly spaced; else it is logarithmic
    - statistic: "mean" (the default), "mean_95", with 95 % intervals in place of standard errors, or "median", for
      errors that have heavy tails.

    Methods without the setting `x` are horizontal lines. The data drawn are those of `draw_lines`, with the name of the
    category in place of `x` where there are any.
    """
    rows, names = frame[frame["metric"] == spec["metric"]], dict[str, str]()
    if "categories" in spec:
        rows, names = _side_by_side(rows, spec)
        spec = {**spec, "categories": dict(zip(_numbers(names).values(), names.values(), strict=True))}
    known = series_of(rows, labels)
    titles = declared_titles(spec)
    sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    made = draw_lines(rows, known, spec, [SHOWN[statistic_of(spec)], *sentences] if sentences else [], notes)
    return replace(made, drawn=_with_category(made.drawn, names, spec)) if "categories" in spec else made


def _side_by_side(rows: pd.DataFrame, spec: Spec) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows with the number of their category as their `x`, and the name of each category, in their order."""
    declared = {str(value): str(name) for value, name in spec["categories"].items()}
    given = rows[spec["x"]].map(str).where(rows[spec["x"]].notna())
    names = {value: declared.get(value, value) for value in in_order(given.dropna(), declared)}
    models = {"model": next(iter(names))} if spec["x"] == MODEL and names else {}
    return rows.assign(x=given.map(_numbers(names)).astype("float64").fillna(math.inf), **models), names


def _numbers(categories: Iterable[str]) -> dict[str, float]:
    """Powers of two: on a logarithmic axis they are evenly spaced, and points move sideways as they do elsewhere."""
    return {value: 2.0**place for place, value in enumerate(categories)}


def _with_category(drawn: pd.DataFrame, names: Mapping[str, str], spec: Spec) -> pd.DataFrame:
    """The data drawn, with the categories, in their order, in place of their numbers."""
    values = drawn["x"].map({number: value for value, number in _numbers(names).items()})
    models = {"model": values} if spec["x"] == MODEL else {}
    categories = pd.Categorical(values.map(names), list(dict.fromkeys(names.values())), ordered=True)
    drawn = drawn.assign(x=categories, **models).rename(columns={"x": "category"})
    return drawn.drop(columns="kind")
