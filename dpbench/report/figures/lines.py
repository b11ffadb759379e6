"""Lines of a metric over the axis `x`, one per series, and the data drawn as a table: one row per cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from dpbench.config.specs import Spec
from dpbench.data.domain import Floats
from dpbench.errors import check_known
from dpbench.report.figures.axes import (
    draw_levels,
    horizontal_look,
    level_names,
    mark_clipped,
    set_metric_axis,
    set_x_axis,
)
from dpbench.report.figures.count_labels import number_survivors
from dpbench.report.figures.style import (
    REFERENCE_COLOUR,
    LineStyle,
    add_footnote,
    add_legend,
    empty_figure,
    legend_handles,
    line_styles,
    reference_lines,
    set_titles,
    style,
    without_line,
)
from dpbench.report.footnotes import as_text
from dpbench.report.frames.frame import SERIES, has_value, summarise
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series
from dpbench.targets import resolve

CELL = ("panel", *SERIES, "x", "metric")
DODGE = 0.05  # shift between neighbouring series, as a part of the smallest gap on the (log) axis, or of log 2
SPREAD = 0.3  # from the first to the last series at most: a point must not seem to be at another x
CATEGORY_DODGE, CATEGORY_SPREAD = 0.16, 0.6  # the same where no lines join the points
PUBLISHED = "published"
STATISTICS = {"mean": ["mean", "se"], "mean_95": ["mean", "se"], "median": ["median"]}  # its columns
QUARTILES = {0.25: "low", 0.5: "median", 0.75: "high"}


def _columns(statistic: str) -> list[str]:
    """The columns of the data drawn."""
    return [
        "panel", "series", "mechanism", "model", "calibration", "variant", "kind", "x", "place", "metric", "unit",
        *STATISTICS[statistic], "low", "high", "count", "failed", "nonfinite", "clipped",
    ]  # fmt: skip


class Panel(NamedTuple):
    """One pair of axes and its cells."""

    title: str
    unit: str
    ylim: Sequence[float] | None
    cells: pd.DataFrame


class Band(NamedTuple):
    """A region between two series, given by their indices among the series of the figure."""

    label: str
    first: int
    second: int


def draw_lines(
    rows: pd.DataFrame, known: Sequence[Series], spec: Spec, sentences: Sequence[str], notes: str
) -> tuple[Figure, pd.DataFrame]:
    """Draw rows of one metric over their `x`, one pair of axes a `panel`, with these footnotes and notes below.

    `spec["statistic"]` is "mean", with bars of one standard error, "mean_95", with 95 % intervals, or "median", with
    bars from quartile to quartile. Where some repetitions have no value, the number of those that do is written at the
    point. Returns the figure and the data drawn, one row per cell: `kind` is "point", or "line" where `x` is infinite,
    `place` the position on the axis, `low` and `high` the ends of the bar, `clipped` "above", "below" or "".
    """
    statistic = statistic_of(spec)
    bands = _bands(known, spec)
    panels = _panels(_drawn(rows, known, bands, spec), spec)
    with style():
        figure, grid = empty_figure(len(panels))
        for axes, panel in zip(grid, panels, strict=True):
            _draw_panel(axes, panel, known, bands, spec)
        set_titles(figure, grid, [panel.title for panel in panels], spec)
        labels = [*(one.label for one in known), *(band.label for band in bands), *(spec.get("rates") or {})]
        published = [name for name in legend_handles(grid) if name.endswith(f", {PUBLISHED}")]
        add_legend(figure, grid, [*labels, *level_names(spec), *published])
        add_footnote(figure, as_text([notes, *sentences, *_marks(panels)]) if len(rows) else notes)
        _number_survivors(figure, grid, panels, _styles(known, bands))
    return figure, pd.concat([panel.cells for panel in panels], ignore_index=True)[_columns(statistic)]


def statistic_of(spec: Spec) -> str:
    """The statistic that a point shows. Raises `UserError` for an unknown statistic."""
    statistic = str(spec.get("statistic") or "mean")
    check_known("statistic", statistic, STATISTICS)
    return statistic


def _bands(known: Sequence[Series], spec: Spec) -> list[Band]:
    """The bands whose two methods both have trials; each of their calibrations and variants has its own."""
    places = {(one.method, one.calibration, one.variant): place for place, one in enumerate(known)}
    bands = []
    for asked in spec.get("bands") or []:
        first, second = asked["between"]
        for (method, *setting), place in places.items():
            other = places.get((second, *setting))
            if method == first and other is not None:
                bands.append(Band(str(asked["label"]), place, other))
    return bands


def _drawn(rows: pd.DataFrame, known: Sequence[Series], bands: Sequence[Band], spec: Spec) -> pd.DataFrame:
    """The cells of one metric with their interval, place on the x axis, clipping and, for those of a reference, the
    place of its dashes in `LINES`, else -1.
    """
    cells, statistic = mark_series(summarise(rows, CELL), known), statistic_of(spec)
    if statistic != "median":
        half = cells["se"].fillna(0.0)
        if statistic == "mean_95":
            half *= stdtrit((cells["count"] - 1).clip(lower=1), 0.975)
        cells = cells.assign(low=cells["mean"] - half, high=cells["mean"] + half)
    else:
        finite = rows["value"].where(has_value(rows))
        quartiles = finite.groupby([rows[name] for name in CELL]).quantile(np.array(list(QUARTILES))).unstack()
        cells = cells.join(quartiles.rename(columns=QUARTILES), on=list(CELL))
    cells["value"] = cells[STATISTICS[statistic][0]]
    cells["kind"] = np.where(np.isfinite(cells["x"]), "point", "line")
    private = mark_series(rows.loc[np.isfinite(rows["epsilon"])], known)["series_order"]
    references = sorted(set(cells.loc[cells["kind"] == "line", "series_order"]) - set(private))
    dashes = dict(zip(references, reference_lines([known[order].name for order in references]), strict=True))
    cells["reference"] = cells["series_order"].map(dashes).fillna(-1)
    dodge, spread = (CATEGORY_DODGE, CATEGORY_SPREAD) if spec.get("categories") else (DODGE, SPREAD)
    banded = {place for band in bands for place in (band.first, band.second)}
    cells["place"] = _dodged(cells, banded, dodge, spread)
    limits = [_ylim(spec, panel) or (-math.inf, math.inf) for panel in cells["panel"]]
    above = cells["value"] > [high for _, high in limits]
    below = cells["value"] < [low for low, _ in limits]
    cells["clipped"] = np.select([above, below], ["above", "below"], "")
    return cells


def _dodged(cells: pd.DataFrame, banded: set[int], dodge: float, spread: float) -> pd.Series:
    """Each cell's place on the axis: its x times a factor of its series, 1 in a band; NaN for lines."""
    points = cells["kind"] == "point"
    ticks = np.sort(cells.loc[points, "x"].unique())
    gap = min([math.log(2), *np.diff(np.log(ticks))])  # no more, so that all points stay within the axis
    orders = sorted(set(cells.loc[points, "series_order"]) - banded)
    step = min(dodge, spread / max(1, len(orders))) * gap
    shift = {order: step * (place - (len(orders) - 1) / 2) for place, order in enumerate(orders)}
    places = cells["x"] * np.exp(cells["series_order"].map(shift).astype("float64").fillna(0.0))
    return places.where(points)


def _ylim(spec: Spec, panel: str) -> Sequence[float] | None:
    ylim = spec.get("ylim")
    if isinstance(ylim, Mapping):
        ylim = {str(name): limits for name, limits in ylim.items()}.get(panel)
    chosen: Sequence[float] | None = ylim
    return chosen


def _panels(cells: pd.DataFrame, spec: Spec) -> list[Panel]:
    """The panels in the order of the declared titles, then by name."""
    titles = declared_titles(spec)
    panels = []
    for name in in_order(cells["panel"], titles):
        rows = cells[cells["panel"] == name].sort_values(["series_order", "x"])
        unit = ", ".join(sorted(set(rows["unit"]) - {""}))
        panels.append(Panel(titles.get(name, name), unit, _ylim(spec, name), rows))
    return panels or [Panel("", "", None, cells)]


def _draw_panel(axes: Axes, panel: Panel, known: Sequence[Series], bands: Sequence[Band], spec: Spec) -> None:
    styles = _styles(known, bands)
    _draw_horizontals(axes, panel.cells[panel.cells["kind"] == "line"], styles)
    points = panel.cells[panel.cells["kind"] == "point"]
    few = _has_few(points)
    ends = np.searchsorted(points["series_order"], range(len(known) + 1))  # points are sorted by it
    for band in bands:
        _shade(axes, points, band, styles[band.first]["color"])
    for place, one in enumerate(known):
        look = without_line(styles[place]) if spec.get("categories") else styles[place]
        own = slice(*ends[place : place + 2])
        _draw_points(axes, points.iloc[own], few.iloc[own], one.label, look, points["x"].unique())
    _draw_published(axes, panel, spec)
    draw_levels(axes, spec)
    for label, target in (spec.get("rates") or {}).items():
        _draw_rate(axes, points, label, resolve("metric", target, f"rates: {label}"))
    if not panel.cells["value"].notna().any():
        axes.text(0.5, 0.5, "no trial has a score", transform=axes.transAxes, ha="center", va="center")
    set_x_axis(axes, panel.cells, spec)
    set_metric_axis(axes, panel.cells, panel.unit, panel.ylim, spec)
    mark_clipped(axes, panel.cells, styles)


def _styles(known: Sequence[Series], bands: Sequence[Band]) -> list[LineStyle]:
    """The style of each series; the lines of a band are thin."""
    styles = line_styles(known)
    for place in {place for band in bands for place in band[1:]}:
        styles[place]["linewidth"] = 0.7
    return styles


def _shade(axes: Axes, points: pd.DataFrame, band: Band, colour: str) -> None:
    """The region between the lines of the band's two series, over the places at which both have a point."""
    first, second = (points[points["series_order"] == place].set_index("place")["value"] for place in band[1:])
    both = pd.concat([first, second], axis=1, keys=["first", "second"]).dropna().sort_index()
    if len(both):
        x = both.index.to_numpy()
        axes.fill_between(x, both["first"], both["second"], color=colour, alpha=0.25, linewidth=0, label=band.label)


def _draw_rate(axes: Axes, points: pd.DataFrame, label: str, rate: Callable[[float], float]) -> None:
    """How a function of `x` grows or falls, from the first point on."""
    first = points[points["value"].notna()].nsmallest(1, "x")
    if len(first):
        x = np.geomspace(first["x"].item(), points["x"].max())
        y = first["value"].item() * np.array([rate(float(one)) for one in x]) / rate(float(x[0]))
        axes.plot(x, y, color=REFERENCE_COLOUR, linestyle=":", linewidth=1.1, label=label)


def _draw_horizontals(axes: Axes, cells: pd.DataFrame, styles: Sequence[LineStyle]) -> None:
    """Series without an x: horizontal lines. References are black, each with its own dashes.

    A single one has a band of the width of a bar. Several bands would hide each other: their bars are at the edge.
    """
    for order, (_, cell) in enumerate(cells.iterrows()):
        low, value, high = cell["low"], cell["value"], cell["high"]
        look = horizontal_look(cell, styles)
        axes.axhline(value, linewidth=1.1, label=cell["series"], **look)
        if len(cells) == 1:
            axes.axhspan(low, high, color=look["color"], alpha=0.12, linewidth=0, zorder=1)
        else:
            place, ends = 0.995 - 0.018 * (len(cells) - 1 - order), [[value - low], [high - value]]
            edge, colour = axes.get_yaxis_transform(), look["color"]
            axes.errorbar(place, value, ends, transform=edge, fmt="none", color=colour, capsize=2.0, elinewidth=0.9)


def _draw_points(
    axes: Axes, cells: pd.DataFrame, few: pd.Series[bool], label: str, look: LineStyle, ticks: Floats
) -> None:
    """Points with their bars; a cell without a finite value, or with few, leaves a hole in the line, and so does one of
    the `ticks` in between that the series does not have.
    """
    if not len(cells):
        return
    holes = np.setdiff1d(ticks[(ticks > cells["x"].min()) & (ticks < cells["x"].max())], cells["x"])
    order = np.argsort(np.concatenate([cells["x"], holes]), kind="stable")
    blank = np.full(len(holes), np.nan)
    x = np.concatenate([cells["place"], holes])[order]
    low, high, values = (np.concatenate([cells[name], blank])[order] for name in ("low", "high", "value"))
    alone = np.concatenate([few, np.zeros(len(holes), dtype=bool)])[order]
    width = look.get("linewidth", 0.9)

    def draw(y: Floats, look: LineStyle, label: str | None = None) -> None:
        axes.errorbar(x, y, yerr=[y - low, high - y], label=label, capsize=2.0, elinewidth=width, zorder=3, **look)

    draw(np.where(alone, np.nan, values), look, label)
    if alone.any():
        draw(np.where(alone, values, np.nan), without_line(look))


def _draw_published(axes: Axes, panel: Panel, spec: Spec) -> None:
    """What the paper publishes for the panel's data set, method by method (`spec["published"]`, looked up)."""
    published = spec.get("published") or {}
    rows = published.get("rows") or {} if isinstance(published, Mapping) else {}
    methods = rows.get(next(iter(panel.cells["panel"]), ""), {})
    for marker, (method, values) in zip("x+12", methods.items(), strict=False):
        points = {float(x): value for x, value in values.items() if math.isfinite(float(x))}
        label = f"{method}, {PUBLISHED}" if points else "_"
        axes.plot([*points], [*points.values()], marker, color=REFERENCE_COLOUR, label=label, zorder=4)


def _number_survivors(
    figure: Figure, grid: Sequence[Axes], panels: Sequence[Panel], styles: Sequence[LineStyle]
) -> None:
    """The number of repetitions with a value, at each point within the axes where some have none."""
    numbered = [
        (axes, points, _has_lost(points) & (points["clipped"] == ""))
        for axes, panel in zip(grid, panels, strict=True)
        for points in [panel.cells[panel.cells["kind"] == "point"]]
    ]
    layout = figure.get_layout_engine()
    if layout is not None and any(chosen.any() for _, _, chosen in numbered):
        layout.execute(figure)  # so that the numbers are placed where the axes will be
        figure.set_layout_engine(None)
        for axes, points, chosen in numbered:
            number_survivors(axes, points, chosen, styles)


def _has_lost(points: pd.DataFrame) -> pd.Series:
    """Which cells have a value of some repetitions and none of others."""
    return (points["failed"] + points["nonfinite"] > 0) & points["value"].notna()


def _has_few(points: pd.DataFrame) -> pd.Series:
    """Which cells have a value of fewer than half of their repetitions: those may be the easy ones."""
    return _has_lost(points) & (points["count"] < points["failed"] + points["nonfinite"])


def _marks(panels: Sequence[Panel]) -> list[str]:
    """Footnotes on how the points are drawn."""
    sentences = []
    cells = pd.concat([panel.cells for panel in panels])
    points = cells[cells["kind"] == "point"]
    if _has_lost(points).any():
        sentences.append("Number at a point: repetitions with a value, where some have none")
    if _has_few(points).any():
        sentences.append("No line is drawn to a point with a value in fewer than half of the repetitions")
    if cells.loc[cells["kind"] == "point", "series_order"].nunique() > 1:
        sentences.append("Points are moved sideways so that none hides another")
    if any((panel.cells["kind"] == "line").sum() > 1 for panel in panels):
        sentences.append("Bars at the right edge: of the horizontal lines, from left to right")
    if (cells["clipped"] != "").any():
        sentences.append("Arrows: points outside the axis limits, with their value")
    return sentences
