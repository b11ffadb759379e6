"""A metric against epsilon, one line a series, with what is drawn as a table (paper 0, Figure 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.report.axes import mark_clipped, set_epsilon_axis, set_metric_axis
from dpbench.report.remarks import as_text, remarks
from dpbench.report.series import Series, mark_series, series_of
from dpbench.report.stats import summarise
from dpbench.report.style import (
    LINES,
    REFERENCE_COLOUR,
    add_footnote,
    add_legend,
    colour_of,
    empty_figure,
    line_style,
    set_titles,
    style,
)
from dpbench.report.text import number

DODGE = 0.08  # shift between neighbouring series, as a part of the smallest gap on the (log) axis, or of log 2
DRAWN = [
    "dataset", "series", "mechanism", "model", "calibration", "variant", "kind", "epsilon", "x", "delta",
    "metric", "unit", "mean", "se", "low", "high", "count", "failed", "nonfinite", "clipped",
]  # fmt: skip


class Panel(NamedTuple):
    """One pair of axes: the cells of one data set and delta."""

    title: str
    unit: str
    ylim: Sequence[float] | None
    cells: pd.DataFrame


class Band(NamedTuple):
    """A region between two series, given by their places among the series of the figure."""

    label: str
    first: int
    second: int


def metric_by_epsilon(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw `spec["metric"]` against epsilon: a panel per data set and delta, a line per series.

    Points are means with bars of one standard error, in the metric's unit, side by side where epsilons
    coincide; series at eps = inf are horizontal lines with a band of one standard error. Failures, gaps and
    `notes` stand below. `spec` has name, metric, title and perhaps

    - xlabel, ylabel, yscale ("log")
    - ylim: [low, high], or such a pair by data set; means outside are marked at the edge, with their value
    - panels: data set -> title, in the order of the panels
    - lines: values at which a thin line is drawn, such as a nominal level
    - bands: [{between: [mechanism/model, mechanism/model], label}], two thin lines, the second with stars, and the
      region between their means shaded where both have one.

    Returns the figure and what it draws, one row a cell: `kind` is "point" or "line", `x` the place on the
    epsilon axis, `clipped` "above", "below" or "".
    """
    known = series_of(frame, labels)
    rows = frame[frame["metric"] == spec["metric"]]
    titles = {str(name): str(title) for name, title in (spec.get("panels") or {}).items()}
    told = remarks(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    return draw_lines(rows, known, spec, told, notes)


def draw_lines(
    rows: pd.DataFrame, known: Sequence[Series], spec: Mapping[str, Any], told: Sequence[str], notes: str
) -> tuple[Figure, pd.DataFrame]:
    """Draw rows of one metric, whatever their `epsilon` and `dataset` stand for, with these remarks and notes below."""
    bands = _bands(known, spec)
    panels = _panels(_drawn(rows, known, bands, spec), spec)
    with style():
        figure, grid = empty_figure(len(panels))
        for axes, panel in zip(grid, panels, strict=True):
            _draw_panel(axes, panel, known, bands, spec)
        set_titles(figure, grid, [panel.title for panel in panels], spec)
        add_legend(figure, grid, [*(one.label for one in known), *(band.label for band in bands)])
        add_footnote(figure, as_text([*told, *_marks(panels), notes]) if len(rows) else notes)
    return figure, pd.concat([panel.cells for panel in panels], ignore_index=True)[DRAWN]


def _bands(known: Sequence[Series], spec: Mapping[str, Any]) -> list[Band]:
    """The bands whose two methods are both there; each calibration and variant of them has its own."""
    places = {(one.method, one.calibration, one.variant): place for place, one in enumerate(known)}
    bands = []
    for asked in spec.get("bands") or []:
        first, second = asked["between"]
        for (method, *setting), place in places.items():
            other = places.get((second, *setting))
            if method == first and other is not None:
                bands.append(Band(str(asked["label"]), place, other))
    return bands


def _drawn(rows: pd.DataFrame, known: Sequence[Series], bands: Sequence[Band], spec: Mapping[str, Any]) -> pd.DataFrame:
    """The cells of one metric with their interval, place on the x axis and clipping."""
    cells = mark_series(summarise(rows), known)
    half = cells["se"].fillna(0.0)
    cells = cells.assign(low=cells["mean"] - half, high=cells["mean"] + half)
    cells["kind"] = np.where(np.isfinite(cells["epsilon"]), "point", "line")
    cells["x"] = _dodged(cells, {place for band in bands for place in (band.first, band.second)})
    limits = [_ylim(spec, dataset) or (-math.inf, math.inf) for dataset in cells["dataset"]]
    above = cells["mean"] > [high for _, high in limits]
    below = cells["mean"] < [low for low, _ in limits]
    cells["clipped"] = np.select([above, below], ["above", "below"], "")
    return cells


def _dodged(cells: pd.DataFrame, banded: set[int]) -> pd.Series:
    """Each cell's place on the epsilon axis: its epsilon times a factor of its series, 1 in a band; NaN for lines."""
    points = cells["kind"] == "point"
    budgets = np.sort(cells.loc[points, "epsilon"].unique())
    gap = min([math.log(2), *np.diff(np.log(budgets))])  # no more, so that all points stay within the axis
    orders = sorted(set(cells.loc[points, "series_order"]) - banded)
    step = min(DODGE, 0.6 / max(1, len(orders))) * gap
    shift = {order: step * (place - (len(orders) - 1) / 2) for place, order in enumerate(orders)}
    places = cells["epsilon"] * np.exp(cells["series_order"].map(shift).astype("float64").fillna(0.0))
    return places.where(points)


def _ylim(spec: Mapping[str, Any], dataset: str) -> Sequence[float] | None:
    ylim = spec.get("ylim")
    chosen: Sequence[float] | None = ylim.get(dataset) if isinstance(ylim, Mapping) else ylim
    return chosen


def _panels(cells: pd.DataFrame, spec: Mapping[str, Any]) -> list[Panel]:
    """Split by data set and delta; a reference of another delta stands in every panel of its data set."""
    titles = spec.get("panels") or {}
    found = set(cells["dataset"])
    panels = []
    for dataset in [*(name for name in titles if name in found), *sorted(found - set(titles))]:
        rows = cells[cells["dataset"] == dataset]
        points = rows["kind"] == "point"
        deltas = sorted(rows.loc[points, "delta"].dropna().unique())
        for delta in deltas or [None]:
            lines = rows[~points]
            here = lines[lines["delta"] == delta]
            wanted = pd.concat([rows[points & (rows["delta"] == delta)], here if len(here) else lines])
            title = str(titles.get(dataset, dataset)) + (f", δ = {number(delta)}" if len(deltas) > 1 else "")
            unit = ", ".join(sorted(set(rows["unit"]) - {""}))
            panels.append(Panel(title, unit, _ylim(spec, dataset), wanted.sort_values(["series_order", "epsilon"])))
    return panels or [Panel("", "", None, cells)]


def _draw_panel(
    axes: Axes, panel: Panel, known: Sequence[Series], bands: Sequence[Band], spec: Mapping[str, Any]
) -> None:
    styles = _styles(known, bands)
    _draw_references(axes, panel.cells[panel.cells["kind"] == "line"], known)
    points = panel.cells[panel.cells["kind"] == "point"]
    for band in bands:
        _shade(axes, points, band, styles[band.first]["color"])
    for place, one in enumerate(known):
        _draw_points(axes, points[points["series_order"] == place], one.label, styles[place])
    for value in spec.get("lines") or []:
        axes.axhline(value, color=REFERENCE_COLOUR, linestyle=":", linewidth=0.9)
    if not panel.cells["mean"].notna().any():
        axes.text(0.5, 0.5, "no trial has a score", transform=axes.transAxes, ha="center", va="center")
    set_epsilon_axis(axes, panel.cells, spec)
    set_metric_axis(axes, panel.cells, panel.unit, panel.ylim, spec)
    mark_clipped(axes, panel.cells, styles)


def _styles(known: Sequence[Series], bands: Sequence[Band]) -> list[dict[str, Any]]:
    """The style of each series; the lines of a band are thin and of its first one's colour, the second has stars."""
    styles = [line_style(one) for one in known]
    for band in bands:
        colour = colour_of(known[band.first])
        thin = {"color": colour, "markerfacecolor": colour, "linewidth": 0.7}
        styles[band.first] |= {**thin, "marker": ""}
        styles[band.second] |= {**thin, "marker": "*", "markersize": 6.0}
    return styles


def _shade(axes: Axes, points: pd.DataFrame, band: Band, colour: str) -> None:
    """The region between the means of the band's two series, over the epsilons at which both have one."""
    first, second = (points[points["series_order"] == place].set_index("x")["mean"] for place in band[1:])
    both = pd.concat([first, second], axis=1, keys=["first", "second"]).dropna().sort_index()
    if len(both):
        x = both.index.to_numpy()
        axes.fill_between(x, both["first"], both["second"], color=colour, alpha=0.25, linewidth=0, label=band.label)


def _draw_references(axes: Axes, cells: pd.DataFrame, known: Sequence[Series]) -> None:
    """References at eps = inf: dashed lines, each in its own way, with a band of one standard error."""
    for _, cell in cells.iterrows():
        low, mean, high = cell["low"], cell["mean"], cell["high"]
        dashes = LINES[1:][known[cell["series_order"]].rank % (len(LINES) - 1)]
        axes.axhspan(low, high, color=REFERENCE_COLOUR, alpha=0.12, linewidth=0, zorder=1)
        axes.axhline(mean, color=REFERENCE_COLOUR, linestyle=dashes, linewidth=1.1, label=cell["series"])


def _draw_points(axes: Axes, cells: pd.DataFrame, label: str, look: Mapping[str, Any]) -> None:
    """Means with bars of one standard error; cells without a finite value leave a hole in the line."""
    if not len(cells):
        return
    cells = cells.sort_values("epsilon")
    axes.errorbar(
        cells["x"].to_numpy(),
        cells["mean"].to_numpy(),
        yerr=cells["se"].fillna(0.0).to_numpy(),
        capsize=2.0,
        elinewidth=look.get("linewidth", 0.9),
        zorder=3,
        label=label,
        **look,
    )


def _marks(panels: Sequence[Panel]) -> list[str]:
    """What a reader must know of how the means are drawn."""
    told = []
    cells = pd.concat([panel.cells for panel in panels])
    if cells.loc[cells["kind"] == "point", "series_order"].nunique() > 1:
        told.append("Points are moved sideways so that none hides another")
    if (cells["clipped"] != "").any():
        told.append("Arrows: means outside of the axis, with their value")
    return told
