"""A metric against another, such as coverage against width or error against seconds, one point per series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Spec
from dpbench.report.figures.axes import draw_levels, level_names, set_log_ticks
from dpbench.report.figures.style import (
    add_footnote,
    add_legend,
    empty_figure,
    line_styles,
    set_titles,
    style,
    without_line,
)
from dpbench.report.footnotes import as_text, sweep_footnotes
from dpbench.report.frames.frame import has_value
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of
from dpbench.report.frames.settings import metric_rows
from dpbench.report.text import number

DRAWN = ["panel", "epsilon", "series", "x", "y", "low", "high", "count", "trials", "datasets"]
MEANS = "Means over the repetitions with a value; where some have none, the number at the point counts those that do"
EACH = "Bars: one standard error"
POOLED = "Points: geometric means over the data sets on which every method was run, none for a method without a value"


def metric_by_metric(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw `spec["metric"]` against `spec["against"]`, a metric too: one panel per data set and epsilon, one point per
    series.

    Points are means over the repetitions. References are in every panel of their data set. Both metrics may be ones
    that every trial has (see `metric_rows`). `spec` has name, title and perhaps

    - pooled: true for one panel per epsilon, with geometric means over the data sets on which every series was run
    - relative: as for `metric_by_epsilon`, of either metric
    - xlabel, ylabel, xscale, yscale ("log"), ylim, panels (data set -> title, in the order of the panels)
    - xlim: the upper limit of the axis; points beyond are at its edge, with their value
    - lines: values of the metric at which a thin line is drawn, such as a nominal level, or {label: value}.

    Returns the figure and its points: `low` and `high` are the ends of the bar, `count` of `trials` have a value.
    """
    rows = metric_rows(frame, str(spec["metric"]))
    other = metric_rows(frame, str(spec["against"])).set_index("trial")["value"]
    rows = rows.assign(against=rows["trial"].map(other).astype("float64"))
    known = series_of(rows, labels)
    titles, pooled = declared_titles(spec), bool(spec.get("pooled"))
    panels = list(_panels(mark_series(rows, known), titles, pooled))
    drawn = [points for _, points in panels]
    with style():
        figure, grid = empty_figure(max(len(panels), 1))
        for axes, points in zip(grid, drawn, strict=False):
            _draw_panel(axes, points, known, spec)
        set_titles(figure, grid, [title for title, _ in panels] or [""], spec)
        add_legend(figure, grid, [*(one.label for one in known), *level_names(spec)])
        sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
        counts = [f"{title}: {max(points['datasets'], default=0)} data sets" for title, points in panels if pooled]
        add_footnote(figure, as_text([notes, MEANS, *([POOLED, *counts] if pooled else [EACH]), *sentences]))
    return figure, pd.concat(drawn, ignore_index=True)[DRAWN] if drawn else pd.DataFrame(columns=DRAWN)


def _panels(rows: pd.DataFrame, titles: Mapping[str, str], pooled: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """The title of each panel and its points."""
    private = np.isfinite(rows["epsilon"])
    for dataset in [None] if pooled else in_order(rows["dataset"], titles):
        own = rows["dataset"] == dataset if dataset is not None else pd.Series(True, index=rows.index)
        budgets = rows.loc[own & private, ["epsilon", "delta"]].drop_duplicates().sort_values(["epsilon", "delta"])
        for epsilon, delta in budgets.itertuples(index=False):
            here = rows[own & (~private | (rows["epsilon"] == epsilon) & (rows["delta"] == delta))]
            words = [] if dataset is None else [titles.get(dataset, dataset)]
            words += [f"ε = {epsilon:g}", *([f"δ = {number(delta)}"] if budgets["delta"].nunique() > 1 else [])]
            yield ", ".join(words), _points(here).assign(panel=", ".join(words), epsilon=epsilon)


def _points(rows: pd.DataFrame) -> pd.DataFrame:
    """The point of each series, in their order; of several data sets those count on which every series was run."""
    complete = has_value(rows) & np.isfinite(rows["against"])
    valued = rows.assign(x=rows["against"].where(complete), y=rows["value"].where(complete))
    cells = valued.groupby(["dataset", "series_order"]).agg(
        series=("series", "first"), x=("x", "mean"), y=("y", "mean"), se=("y", "sem"), count=("y", "count"),
        trials=("y", "size"),
    )  # fmt: skip
    run = cells["trials"].unstack().notna().all(axis=1)
    cells = cells[cells.index.get_level_values("dataset").isin(run.index[run])]
    by = cells.groupby("series_order")
    alone = run.sum() == 1
    points = by.agg({"series": "first", "count": "sum", "trials": "sum"})
    points[["x", "y"]] = by[["x", "y"]].first() if alone else by[["x", "y"]].agg(_geometric_mean)
    half = by["se"].first().fillna(0.0) if alone else 0.0
    return points.assign(low=points["y"] - half, high=points["y"] + half, datasets=run.sum()).reset_index()


def _geometric_mean(values: pd.Series) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(values.to_numpy()))))


def _draw_panel(axes: Axes, points: pd.DataFrame, known: Sequence[Series], spec: Spec) -> None:
    looks = line_styles(known)
    points = points.assign(value=points["x"], x=points["x"].clip(*spec.get("xlim") or (None, None)))
    for row in points[points["x"].notna() & points["y"].notna()].to_dict("records"):
        look = without_line(looks[row["series_order"]])
        bar = (row["high"] - row["low"]) / 2 or None
        axes.errorbar(row["x"], row["y"], yerr=bar, capsize=2, elinewidth=0.9, zorder=3, label=row["series"], **look)
        parts = [str(row["count"])] if row["count"] < row["trials"] else []
        parts += [f"at {row['value']:.2g}"] if row["value"] != row["x"] else []
        if parts:
            text, at, colour = ", ".join(parts), (row["x"], row["y"]), look["color"]
            axes.annotate(text, at, xytext=(3, 2), textcoords="offset points", fontsize=6, color=colour)
    if points.empty:
        axes.text(0.5, 0.5, "no data set has every method", transform=axes.transAxes, ha="center", va="center")
    draw_levels(axes, spec)
    axes.set(xlabel=spec.get("xlabel") or spec["against"], ylabel=spec.get("ylabel") or spec["metric"])
    for axis, name, scale in ((axes.xaxis, "x", spec.get("xscale")), (axes.yaxis, "y", spec.get("yscale"))):
        shown = points.loc[points[name] > 0, name]
        if scale == "log" and len(shown):
            low, high = math.log(shown.min()), math.log(shown.max())
            margin = max(0.08 * (high - low), 0.02)
            axes.set(**{f"{name}scale": "log", f"{name}lim": (math.exp(low - margin), math.exp(high + margin))})
            set_log_ticks(axis, most=2 if name == "x" else 4)
    if ylim := spec.get("ylim"):
        axes.set_ylim(*ylim)
