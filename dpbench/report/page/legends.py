"""The look of the series of a figure, read from its legend, so that the chart of the same numbers matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.container import Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle

OPAQUE = "#000000"  # for marks without a colour of their own
NO_MARKER = ("", "None", "none", " ", None)


class Look(NamedTuple):
    """Colours as #rrggbb, the lengths of `dashes` and gaps, the outline of the `marker` as an SVG path in [-1, 1]."""

    colour: str = OPAQUE
    fill: str = OPAQUE
    dashes: tuple[float, ...] = ()
    marker: str = ""


def looks_of(figure: Figure) -> dict[str, Look]:
    """The look of each entry of the legend, in its order."""
    handles: dict[str, Artist | Container] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    shown = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return {label: _look(handles[label]) for label in dict.fromkeys([*shown, *handles]) if label in handles}


def _look(handle: Artist | Container) -> Look:
    line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
    if isinstance(line, Line2D):
        colour, fill = to_hex(line.get_color()), to_hex(line.get_markerfacecolor())
        return Look(colour, fill, _dashes(line), _outline(line.get_marker()))
    edges = [one for get in ("get_edgecolor", "get_facecolor") for one in np.atleast_2d(getattr(line, get)()) if one[3]]
    colour = to_hex(edges[0]) if edges else OPAQUE
    return Look(colour, colour)


def _dashes(line: Line2D) -> tuple[float, ...]:
    """The pattern that the line was given; matplotlib has no public name for it."""
    _, pattern = getattr(line, "_unscaled_dash_pattern", (0, None))
    return tuple(float(length) for length in pattern or ())


def _outline(marker: Any) -> str:
    """A marker of matplotlib as an SVG path, whose y points down."""
    if marker in NO_MARKER:
        return ""
    style = MarkerStyle(marker)
    polygons = style.get_path().transformed(style.get_transform()).to_polygons(closed_only=False)
    return "".join(_drawn(2 * np.asarray(corners)) for corners in polygons)


def _drawn(corners: np.ndarray) -> str:
    points: Iterator[str] = (f"{x:.2g},{-y:.2g}" for x, y in corners)
    return f"M{'L'.join(points)}Z"
