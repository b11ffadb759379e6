"""The x axis, the metric axis, and marks for points outside of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from dpbench.config.specs import Spec
from dpbench.report.figures.style import LINES, REFERENCE_COLOUR, LineStyle, without_line
from dpbench.report.text import number, powers

LETTER, GAP = 0.015, 0.01  # of a tick's label, and between two, as parts of the width of the narrowest panel


def set_x_axis(axes: Axes, cells: pd.DataFrame, spec: Spec) -> None:
    """`spec["xscale"]`, or linear for three values and more that are evenly spaced and logarithmic for others, with
    ticks at exactly the values of the trials, labelled where there is space, with their names in
    `spec["categories"]`, if any.
    """
    names = spec.get("categories") or {}
    ticks = sorted(cells.loc[cells["kind"] == "point", "x"].unique())
    axes.set_xlabel("" if names else spec.get("xlabel") or "privacy budget ε")
    linear = spec.get("xscale", "linear" if _evenly_spaced(ticks) and not names else "log") == "linear"
    if len(ticks) > 1 and linear:
        axes.set_xlim(1.05 * ticks[0] - 0.05 * ticks[-1], 1.05 * ticks[-1] - 0.05 * ticks[0])
        axes.tick_params(axis="x", labelsize=7)
    elif ticks:
        axes.set_xscale("log")
        axes.set_xlim(ticks[0] / 1.35, ticks[-1] * 1.35)
        if any(after < 1.3 * before for before, after in pairwise(ticks)):
            axes.tick_params(axis="x", labelsize=6.5)
    texts = {value: names.get(value) or _short(value) for value in ticks}
    places = axes.transAxes.inverted().transform(axes.transData.transform([(value, 1.0) for value in ticks or [1.0]]))
    kept = _apart(texts, dict(zip(ticks, places[:, 0], strict=False))) if not names else texts
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: kept.get(value, "")))


def _evenly_spaced(ticks: Sequence[float]) -> bool:
    """Whether there are three or more, with equal steps.

    >>> _evenly_spaced([0.25, 0.5, 0.75]), _evenly_spaced([0.1, 1.0, 10.0]), _evenly_spaced([1.0, 2.0])
    (True, False, False)
    """
    return len(ticks) > 2 and bool(np.allclose(np.diff(ticks), (ticks[-1] - ticks[0]) / (len(ticks) - 1)))


def _apart(texts: Mapping[float, str], places: Mapping[float, float]) -> dict[float, str]:
    """The labels that do not meet the one before, `places` as parts of the width of the narrowest panel.

    >>> _apart({1.5: "1.5", 1.75: "1.75", 2.0: "2"}, {1.5: 0.78, 1.75: 0.84, 2.0: 0.89})
    {1.5: '1.5', 2.0: '2'}
    """
    kept: dict[float, str] = {}
    for value, text in texts.items():
        last = next(reversed(kept), None)
        if last is None or places[value] - places[last] >= (len(kept[last]) + len(text)) / 2 * LETTER + GAP:
            kept[value] = text
    return kept


def _short(value: float) -> str:
    """The number, thousands as k: neighbours such as 10000 and 20000 would meet on the axis of a narrow panel.

    >>> _short(0.5), _short(2000), _short(20000)
    ('0.5', '2k', '20k')
    """
    return f"{number(value / 1000)}k" if value >= 1000 else number(value)


def set_metric_axis(axes: Axes, cells: pd.DataFrame, unit: str, ylim: Sequence[float] | None, spec: Spec) -> None:
    """The metric with its unit, on the scale and within the limits given, if any."""
    name = str(spec.get("ylabel") or spec["metric"])
    axes.set_ylabel(f"{name} ({powers(unit)})" if unit and unit not in name else name)
    logarithmic = spec.get("yscale") == "log" and bool((cells["value"] > 0).any())
    if logarithmic:
        axes.set_yscale("log", nonpositive="clip")
    if ylim:
        axes.set_ylim(*ylim)
    elif logarithmic:
        axes.set_ylim(*_log_limits(cells))
    if logarithmic:
        set_log_ticks(axes.yaxis)


def _log_limits(cells: pd.DataFrame) -> tuple[float, float]:
    """Limits around the positive points and the upper ends of their bars, with 5 per cent on either side.

    The lower end of a bar counts down to half its point: it may reach zero, which a log axis cannot show.
    """
    shown = cells[cells["value"] > 0]
    low = math.log(float(np.maximum(shown["low"], shown["value"] / 2).min()))
    high = math.log(float(shown["high"].max()))
    margin = 0.05 * max(high - low, 0.1)
    return math.exp(low - margin), math.exp(high + margin)


def horizontal_look(cell: pd.Series, styles: Sequence[LineStyle]) -> LineStyle:
    """Colour and dashes of a horizontal line: those of its series, or black with the dashes of its `reference`."""
    if cell["reference"] < 0:
        style = styles[cell["series_order"]]
        return {"color": style["color"], "linestyle": style["linestyle"]}
    return {"color": REFERENCE_COLOUR, "linestyle": LINES[int(cell["reference"])]}


def draw_levels(axes: Axes, spec: Spec) -> None:
    """The thin lines of `spec["lines"]`: values, or {label: value} for those that the legend names."""
    for level in spec.get("lines") or []:
        for label, value in level.items() if isinstance(level, Mapping) else [("_", level)]:
            axes.axhline(value, color=REFERENCE_COLOUR, linestyle=":", linewidth=0.9, label=label)


def level_names(spec: Spec) -> list[str]:
    """The labels of these lines that have one."""
    return [label for level in spec.get("lines") or [] if isinstance(level, Mapping) for label in level]


def set_log_ticks(axis: Axis, most: float = 4) -> None:
    """Plain numbers at 1, 2 and 5 times the powers of ten, within a decade at 3 and 7 times too, over `most` decades at
    powers only; evenly within half a decade. Minor ticks would take a quarter of the drawing time.
    """
    bottom, top = axis.get_view_interval()
    decades = math.log10(top / bottom)
    if decades < 0.5:
        axis.set_major_locator(MaxNLocator(6))
    else:
        subs = (1.0, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0) if decades < most else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_locator(NullLocator())


def mark_clipped(axes: Axes, cells: pd.DataFrame, styles: Sequence[LineStyle]) -> None:
    """An arrow at the edge, with the value, for each point outside of the limits; texts are stacked."""
    outside = cells[cells["clipped"] != ""]
    stacked: dict[tuple[str, float], int] = {}
    for _, cell in outside.iterrows():
        above = cell["clipped"] == "above"
        edge, away = (1.0, -1) if above else (0.0, 1)
        style = styles[cell["series_order"]]
        x, middle = cell["place"], cell["x"]
        if cell["kind"] == "line":
            colour = horizontal_look(cell, styles)["color"]
            style = {"color": colour, "markerfacecolor": colour}
            x = middle = axes.get_xlim()[0]
        spot = (str(cell["clipped"]), float(cell["x"]))
        level = stacked[spot] = stacked.get(spot, 0) + 1
        arrow = without_line(style)
        arrow["marker"] = "^" if above else "v"
        transform = axes.get_xaxis_transform()
        axes.plot(x, edge, transform=transform, clip_on=False, zorder=5, **arrow)
        axes.annotate(
            number(float(f"{cell['value']:.3g}")),
            (middle, edge),
            xycoords=transform,
            xytext=(0, away * (1 + 8 * level)),
            textcoords="offset points",
            ha="center",
            va="center",
            color=style["color"],
            fontsize=6.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
        )
