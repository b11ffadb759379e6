"""Names of horizontal lines at the lines themselves, where they are clear of all that their panels show.

A box is left, bottom, right and top, as parts of the width and height of a panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike

from dpbench.data.domain import Floats
from dpbench.report.picture.picture import Axis, Levels, Panel, Points

Box = tuple[float, float, float, float]
Place = tuple[float, bool]  # where a name ends, as a part of the panel's width, and whether it is above its line

MOST = 3  # lines of a figure that have their names: more would fill its panels
# Parts of the width and height of the narrowest panel, of either renderer
LETTER, LINE, OFF = 0.019, 0.06, 0.006  # of a letter, of a line of text, and between a line and its name
MARKER, NOTE = (0.018, 0.03), (0.08, 0.1)  # from a point to the edges of its marker, and of a text at it
SAME = 0.015  # nearer lines could not be distinguished by their names
EDGE, BAR = 0.99, 0.02  # where the rightmost name ends, and the space for the bar of each of several lines
SHIFTS = np.arange(0, 0.6, 0.03)  # how far left of this edge a name may end
STEPS = 80  # places on the line from one point to the next


def with_names_at_lines(panels: Sequence[Panel], fixed: Set[str]) -> list[Panel]:
    """The panels with `name_at` and `name_above` in the rows of their lines (see `Levels`), if there are few lines.

    A name is above or below its line, as far right as it is clear of all else. One without such a place in some panel
    has none in any, and stays in the legend, as does one that has points too. Panels that are not `fixed` are made
    higher for the name of a line at their edge.
    """
    lines = {name for panel in panels for mark in _levels(panel) for name in mark.rows["series"]}
    marks = [mark for panel in panels for mark in panel.marks]
    points = {name for mark in marks if isinstance(mark, Points) for name in mark.rows["series"]}
    names = {name for name in lines - points if not name.startswith("_")}
    return _named(panels, fixed, names if len(names) <= MOST else set())


def _named(panels: Sequence[Panel], fixed: Set[str], names: Set[str]) -> list[Panel]:
    """The panels with these names, less those that have no place in some panel, which leaves space for the others."""
    spaced = [panel if panel.name in fixed else _with_space(panel, names) for panel in panels]
    found = [_in_panel(panel, names) for panel in spaced]
    without = {name for places in found for name, place in places.items() if place is None}
    if without:
        return _named(panels, fixed, names - without)
    return [_with_places(panel, places) for panel, places in zip(spaced, found, strict=True)]


def _levels(panel: Panel) -> list[Levels]:
    """The marks that are horizontal lines."""
    return [mark for mark in panel.marks if isinstance(mark, Levels) and mark.axis == "y"]


def _heights(panel: Panel) -> list[tuple[float, str]]:
    """The height of each horizontal line that has one, and its name."""
    return [
        (float(height), name)
        for mark in _levels(panel)
        for height, name in zip(_parts(panel.y, mark.rows[mark.at]), mark.rows["series"], strict=True)
        if np.isfinite(height)
    ]


def _with_space(panel: Panel, names: Set[str]) -> Panel:
    """The panel with space for a name above the uppermost of these lines, and below the lowest."""
    inside = [height for height, name in _heights(panel) if name in names and 0 <= height <= 1]
    least, (low, high) = LINE + 2 * OFF, panel.y.limits
    below = max(0.0, (least - min(inside, default=1)) / (1 - least))
    above = max(0.0, (least - 1 + max(inside, default=0)) / (1 - least))
    if panel.y.log:
        limits = low * (low / high) ** below, high * (high / low) ** above
    else:
        limits = low - (high - low) * below, high + (high - low) * above
    return replace(panel, y=replace(panel.y, limits=limits))


def _in_panel(panel: Panel, names: Set[str]) -> dict[str, Place | None]:
    """The place, if there is one, of each of these names that has a line in the panel, the uppermost first."""
    lines = _heights(panel)
    bars = max([len(mark.rows) for mark in _levels(panel) if mark.bars and len(mark.rows) > 1], default=0)
    taken = np.array([*_drawn(panel), *((0.0, height, 1.0, height) for height, _ in lines)]).reshape(-1, 4)
    found: dict[str, Place | None] = {}
    for height, name in sorted(lines, reverse=True):
        alone = sum(abs(height - other) < SAME or name == another for other, another in lines) == 1
        if name in names:
            found[name] = None
            for shift, above in product(SHIFTS, (True, False)):
                right, bottom = EDGE - BAR * bars - shift, height + OFF if above else height - OFF - LINE
                box = np.array([right - LETTER * len(name), bottom, right, bottom + LINE])
                if alone and box.min() >= 0 and box.max() <= 1 and not _meets(box, taken).any():
                    found[name], taken = (float(right), above), np.vstack([taken, box])
                    break
    return found


def _meets(box: Floats, others: Floats) -> Floats:
    """Which of the others (n, 4) overlap the box."""
    return np.asarray((others[:, :2] < box[2:]).all(axis=1) & (box[:2] < others[:, 2:]).all(axis=1))


def _drawn(panel: Panel) -> Iterator[Box]:
    """The boxes of the markers, the texts at points, and small parts of the lines and bars of a panel."""
    for mark in panel.marks:
        if isinstance(mark, Points):
            yield from _of_points(mark, panel)


def _of_points(mark: Points, panel: Panel) -> Iterator[Box]:
    for _, rows in mark.rows.groupby("series"):
        x, y = _parts(panel.x, rows[mark.x]), _parts(panel.y, rows[mark.y]).clip(0, 1)
        for order, row in enumerate(rows.to_dict("records")):
            wide, high = NOTE if row.get("note") or row.get("clipped") else MARKER
            yield x[order] - wide, y[order] - high, x[order] + wide, y[order] + high
        if mark.bars:
            low, top = (_parts(panel.y, rows[end]).clip(0, 1) for end in mark.bars)
            yield from zip(x, low, x, top, strict=True)
        for first, last in pairwise(zip(x, y, strict=True)) if mark.joined else ():
            for at_x, at_y in np.linspace(first, last, STEPS):
                yield at_x, at_y, at_x, at_y


def _parts(axis: Axis, values: ArrayLike) -> Floats:
    """Where the values are, from 0 to 1 at the limits of the axis."""
    scaled, (low, high) = np.asarray(values, dtype=float), axis.limits
    if axis.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled, low, high = np.log(scaled), math.log(low), math.log(high)
    return np.asarray((scaled - low) / (high - low))


def _with_places(panel: Panel, places: Mapping[str, Place | None]) -> Panel:
    """The panel with these places in the rows of its lines."""
    marks = list(panel.marks)
    for order, mark in enumerate(marks):
        if isinstance(mark, Levels) and mark.axis == "y":
            found = [places.get(name) or (math.nan, False) for name in mark.rows["series"]]
            at, above = [at for at, _ in found], [above for _, above in found]
            marks[order] = replace(mark, rows=mark.rows.assign(name_at=at, name_above=above))
    return replace(panel, marks=marks)
