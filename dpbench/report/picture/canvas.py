"""A canvas that draws text fast, the settings of matplotlib, and a PNG of few colours.

The canvas draws horizontal text a line at a time: letter by letter takes a fifth of all drawing.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg, get_hinting_flag
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray
from PIL import Image, ImageColor

from dpbench.report.picture.looks import COLOURS

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


@contextmanager
def style() -> Iterator[None]:
    """matplotlib's own defaults with `STYLE`, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def png_of(drawn: Image.Image) -> bytes:
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
