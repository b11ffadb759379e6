"""A metric against a setting, such as the number of rows, one line a series (Paper 1, Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbench.report.metric_by_epsilon import draw_lines
from dpbench.report.remarks import swept_remarks
from dpbench.report.series import series_of


def metric_by_setting(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw `spec["metric"]` against the setting `spec["x"]`: a panel per data set, a line per series.

    `frame` has the columns of `settings_of(spec)`. `spec` is as for `metric_by_epsilon`, and perhaps has

    - panel: the setting whose values have a panel each, in place of the data sets; `panels` maps them to titles
    - where: {setting: value}, the only rows that are shown; those of a method without the setting are too.

    Methods without the setting `x` are horizontal lines. Returns the figure and what it draws, one row a cell.
    """
    rows = placed(frame[frame["metric"] == spec["metric"]], spec)
    known = series_of(rows, labels)
    titles = {str(name): str(title) for name, title in (spec.get("panels") or {}).items()}
    told = ["Mean ± standard error", *swept_remarks(as_asked(rows, titles), known)] if len(rows) else []
    figure, drawn = draw_lines(rows, known, {**spec, "panels": titles}, told, notes)
    return figure, drawn.rename(columns={"dataset": "panel", "epsilon": spec["x"]}).drop(columns="delta")


def settings_of(spec: Mapping[str, Any]) -> list[str]:
    """The settings by which a figure or table tells cells apart; none for a figure against epsilon."""
    named = [spec.get("x"), spec.get("panel"), *spec.get("where", {})]
    return [str(path) for path in dict.fromkeys(named) if path]


def placed(frame: pd.DataFrame, spec: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that a figure shows, with the value of `x` as their `epsilon`, that of `panel` as their `dataset`.

    The budget asked for stands in asked_epsilon and asked_delta; rows without the setting have epsilon inf. Without
    settings the frame is shown as it is.
    """
    if not settings_of(spec):
        return frame
    for path, value in spec.get("where", {}).items():
        missing = frame[path].isna() | frame[path].isin([np.inf])
        frame = frame[(frame[path] == value) | missing]
    panels = frame[spec["panel"]].map(str) if "panel" in spec else frame["dataset"]
    x = frame[spec["x"]].map(_as_number).astype("float64").fillna(np.inf) if "x" in spec else frame["epsilon"]
    asked = {"asked_epsilon": frame["epsilon"], "asked_delta": frame["delta"]}
    return frame.assign(**asked, epsilon=x, delta=0.0, dataset=panels.astype("str"))


def as_asked(rows: pd.DataFrame, titles: Mapping[str, str]) -> pd.DataFrame:
    """Rows of `placed` with the budget that was asked for as their epsilon and delta again, and titles of data sets."""
    rows = rows.assign(dataset=rows["dataset"].replace(dict(titles)))
    if "asked_epsilon" not in rows:
        return rows
    return rows.assign(epsilon=rows["asked_epsilon"], delta=rows["asked_delta"])


def _as_number(value: object) -> float:
    """The value of a setting on an axis; NaN for text, such as a list's."""
    return float(value) if isinstance(value, (int, float)) else np.nan
