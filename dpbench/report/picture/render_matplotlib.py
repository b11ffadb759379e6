"""Draws a picture with matplotlib: its marks, its axes, and the layout of a printed figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Drawn
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from dpbench.report.footnotes import shortened
from dpbench.report.picture.canvas import Canvas, style
from dpbench.report.picture.looks import Look
from dpbench.report.picture.notes_at_points import write_notes
from dpbench.report.picture.picture import Area, Axis, Levels, Mark, Note, Panel, Picture, Points
from dpbench.report.text import number

TITLE_WIDTH = 40  # characters of a line above one panel, left of the legend
TICK_WIDTH = 10  # characters of a line below a category
SHORT_LEGEND = 8  # entries with names that leave enough space for a title
PANEL = (5.2, 3.6)  # inches, without the legend
LEGEND_WIDTH = 1.5  # inches
ROW, AROUND = 0.16, 0.4  # inches: of a category on the y axis, and of what is above and below a panel
POWERS = 6.5  # decades of an axis
FOOTNOTE_LINES, FOOTNOTE_LINE = 3, 0.11  # lines that fit below a figure, inches of each further one
FOOTNOTE_MOST = 600  # characters of it
NAME = 6.5  # points of the letters at a line
Looks = Mapping[str, Look]


def rendered(picture: Picture) -> Figure:
    """The figure; a user's own one as it is."""
    if picture.own is not None:
        return picture.own
    panels = picture.panels
    with style():
        figure, grid = _empty_figure(panels)
        for axes, panel in zip(grid, panels, strict=True):
            _draw_panel(axes, panel, picture.looks)
        _set_titles(figure, grid, picture.title, panels)
        if not panels[0].y.words:
            _add_legend(figure, grid, list(picture.legend))
        _add_footnote(figure, picture.footnote)
        _write_notes(figure, grid, panels, picture.looks)
    return figure


# --- panels and axes --------------------------------------------------------------------------------------------------


def _empty_figure(panels: Sequence[Panel]) -> tuple[Figure, list[Axes]]:
    """A figure with these panels, at most three in a row, as high as their categories, and space for the legend on the
    right.
    """
    count = len(panels)
    columns = 2 if count == 4 else min(count, 3)
    lines = math.ceil(count / columns)
    shrink = 1.0 if columns == 1 else 0.75
    least = ROW * max(len(panel.y.ticks or ()) for panel in panels) + AROUND
    size = (PANEL[0] * columns * shrink + LEGEND_WIDTH, max(PANEL[1] * shrink, least) * lines + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    Canvas(figure)
    return figure, [figure.add_subplot(lines, columns, place + 1) for place in range(count)]


def _draw_panel(axes: Axes, panel: Panel, looks: Looks) -> None:
    axes.set(xlabel=panel.x.label, ylabel=panel.y.label)
    for name, axis in (("x", panel.x), ("y", panel.y)):
        if axis.log:
            axes.set(**{f"{name}scale": "log"})
        axes.set(**{f"{name}lim": axis.limits})
    for mark in panel.marks:
        _draw(axes, mark, looks)
    _set_ticks(axes.xaxis, panel.x, most=2)
    _set_ticks(axes.yaxis, panel.y, most=4)


def _set_ticks(drawn: Drawn, axis: Axis, most: float) -> None:
    """The axis's own ticks, those of a log axis, or what matplotlib chooses."""
    ticks = axis.ticks
    if ticks is None:
        if axis.log:
            _set_log_ticks(drawn, most)
        elif axis.most:
            drawn.set_major_locator(MaxNLocator(axis.most))
        return
    texts = dict(ticks)
    if axis.turned:
        drawn.set_tick_params(labelrotation=40)
    elif axis.words and drawn is drawn.axes.xaxis:
        texts = {place: "\n".join(textwrap.wrap(text, TICK_WIDTH)) for place, text in ticks.items()}
    elif not axis.words and len(ticks) > 1 and not axis.log:
        drawn.set_tick_params(labelsize=7)
    elif not axis.words and any(after < 1.3 * before for before, after in pairwise(ticks)):
        drawn.set_tick_params(labelsize=6.5)
    drawn.set_major_locator(FixedLocator([*texts]))
    drawn.set_minor_locator(NullLocator())
    drawn.set_major_formatter(FuncFormatter(lambda value, _: texts.get(value, "")))


def _set_log_ticks(axis: Drawn, most: float) -> None:
    """Plain numbers at 1, 2 and 5 times the powers of ten, within a decade at 3 and 7 times too, over `most` decades at
    powers only; evenly within half a decade. Minor ticks would take a quarter of the drawing time. Over `POWERS`
    decades numbers would be long: matplotlib's own ticks are powers of ten.
    """
    bottom, top = axis.get_view_interval()
    decades = math.log10(top / bottom)
    if decades > POWERS:
        return
    if decades < 0.5:
        axis.set_major_locator(MaxNLocator(6))
    else:
        subs = (1.0, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0) if decades < most else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_locator(NullLocator())


# --- marks ------------------------------------------------------------------------------------------------------------


def _line(look: Look, width: float | None = None) -> dict[str, Any]:
    """A look without its marker, as arguments of matplotlib."""
    dashes = (0, look.dashes) if look.dashes else "-"
    drawn = {"linewidth": look.width or width} if look.width or width else {}
    return {"color": look.colour, "linestyle": dashes, **drawn}


def _marker(look: Look) -> dict[str, Any]:
    """A look without its line."""
    return {"color": look.colour, "linestyle": "none", "marker": look.marker, "markerfacecolor": look.fill}


def _draw(axes: Axes, mark: Mark, looks: Looks) -> None:
    match mark:
        case Points():
            _draw_points(axes, mark, looks)
        case Levels():
            _draw_levels(axes, mark, looks)
        case Area():
            fill = axes.fill_betweenx if mark.upright else axes.fill_between
            for name, rows in mark.rows.groupby("series", sort=False):
                shown: dict[str, Any] = {"color": looks[str(name)].colour, "alpha": mark.opacity, "label": name}
                shown |= {"step": "post" if mark.steps else None, "linewidth": 0}
                fill(rows[mark.along], rows[mark.low], rows[mark.high], **shown)
        case Note(text, corner=True):
            axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=7)
        case Note(text):
            axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center")


def _draw_points(axes: Axes, mark: Points, looks: Looks) -> None:
    """Points that are `alone` are drawn again, without the line."""
    for name, rows in mark.rows.groupby("series", sort=False):
        look = looks[str(name)]
        markers = _marker(look)
        x, y = rows[mark.x].to_numpy(), rows[mark.y].to_numpy(dtype=float)
        bars: dict[str, Any] = {
            "drawstyle": "steps-post" if mark.steps else "default",
            "zorder": 3 if look.marker else 2,
        }
        if mark.bars:
            ends = [abs(rows[end].to_numpy() - (x if mark.across else y)) for end in mark.bars]
            bars |= {"xerr" if mark.across else "yerr": ends, "capsize": 2.0}
            bars["elinewidth"] = look.width or (None if mark.across else 0.9)
        alone = rows["alone"].to_numpy(dtype=bool) if "alone" in rows else np.zeros(len(rows), dtype=bool)
        shown = {**markers, **_line(look)} if mark.joined else markers
        axes.errorbar(x, np.where(alone, np.nan, y), label=str(name), **bars, **shown)
        if alone.any():
            axes.errorbar(x, np.where(alone, y, np.nan), **bars, **markers)
    _mark_clipped(axes, mark.rows, mark.y, looks, mark.x)


def _draw_levels(axes: Axes, mark: Levels, looks: Looks) -> None:
    """A single bar is a band of its width. Several would hide each other: they are at the edge."""
    count, edge = len(mark.rows), axes.get_yaxis_transform()
    for order, row in enumerate(mark.rows.to_dict("records")):
        value, look = row[mark.at], looks[row["series"]]
        if mark.axis == "x":
            axes.axvline(value, ymax=mark.part, label=row["series"], **_line(look, 1.1))
        else:
            axes.axhline(value, xmax=mark.part, label=row["series"], **_line(look, 1.1))
        if mark.bars and count == 1:
            axes.axhspan(row["low"], row["high"], color=look.colour, alpha=0.12, linewidth=0, zorder=1)
        elif mark.bars:
            place, ends = 0.995 - 0.018 * (count - 1 - order), [[value - row["low"]], [row["high"] - value]]
            bar: dict[str, Any] = {"fmt": "none", "color": look.colour, "capsize": 2.0, "elinewidth": 0.9}
            axes.errorbar(place, value, ends, transform=edge, **bar)
    _mark_clipped(axes, mark.rows, mark.at, looks)
    _write_names(axes, mark, looks)


def _write_names(axes: Axes, mark: Levels, looks: Looks) -> None:
    """The names of the lines that have a place for it."""
    rows = mark.rows.dropna(subset="name_at") if "name_at" in mark.rows else mark.rows.iloc[:0]
    for row in rows.to_dict("records"):
        name = axes.annotate(
            row["series"],
            (row["name_at"], row[mark.at]),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 0.5 if row["name_above"] else -2.0),
            textcoords="offset points",
            ha="right",
            va="bottom" if row["name_above"] else "top",
            color=looks[row["series"]].colour,
            fontsize=NAME,
        )
        name.set_in_layout(False)


def _mark_clipped(axes: Axes, rows: pd.DataFrame, value: str, looks: Looks, place: str | None = None) -> None:
    """An arrow at the edge, with the value, for each point outside of the limits; texts are stacked.

    Without the column of its `place` it is a horizontal line, and its arrow at the left.
    """
    if "clipped" not in rows:
        return
    stacked: dict[tuple[str, float], int] = {}
    transform = axes.get_xaxis_transform()
    for row in rows[rows["clipped"] != ""].to_dict("records"):
        above, look = row["clipped"] == "above", looks[row["series"]]
        edge, away = (1.0, -1) if above else (0.0, 1)
        x, middle = (row[place], row["x"]) if place else (axes.get_xlim()[0],) * 2
        spot = (row["clipped"], float(row["x"]))
        level = stacked[spot] = stacked.get(spot, 0) + 1
        arrow = _marker(look) | {"marker": "^" if above else "v"} | ({} if place else {"markerfacecolor": look.colour})
        axes.plot(x, edge, transform=transform, clip_on=False, zorder=5, **arrow)
        axes.annotate(
            number(float(f"{row[value]:.3g}")),
            (middle, edge),
            xycoords=transform,
            xytext=(0, away * (1 + 8 * level)),
            textcoords="offset points",
            ha="center",
            va="center",
            color=look.colour,
            fontsize=6.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
        )


# --- titles, legend, footnote -----------------------------------------------------------------------------------------


def _set_titles(figure: Figure, grid: Sequence[Axes], title: str, panels: Sequence[Panel]) -> None:
    """The figure's title, above the titles of its panels.

    A panel's title is at y = 1 of its axes: a search for a better place would take a tenth of the drawing time.
    """
    if len(grid) == 1:  # left of the legend
        lines = textwrap.wrap(title.replace(" = ", "\u00a0=\u00a0"), TITLE_WIDTH)  # no equation is broken
        grid[0].set_title("\n".join([*lines, *filter(None, [panels[0].title])]), y=1.0)
        return
    figure.suptitle(title)
    for axes, panel in zip(grid, panels, strict=True):
        axes.set_title(panel.title, y=1.0)


def _add_legend(figure: Figure, grid: Sequence[Axes], names: Sequence[str]) -> None:
    """One legend right of the panels, in the order of `names`.

    A title next to a long legend, or one that would overlap it, moves to the left; if still too long, it gets two
    lines.
    """
    if not names:
        return
    handles = legend_handles(grid)
    legend = figure.legend([handles[name] for name in names], names, loc="outside right upper", handlelength=2.6)
    if not (text := figure.get_suptitle()):
        return
    title = figure.suptitle(text)
    space, width = 0.97 * figure.bbox.width - legend.get_window_extent().width, title.get_window_extent().width
    if len(names) > SHORT_LEGEND or (figure.bbox.width + width) / 2 > space:
        title = figure.suptitle(text, x=0.012, ha="left")
        if width > space:
            title.set_text("\n".join(textwrap.wrap(text, math.ceil(0.6 * len(text)))))


def legend_handles(grid: Sequence[Axes]) -> dict[str, Any]:
    """What the legend shows of each label of the panels: of points and their area the points, which come last."""
    handles: dict[str, Any] = {}
    for axes in grid:
        found, labels = axes.get_legend_handles_labels()
        handles = dict(zip(labels, found, strict=True)) | handles
    return handles


def _add_footnote(figure: Figure, text: str) -> None:
    """Small text below panels and legend, wrapped to the figure's width; the figure grows with a long one of either.

    Of a text of more than `FOOTNOTE_MOST` characters the sentences that fit; a page has all of it.
    """
    text = shortened(text, FOOTNOTE_MOST)
    label = figure.supxlabel("", x=0.012, ha="left", fontsize=6.5, color="#444444")
    for width in range(int(figure.get_figwidth() * 20), 20, -2):  # letters are of different widths
        lines = textwrap.wrap(text, width, break_long_words=False)
        label.set_text("\n".join(lines))
        if label.get_window_extent().x1 <= figure.bbox.width:
            break
    height = figure.get_figheight() + FOOTNOTE_LINE * max(0, len(lines) - FOOTNOTE_LINES)
    legend = max((one.get_window_extent().height / figure.dpi for one in figure.legends), default=0)
    figure.set_figheight(max(height, legend + FOOTNOTE_LINE * (len(lines) + 2)))


def _write_notes(figure: Figure, grid: Sequence[Axes], panels: Sequence[Panel], looks: Looks) -> None:
    """The notes at points, on axes that are where they will be."""
    noted = [
        (axes, mark)
        for axes, panel in zip(grid, panels, strict=True)
        for mark in panel.marks
        if isinstance(mark, Points) and "note" in mark.rows and mark.rows["note"].any()
    ]
    layout = figure.get_layout_engine()
    if layout is not None and noted:
        layout.execute(figure)
        figure.set_layout_engine(None)
        for axes, mark in noted:
            write_notes(axes, mark, looks)
