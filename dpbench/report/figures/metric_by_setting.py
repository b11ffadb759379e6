"""A metric against a setting, such as the number of rows, one line a series (BinAgg, Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpbench.report.figures.lines import draw_lines, statistic_of
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.panels import declared_titles
from dpbench.report.frames.series import series_of

TOLD = {
    "mean": "Mean ± standard error",
    "mean_95": "Mean with its 95 % interval (Student's t)",
    "median": "Medians with bars from quartile to quartile",
}


def metric_by_setting(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw `spec["metric"]` against the setting `spec["x"]`: a panel per data set, a line per series.

    `frame` is `placed` by `spec`, which is as for `metric_by_epsilon`, and perhaps has

    - panel: the setting whose values have a panel each, in place of the data sets; `panels` maps them to titles
    - rates: {label: dotted name of a function of x}, drawn in the shape that it has, from the first point on
    - where: {setting: value}, the only rows that are shown; those of a method without the setting are too
    - xscale: "linear", for values that are evenly spaced; else it is logarithmic
    - statistic: "mean" (the default), "mean_95", with 95 % intervals in place of standard errors, or "median", for
      errors that have heavy tails.

    Methods without the setting `x` are horizontal lines. Returns the figure and what it draws (see `draw_lines`).
    """
    rows = frame[frame["metric"] == spec["metric"]]
    known = series_of(rows, labels)
    titles = declared_titles(spec)
    told = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    return draw_lines(rows, known, spec, [TOLD[statistic_of(spec)], *told] if told else [], notes)
