"""Shared by all figures: style, grid of panels, titles, legend, footnote, canvas and saving.

The canvas draws horizontal text a line at a time: letter by letter takes a fifth of all drawing.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar, Required, TypedDict

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg, get_hinting_flag
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray
from PIL import Image, ImageColor

from dpbench.config.labels import styles
from dpbench.config.specs import Spec
from dpbench.errors import check_known
from dpbench.files import write_file
from dpbench.report.footnotes import shortened
from dpbench.report.frames.series import Series
from dpbench.report.text import csv_text

Save = Callable[[Figure, pd.DataFrame, Path, str], list[Path]]  # writes a figure and its data into a folder
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
MARKERS = ("X", "s", "^", "o", "D", "v", "P", "<", ">", "p", "h", "d", "*", "8", "H")
Dashes = str | tuple[float, tuple[float, ...]]  # a name of matplotlib's, or an offset and the lengths of the pattern
LINES: tuple[Dashes, ...] = (
    "-",
    (0, (4, 2)),
    (0, (1, 1.5)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2.5)),
    (0, (5, 1.5, 1, 1.5, 1, 1.5)),
    (0, (10, 1.5, 3, 1.5)),
    (0, (2, 4)),
)
PUBLISHED = {"paper": 1, "authors": 2}  # calibration -> the place of its line in `LINES`, also where it stands alone
REFERENCE_COLOUR = "#000000"
TITLE_WIDTH = 40  # characters of a line above one panel, left of the legend
SHORT_LEGEND = 8  # entries with names that leave enough space for a title
PANEL = (5.2, 3.6)  # inches, without the legend
LEGEND_WIDTH = 1.5  # inches
FOOTNOTE_LINES, FOOTNOTE_LINE = 3, 0.11  # lines that fit below a figure, inches of each further one
FOOTNOTE_MOST = 600  # characters of it
PNG_DPI, PNG_COLOURS = 100, 48  # for pages: a figure of a few panels has less than 60 kB; a PDF is for print
_DIGITS = np.array([2**16, 2**8, 1], dtype=np.uint32)  # of a colour as one number
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.4,
    "pdf.fonttype": 42,
    "svg.hashsalt": "dpbench",
}


class Renderer(RendererAgg):
    """Letters are at whole pixels of their line, as hinting places them; figures share what was measured and set."""

    _measured: ClassVar[dict[tuple[object, ...], tuple[float, float, float]]] = {}

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: Any) -> tuple[float, float, float]:
        """Pixels of one line."""
        key = s, findfont(prop), prop.get_size_in_points(), self.dpi, ismath
        if key not in self._measured:
            self._measured[key] = super().get_text_width_height_descent(s, prop, ismath)  # type: ignore[no-untyped-call]
        return self._measured[key]

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Draw one line; `x` and `y`, of the beginning of its base line, count from the upper left."""
        if angle or ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)  # type: ignore[no-untyped-call]
            return
        image, left, down = _line(s, findfont(prop), prop.get_size_in_points(), self.dpi, bool(gc.get_antialiased()))
        self._renderer.draw_text_image(image, round(x + left), round(y + down), angle, gc)


@lru_cache(maxsize=2000)
def _line(s: str, font_file: str, size: float, dpi: float, antialiased: bool) -> tuple[NDArray[np.uint8], float, float]:
    """The picture of a line of text; how far its left and its lower edge are from the beginning of its base line."""
    font = get_font(font_file)
    font.set_size(size, dpi)
    font.set_text(s, flags=get_hinting_flag())  # type: ignore[no-untyped-call]
    font.draw_glyphs_to_bitmap(antialiased=antialiased)
    left, bottom = (part / 64 for part in font.get_bitmap_offset())
    return font.get_image(), left, bottom + font.get_descent() / 64 + 1


class Canvas(FigureCanvasAgg):
    """A figure's canvas: its renderer stays while the figure has one size, so that a text is measured once."""

    _key: tuple[float, ...] = ()
    renderer: Renderer

    def get_renderer(self) -> Renderer:
        """The renderer for the present size."""
        key = (*self.get_width_height(physical=True), self.figure.dpi)
        if self._key != key:
            self._key, self.renderer = key, Renderer(*key)  # type: ignore[no-untyped-call]
        return self.renderer

    def pixels(self) -> NDArray[np.uint8]:
        """The figure drawn, (height, width, 4)."""
        self.draw()  # type: ignore[no-untyped-call]
        return np.asarray(self.renderer.buffer_rgba())  # type: ignore[no-untyped-call]


class LineStyle(TypedDict, total=False):
    """Arguments of matplotlib's for a line and its markers."""

    color: Required[str]
    linestyle: Dashes
    linewidth: float
    marker: str
    markerfacecolor: str


@contextmanager
def style() -> Iterator[None]:
    """matplotlib's own defaults with `STYLE`, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def line_styles(known: Sequence[Series]) -> list[LineStyle]:
    """The style of each series: colour and marker of its label; line style and hollow markers of further calibrations.

    Labels with a style of their own (`config.labels.styles`) have it in every figure; the others of a figure take the
    colours and markers that no label has. If there are too few of them, they are used again.
    """
    declared = styles()
    pairs = [(colour, marker) for marker in MARKERS for colour in COLOURS if colour != "black"]
    free = cycle([pair for pair in pairs if pair not in declared.values()] or pairs)
    found: list[LineStyle] = []
    for one in known:
        if one.name not in declared:
            declared[one.name] = next(free)
        colour, marker = declared[one.name]
        check_known(f"colour of {one.name}", colour, COLOURS)
        check_known(f"marker of {one.name}", marker, MARKERS)
        line = max(one.place, PUBLISHED.get(one.calibration, 0))
        hollow = line > 0
        fill = "white" if hollow else COLOURS[colour]
        dashes = LINES[line % len(LINES)]
        found.append({"color": COLOURS[colour], "marker": marker, "linestyle": dashes, "markerfacecolor": fill})
    return found


def reference_lines(names: Sequence[str]) -> list[int]:
    """The place in `LINES` of each reference, a horizontal line: a label with a style of its own has the dashes of its
    marker, in every figure; the others of a figure take those that are left.
    """
    declared, count = styles(), len(LINES) - 1
    own = {name: 1 + MARKERS.index(declared[name][1]) % count for name in names if name in declared}
    free = cycle(sorted({*range(1, len(LINES))} - {*own.values()}) or range(1, len(LINES)))
    return [own[name] if name in own else next(free) for name in names]


def without_line(look: LineStyle) -> LineStyle:
    """The markers of a style alone."""
    found = look.copy()
    found["linestyle"] = "none"
    return found


def empty_figure(count: int, least: float = 0.0) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most three in a row, each at least `least` inches high, and space for the legend
    on the right.
    """
    columns = 2 if count == 4 else min(count, 3)
    lines = math.ceil(count / columns)
    shrink = 1.0 if columns == 1 else 0.75
    size = (PANEL[0] * columns * shrink + LEGEND_WIDTH, max(PANEL[1] * shrink, least) * lines + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    Canvas(figure)
    grid = [figure.add_subplot(lines, columns, place + 1) for place in range(count)]
    return figure, grid


def set_titles(figure: Figure, grid: Sequence[Axes], titles: Sequence[str], spec: Spec) -> None:
    """The figure's title, above the titles of its panels; the title of a single panel is left out unless it is
    declared.

    A panel's title is at y = 1 of its axes: a search for a better place would take a tenth of the drawing time.
    """
    title = str(spec.get("title") or spec.get("metric") or spec["name"])
    if len(grid) == 1:  # left of the legend
        lines = textwrap.wrap(title.replace(" = ", "\u00a0=\u00a0"), TITLE_WIDTH)  # no equation is broken
        grid[0].set_title("\n".join([*lines, *(titles if spec.get("panels") else [])]), y=1.0)
        return
    figure.suptitle(title)
    for axes, name in zip(grid, titles, strict=True):
        axes.set_title(name, y=1.0)


def add_legend(figure: Figure, grid: Sequence[Axes], names: Iterable[str]) -> None:
    """One legend right of the panels, in the order of `names`.

    A title next to a long legend, or one that would overlap it, moves to the left; if still too long, it gets two
    lines.
    """
    handles = legend_handles(grid)
    named = [name for name in names if name in handles]
    if not named:
        return
    legend = figure.legend([handles[name] for name in named], named, loc="outside right upper", handlelength=2.6)
    if not (text := figure.get_suptitle()):
        return
    title = figure.suptitle(text)
    space, width = 0.97 * figure.bbox.width - legend.get_window_extent().width, title.get_window_extent().width
    if len(named) > SHORT_LEGEND or (figure.bbox.width + width) / 2 > space:
        title = figure.suptitle(text, x=0.012, ha="left")
        if width > space:
            title.set_text("\n".join(textwrap.wrap(text, math.ceil(0.6 * len(text)))))


def legend_handles(grid: Sequence[Axes]) -> dict[str, Any]:
    """What the legend shows of each label of the panels."""
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def add_footnote(figure: Figure, text: str) -> None:
    """Small text below panels and legend, wrapped to the figure's width; the figure grows with a long one of either.

    Of a text of more than `FOOTNOTE_MOST` characters the sentences that fit; `footnote_of` the figure is all of it.
    """
    figure.set_label(text)
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


def footnote_of(figure: Figure) -> str:
    """The text below a figure in one line, with what its picture has no space for."""
    return " ".join(str(figure.get_label()).split())


def save_figure(figure: Figure, drawn: pd.DataFrame, folder: Path, name: str, *, pdf: bool = False) -> list[Path]:
    """Write `name`.png (`PNG_DPI`), with `pdf` also .pdf, and .csv (the data drawn) into `folder`; their paths.

    The bytes depend on the figure only: no date, no user settings. Raises `UserError` if the folder cannot
    be written to.
    """
    files: dict[str, bytes | str] = {}
    with style():
        figure.set_dpi(PNG_DPI)
        canvas = figure.canvas if isinstance(figure.canvas, Canvas) else Canvas(figure)
        if engine := figure.get_layout_engine():  # one layout for all files
            engine.execute(figure)
        figure.set_layout_engine(None)  # not "none", for which each `savefig` draws twice
        files["png"] = _png(Image.fromarray(canvas.pixels()))
        if pdf:
            file = io.BytesIO()
            figure.savefig(file, format="pdf", metadata=dict.fromkeys(["CreationDate", "Creator", "Producer"]))
            files["pdf"] = file.getvalue()
    files["csv"] = csv_text(drawn)
    return [write_file(folder / f"{name}.{suffix}", content) for suffix, content in files.items()]


def _png(drawn: Image.Image) -> bytes:
    """A PNG of `PNG_COLOURS` colours, a third of the size: white and `COLOURS` stay, other ones are rounded."""
    image, kept = drawn.convert("RGB"), [ImageColor.getrgb(colour) for colour in ("white", *COLOURS.values())]
    few = image.quantize(PNG_COLOURS - len(kept), dither=Image.Dither.NONE)
    others = (few.getpalette() or [])[: 3 * (PNG_COLOURS - len(kept))]
    few.putpalette([*others, *(part for colour in kept for part in colour)])
    few = image.quantize(palette=few, dither=Image.Dither.NONE)  # a thin line, a little paler, is rounded to its colour
    pixels, places = np.asarray(image).astype(np.uint32) @ _DIGITS, np.array(few)
    for place, colour in enumerate(kept, start=len(others) // 3):
        places[pixels == colour @ _DIGITS] = place
    palette, few = few.getpalette() or [], Image.fromarray(places)
    few.putpalette(palette)
    file = io.BytesIO()
    few.save(file, format="png", optimize=True)
    return file.getvalue()
