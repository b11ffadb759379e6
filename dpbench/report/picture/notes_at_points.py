"""Notes next to points, such as the number of repetitions with a value, clear of others and of the drawn lines."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from dpbench.data.domain import Floats
from dpbench.report.picture.looks import Look
from dpbench.report.picture.picture import Points

FONT_SIZE = 6.0
DIGIT, HEIGHT = 0.64 * FONT_SIZE, 0.8 * FONT_SIZE  # points, of a digit of matplotlib's own font
GAP = 3.0  # points between two numbers: nearer ones read as one
MARKER = 2.2  # points from the middle of a marker to its edge
ROWS = (0, -1, 1, -2, 2, -3, 3)  # of text, above and below the usual place
# The cost of overlapping something, in rows by which a number would move to avoid it
OTHER, OUTSIDE, A_MARKER, A_LINE = 100.0, 100.0, 5.0, 0.4


class Box(NamedTuple):
    """A rectangle, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Whether they overlap, or have less than the gap between them from left to right.

        >>> Box(0, 0, 4, 5).meets(Box(6, 0, 10, 5)), Box(0, 0, 4, 5).meets(Box(8, 0, 12, 5))
        (True, False)
        >>> Box(0, 0, 4, 5).meets(Box(0, 6, 4, 11))
        False
        """
        near = self.left < other.right + GAP and other.left < self.right + GAP
        return near and self.bottom < other.top and other.bottom < self.top

    def covers(self, points: Floats, within: float = 0.0) -> int:
        """How many of the points (n, 2) lie in it, or so near to it."""
        low, high = np.array([self.left, self.bottom]) - within, np.array([self.right, self.top]) + within
        return int(((points > low) & (points < high)).all(axis=1).sum())


def write_notes(axes: Axes, mark: Points, looks: Mapping[str, Look]) -> None:
    """Write the `note` of each point next to it, on axes whose limits and place in the figure are final.

    Each note, from left to right, takes the place of least cost left or right of its point, or above or below that.
    """
    scale, x, y = 72 / axes.figure.dpi, mark.x, mark.y
    frame = Box(*(scale * float(edge) for edge in axes.get_window_extent().extents))
    drawn = mark.rows[mark.rows[y].notna()]
    markers = _in_points(axes, drawn[x], drawn[y])
    lines = np.concatenate([np.empty((0, 2)), *_along_lines(axes, drawn, mark), *_along_bars(axes, drawn, mark)])
    taken: list[Box] = []
    for point in drawn[drawn["note"] != ""].sort_values([x, y]).to_dict("records"):
        (at,) = _in_points(axes, pd.Series([point[x]]), pd.Series([point[y]]))
        text = point["note"]
        costs: list[tuple[float, int, Box, tuple[float, float]]] = []
        for row, right in product(ROWS, (True, False)):
            offset = (3.0 if right else -3.0 - DIGIT * len(text), 2.0 + (HEIGHT + 1.0) * row)
            left, bottom = at + offset
            box = Box(left, bottom, left + DIGIT * len(text), bottom + HEIGHT)
            outside = min(box.left - frame.left, frame.right - box.right, box.bottom - frame.bottom) < 0
            cost = OTHER * sum(map(box.meets, taken)) + OUTSIDE * outside + abs(row) + 0.1 * (not right)
            cost += A_MARKER * box.covers(markers, MARKER) + A_LINE * box.covers(lines)
            costs.append((cost, len(costs), box, offset))
        _, _, box, offset = min(costs)
        taken.append(box)
        label = axes.annotate(
            text,
            (point[x], point[y]),
            xytext=offset,
            textcoords="offset points",
            color=looks[point["series"]].colour,
            fontsize=FONT_SIZE,
            zorder=6,
            path_effects=[withStroke(linewidth=1.5, foreground="white")],
        )
        label.set_in_layout(False)


def _in_points(axes: Axes, x: pd.Series, y: pd.Series) -> Floats:
    """Places (n, 2) on the figure, in points."""
    places: Floats = axes.transData.transform(np.column_stack([x, y]).astype(float)) * (72 / axes.figure.dpi)
    return places


def _along_lines(axes: Axes, drawn: pd.DataFrame, mark: Points) -> list[Floats]:
    """Places a point apart on the lines from one point of a series to the next, as far as the axes show them."""
    bottom, top = np.asarray(axes.get_window_extent().extents)[[1, 3]] * (72 / axes.figure.dpi)
    found = []
    for _, rows in drawn.sort_values("x").groupby("series"):
        for first, last in pairwise(_in_points(axes, rows[mark.x], rows[mark.y])):
            rise = last[1] - first[1] or 1e-9
            shown = np.clip(np.sort([(bottom - first[1]) / rise, (top - first[1]) / rise]), 0, 1)
            found.append(_between(*(first + shown[:, None] * (last - first))))
    return found


def _along_bars(axes: Axes, drawn: pd.DataFrame, mark: Points) -> list[Floats]:
    """Places a point apart on the bars, as far as the axes show them."""
    bottom, top = axes.get_ylim()
    ends = [_in_points(axes, drawn[mark.x], drawn[end].clip(bottom, top)) for end in mark.bars or ()]
    return [_between(low, high) for low, high in zip(*ends, strict=True) if np.isfinite([low, high]).all()]


def _between(first: Floats, last: Floats) -> Floats:
    steps = max(2, int(np.hypot(*(last - first))))
    found: Floats = np.linspace(first, last, steps)
    return found
