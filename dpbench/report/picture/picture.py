"""A figure as data: panels of marks over two axes, the looks of its series, its title and its footnote.

`render_matplotlib` draws it for PNG and PDF, `render_vega` for pages. The rows of a mark have a column for each of its
coordinates, and `series`, the name of a look; names that begin with _ are not in the legend. `tip`: the columns that a
reader is shown of a point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpbench.config.specs import Spec
from dpbench.report.picture.looks import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Axis:
    """`ticks`: places with their texts; left to the renderer, if there are none, with `most` intervals between them.

    Where places are categories, `words` is the column with their names in the rows of the marks; `turned`: they are
    written at an angle, as their order matters and their number of letters does not.
    """

    label: str
    limits: tuple[float, float]
    log: bool = False
    ticks: Mapping[float, str] | None = None
    words: str = ""
    turned: bool = False
    most: int | None = None


@dataclass(frozen=True)
class Points:
    """Values of series with the ends of their bars, if any, along y or `across`, `joined` by lines that leave a hole at
    NaN, or by `steps` that hold a value up to the next x. A look without a marker is a line alone.

    Rows perhaps have `alone`, whether no line leads to the point, `note`, a text that stands at it, and `clipped`,
    "above" or "below" the limits of the y axis: its mark is at the edge, its value above `x`.
    """

    rows: pd.DataFrame
    x: str
    y: str
    bars: tuple[str, str] | None = ("low", "high")
    joined: bool = True
    steps: bool = False
    across: bool = False
    tip: Sequence[str] = ()


@dataclass(frozen=True)
class Levels:
    """Lines at values of an axis, over this `part` of the panel, with the ends `low` and `high` of their `bars`.

    Rows perhaps have `name_at`, where the name of a horizontal line ends, as a part of the panel's width, NaN where it
    is in the legend, and `name_above`, whether it is above its line (see `names_at_lines`).
    """

    rows: pd.DataFrame
    at: str
    axis: str = "y"
    bars: bool = True
    part: float = 1.0
    tip: Sequence[str] = ()


@dataclass(frozen=True)
class Area:
    """The region of each series between `low` and `high`, `along` x, or y if it is `upright`."""

    rows: pd.DataFrame
    along: str
    low: str
    high: str
    opacity: float
    steps: bool = False
    upright: bool = False


@dataclass(frozen=True)
class Note:
    """A text in the middle of a panel, or in its upper left `corner`."""

    text: str
    corner: bool = False


Mark = Points | Levels | Area | Note
NO_SCORE = Note("no trial has a score")


@dataclass(frozen=True)
class Panel:
    """`name`: the data set, or the value of a setting, that it shows."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    name: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure: `looks` in the order of its legend, and the data drawn, as its CSV has them.

    `own`: the matplotlib figure of a user's own kind, which is printed in place of the panels.
    """

    title: str
    panels: Sequence[Panel]
    looks: Mapping[str, Look]
    footnote: str
    drawn: pd.DataFrame = field(repr=False)
    own: Figure | None = None

    @property
    def series(self) -> dict[str, Look]:
        """The looks that occur in a panel."""
        shown = {name for rows in self._rows() for name in rows["series"].unique() if not name.startswith("_")}
        return {name: look for name, look in self.looks.items() if name in shown}

    @property
    def legend(self) -> dict[str, Look]:
        """Those that have no name at a line."""
        named = {name for rows in self._rows() if "name_at" in rows for name in rows.dropna(subset="name_at")["series"]}
        return {name: look for name, look in self.series.items() if name not in named}

    def _rows(self) -> Iterator[pd.DataFrame]:
        yield from (mark.rows for panel in self.panels for mark in panel.marks if not isinstance(mark, Note))


def around(*values: ArrayLike, log: bool = False, part: float = 0.05) -> tuple[float, float]:
    """Limits of an axis around all finite values, on a log axis the positive ones, with this part on either side.

    >>> around([0.0, 1.0], [2.0]), around([])
    ((-0.1, 2.1), (0.0, 1.0))
    """
    found = np.concatenate([[], *(np.asarray(one, dtype=float) for one in values)])
    found = found[np.isfinite(found) & ((found > 0) | (not log))]
    if not len(found):
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(found.min()), float(found.max())
    if log:
        margin = math.exp(part * max(math.log(high / low), 0.1))
        return low / margin, high * margin
    if low == high:
        low, high = low - 0.05 * (abs(low) or 1.0), high + 0.05 * (abs(high) or 1.0)
    margin = part * (high - low)
    return low - margin, high + margin


def title_of(spec: Spec) -> str:
    """The title of a figure or table; if it has none, its metric or its name."""
    return str(spec.get("title") or spec.get("metric") or spec["name"])


def titled(
    spec: Spec,
    panels: Sequence[Panel],
    looks: Mapping[str, Look],
    footnote: str,
    drawn: Sequence[pd.DataFrame],
    columns: Sequence[str],
) -> Picture:
    """The picture with the title of `spec` and these columns of the data drawn, a part each panel or series.

    The title of a single panel is left out unless it is declared.
    """
    panels = panels or [Panel("", Axis("", (0.0, 1.0)), Axis("", (0.0, 1.0)), ())]
    if len(panels) == 1 and not spec.get("panels"):
        panels = [replace(panels[0], title="")]
    parts = [part for part in drawn if len(part)] or [pd.DataFrame(columns=list(columns))]
    return Picture(title_of(spec), panels, looks, footnote, pd.concat(parts, ignore_index=True)[list(columns)])
