"""matplotlib's canvas, with horizontal text drawn a line at a time: letter by letter takes a fifth of all drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg, get_hinting_flag
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray


class Renderer(RendererAgg):
    """Letters are at whole pixels of their line, as hinting places them."""

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
        font = get_font(findfont(prop))
        font.set_size(prop.get_size_in_points(), self.dpi)
        font.set_text(s, flags=get_hinting_flag())  # type: ignore[no-untyped-call]
        font.draw_glyphs_to_bitmap(antialiased=bool(gc.get_antialiased()))
        left, bottom = (part / 64 for part in font.get_bitmap_offset())
        down = y + bottom + font.get_descent() / 64 + 1
        self._renderer.draw_text_image(font.get_image(), round(x + left), round(down), angle, gc)


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
