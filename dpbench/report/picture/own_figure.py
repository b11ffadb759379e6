"""A user's own figure: a matplotlib figure and its data, which are a chart of points besides."""

from __future__ import annotations

from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.report.picture.looks import COLOURS, Look
from dpbench.report.picture.picture import Axis, Panel, Picture, Points


def own_picture(figure: Figure, drawn: pd.DataFrame, title: str, notes: str) -> Picture:
    """The picture that is printed as `figure`, with a panel of points for each of its axes; none, if there is no
    number, or nothing to draw it by.

    The first two columns of numbers are x and y; with one alone, the first of texts is x. The next of texts, or one
    that is called series, has the names of series. Several panels are those of a column of texts whose values are their
    titles.
    """
    numbers = [str(name) for name in drawn.columns if pd.api.types.is_numeric_dtype(drawn[name])]
    words = [str(name) for name in drawn.columns if pd.api.types.is_string_dtype(drawn[name])]
    titles = [axes.get_title() for axes in figure.axes]
    by = next((name for name in words if list(dict.fromkeys(drawn[name])) == titles), None) if len(titles) > 1 else ""
    words = [name for name in words if name != by]
    if by is None or not numbers or len(numbers) + len(words) < 2:
        return Picture(title, [], {}, notes, drawn, figure)
    x, y = numbers[:2] if len(numbers) > 1 else (words.pop(0), numbers[0])
    series = next((name for name in words if name == "series"), *words[:1] or [""])
    rows, panels = drawn.assign(series=drawn[series].astype(str) if series else y), []
    for axes in figure.axes:
        own = rows[rows[by] == axes.get_title()] if by else rows
        points = Points(own, x, y, bars=None, joined=False, tip=[str(name) for name in drawn.columns])
        names = _axis(axes, "x", own[x]), _axis(axes, "y", own[y])
        panels.append(Panel(axes.get_title(), *names, [points], axes.get_title()))
    colours = zip(rows["series"].unique(), cycle(COLOURS.values()), strict=False)
    looks = {name: Look(colour, marker="o", fill=colour) for name, colour in colours}
    return Picture(title, panels, looks, notes, drawn, figure)


def _axis(axes: Axes, name: str, values: pd.Series) -> Axis:
    """The label, limits and scale of the user's axis."""
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    label, scale = getattr(axes, f"get_{name}label")(), getattr(axes, f"get_{name}scale")()
    numeric = pd.api.types.is_numeric_dtype(values)
    ticks = None if numeric else {float(place): str(name) for place, name in enumerate(dict.fromkeys(values))}
    return Axis(label, (float(low), float(high)), scale == "log", ticks, "" if numeric else str(values.name))
