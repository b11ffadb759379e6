"""Marginal posteriors of the coefficients and the non-private ones, one panel a coefficient (Bayesian GLM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Spec
from dpbench.report.figures.style import (
    REFERENCE_COLOUR,
    LineStyle,
    add_footnote,
    add_legend,
    empty_figure,
    line_styles,
    set_titles,
    style,
)
from dpbench.report.footnotes import as_text, footnotes
from dpbench.report.frames.panels import declared_titles
from dpbench.report.frames.series import Series, mark_series, series_of

DRAWN = ["dataset", "column", "series", "epsilon", "level", "mean", "low", "high", "repetitions"]
REFERENCE = "non-private"
MIDDLE = (0.025, 0.975)  # of the repetitions are inside the band


def posteriors(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the distribution functions in the details of the scores of `spec["metric"]`.

    A detail has `columns`, and for each of them the quantiles at `levels` of the `posterior` and of the `nonprivate`
    one. A line is the mean quantile over the repetitions, a band the middle 95 % of these. `spec` has name, metric,
    title, epsilon (the one that is drawn), and perhaps panels (data set -> title; one with several data sets has a
    panel for each coefficient of each). Returns the figure and its points.
    """
    known = series_of(frame, labels)
    rows = frame[(frame["metric"] == spec["metric"]) & (frame["epsilon"] == float(spec["epsilon"]))]
    done = mark_series(rows, known)
    done = done[(done["status"] == "done") & done["detail"].map(bool)]
    titles = declared_titles(spec)
    columns = {
        (name, one): None
        for name, detail in zip(done["dataset"], done["detail"], strict=True)
        for one in detail["columns"]
    }
    several = len({name for name, _ in columns}) > 1
    panels = [f"{titles.get(name, name)}: {one}" if several else one for name, one in columns]
    drawn = [pd.DataFrame(columns=DRAWN)]
    with style():
        figure, grid = empty_figure(max(len(panels), 1))
        for axes, (dataset, column) in zip(grid, columns, strict=False):
            drawn += _draw_panel(axes, done[done["dataset"] == dataset], column, known)
        set_titles(figure, grid, panels or [""], {**spec, "panels": dict.fromkeys(panels, "")})
        add_legend(figure, grid, [REFERENCE, *(one.label for one in known)])
        named = rows.assign(dataset=rows["dataset"].replace(titles))
        shown = "Mean quantiles, as lines, and the middle 95 % of these, as bands,"
        sentences = footnotes(named, known, notes, shown) if len(rows) else [notes]
        add_footnote(figure, as_text([f"ε = {spec['epsilon']:g}", *sentences]))
    return figure, pd.concat([part for part in drawn if len(part)] or drawn, ignore_index=True)


def _draw_panel(axes: Axes, rows: pd.DataFrame, column: str, known: Sequence[Series]) -> list[pd.DataFrame]:
    """The non-private posterior and a line a series; the points of each."""
    looks: dict[str, LineStyle] = {REFERENCE: {"color": REFERENCE_COLOUR, "linestyle": "--"}}
    parts = [(REFERENCE, rows.drop_duplicates("repetition"), "nonprivate")]
    for place, (one, look) in enumerate(zip(known, line_styles(known), strict=True)):
        looks[one.label] = {"color": look["color"], "linestyle": look["linestyle"]}
        parts.append((one.label, rows[rows["series_order"] == place], "posterior"))
    drawn = []
    for label, cells, key in parts:
        if len(cells):
            points = _points(cells, column, key).assign(series=label)
            drawn.append(points[DRAWN])
            axes.plot(points["mean"], points["level"], label=label, **looks[label])
            axes.fill_betweenx(
                points["level"], points["low"], points["high"], color=looks[label]["color"], alpha=0.15, linewidth=0
            )
    axes.set(xlabel="coefficient", ylabel="distribution function", ylim=(0, 1))
    return drawn


def _points(cells: pd.DataFrame, column: str, key: str) -> pd.DataFrame:
    """The mean over the repetitions of the quantile at each level, and the ends of the middle 95 %."""
    values = np.array([detail[key][detail["columns"].index(column)] for detail in cells["detail"]])
    low, high = np.quantile(values, MIDDLE, axis=0)
    first = cells.iloc[0]
    return pd.DataFrame(
        {
            "dataset": first["dataset"],
            "column": column,
            "epsilon": first["epsilon"],
            "level": first["detail"]["levels"],
            "mean": values.mean(axis=0),
            "low": low,
            "high": high,
            "repetitions": len(values),
        }
    )
