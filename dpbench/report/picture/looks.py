"""How a series looks, in every figure: its colour and marker by its label, its dashes by its calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle

import numpy as np

from dpbench.config.labels import styles
from dpbench.errors import check_known
from dpbench.report.frames.series import Series

# Okabe and Ito's colours for all kinds of colour vision, the pale yellow left out, and a grey.
COLOURS = {
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "blue": "#0072B2",
    "green": "#009E73",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "grey": "#777777",
    "black": "#000000",  # of references
}
MARKERS = ("X", "s", "^", "o", "D", "v", "P", "<", ">", "p", "h", "d", "*", "8", "H")  # names of matplotlib
DASHES: tuple[tuple[float, ...], ...] = (  # lengths of dashes and gaps, in widths of the line
    (),
    (4, 2),
    (1, 1.5),
    (5, 1.5, 1, 1.5),
    (8, 2.5),
    (5, 1.5, 1, 1.5, 1, 1.5),
    (10, 1.5, 3, 1.5),
    (2, 4),
)
DOTTED, DASHED = (1, 1.65), (3.7, 1.6)
PUBLISHED = {"paper": 1, "authors": 2}  # calibration -> the place of its line in `DASHES`, also where it stands alone
REFERENCE_COLOUR = "#000000"


@dataclass(frozen=True)
class Look:
    """A colour as #rrggbb, `fill` that of the marker, and the width of the line in points, if it is not the usual
    one.
    """

    colour: str = REFERENCE_COLOUR
    dashes: tuple[float, ...] = ()
    marker: str = ""
    fill: str = REFERENCE_COLOUR
    width: float | None = None


def line_styles(known: Sequence[Series]) -> dict[str, Look]:
    """The look of each series: colour and marker of its name; dashes and hollow markers of further calibrations.

    Names with a style of their own (`config.labels.styles`) have it in every figure; the others of a figure take the
    colours and markers that no name has. If there are too few of them, they are used again.
    """
    declared, found = styles(), dict[str, Look]()
    pairs = [(colour, marker) for marker in MARKERS for colour in COLOURS if colour != "black"]
    free = cycle([pair for pair in pairs if pair not in declared.values()] or pairs)
    for one in known:
        if one.name not in declared:
            declared[one.name] = next(free)
        colour, marker = declared[one.name]
        check_known(f"colour of {one.name}", colour, COLOURS)
        check_known(f"marker of {one.name}", marker, MARKERS)
        line = max(one.place, PUBLISHED.get(one.calibration, 0))
        fill = "#ffffff" if line > 0 else COLOURS[colour]
        found[one.label] = Look(COLOURS[colour], DASHES[line % len(DASHES)], marker, fill)
    return found


def plain(looks: Mapping[str, Look], width: float | None = None) -> dict[str, Look]:
    """The looks without markers, and with lines of this width."""
    return {name: replace(look, marker="", width=width) for name, look in looks.items()}


def reference_lines(names: Sequence[str]) -> list[int]:
    """The place in `DASHES` of each reference, a horizontal line: a label with a style of its own has the dashes of its
    marker, in every figure; the others of a figure take those that are left.
    """
    declared, count = styles(), len(DASHES) - 1
    own = {name: 1 + MARKERS.index(declared[name][1]) % count for name in names if name in declared}
    free = cycle(sorted({*range(1, len(DASHES))} - {*own.values()}) or range(1, len(DASHES)))
    return [own[name] if name in own else next(free) for name in names]


@cache
def outline(marker: str) -> str:
    """A marker as an SVG path within [-1, 1], whose y points down; nothing for none."""
    from matplotlib.markers import MarkerStyle

    style = MarkerStyle(marker or "none")
    polygons = style.get_path().transformed(style.get_transform()).to_polygons(closed_only=False)
    corners = ([f"{2 * x:.2g},{-2 * y:.2g}" for x, y in np.asarray(polygon)] for polygon in polygons)
    return "".join(f"M{'L'.join(one)}Z" for one in corners)
