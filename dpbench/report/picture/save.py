"""The files of a figure: PNG, PDF, and the data drawn as CSV.

For an article: as wide as its column, letters of one size, title and footnote in a text file.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from PIL import Image

from dpbench.errors import UserError
from dpbench.files import write_file
from dpbench.report.picture.canvas import PNG_DPI, Canvas, png_of, style
from dpbench.report.picture.picture import Picture
from dpbench.report.picture.render_matplotlib import legend_handles, rendered
from dpbench.report.text import csv_text

Save = Callable[[Picture, Path, str], list[Path]]  # writes a figure and its data into a folder
POINTS, INSIDE = 8.0, 6.0  # of letters, as in most journals' captions, and of those inside of a panel
ASPECT, LINE, LETTER = 0.72, 0.16, 0.062  # height of a panel over its width; inches of a line and of a letter
LEAST_PANEL, HANDLE = 2.0, 0.5  # inches: width of a panel, and of a line in the legend
LEAST, MOST = 2.0, 20.0  # inches that a figure can be wide


def save_figure(picture: Picture, folder: Path, name: str, *, pdf: bool = False) -> list[Path]:
    """Write `name`.png (`PNG_DPI`), with `pdf` also .pdf, and .csv (the data drawn) into `folder`; their paths.

    The bytes depend on the figure only: no date, no user settings. Raises `UserError` if the folder cannot
    be written to.
    """
    figure, files = rendered(picture), dict[str, bytes | str]()
    with style():
        figure.set_dpi(PNG_DPI)
        canvas = figure.canvas if isinstance(figure.canvas, Canvas) else Canvas(figure)
        if engine := figure.get_layout_engine():  # one layout for all files
            engine.execute(figure)
        figure.set_layout_engine(None)  # not "none", for which each `savefig` draws twice
        files["png"] = png_of(Image.fromarray(canvas.pixels()))
        if pdf:
            files["pdf"] = _pdf(figure)
    files["csv"] = csv_text(picture.drawn)
    return [write_file(folder / f"{name}.{suffix}", content) for suffix, content in files.items()]


def _pdf(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="pdf", metadata=dict.fromkeys(["CreationDate", "Creator", "Producer"]))
    return file.getvalue()


def check_width(width: float) -> None:
    """Raises `UserError` for a width in inches that no page has."""
    if not LEAST <= width <= MOST:
        raise UserError(
            f"--width is in inches, from {LEAST:g} to {MOST:g}, such as 3.4 for one column and 7 for two, not {width:g}"
        )


def save_for_article(picture: Picture, folder: Path, name: str, width: float) -> list[Path]:
    """Write `name`_article.pdf, `width` inches wide, and `name`_article.txt, what its caption may say; their paths."""
    with style():
        pdf = _pdf(article_figure(picture, width))
    caption = f"{picture.title}\n\n{picture.footnote}\n"
    files: dict[str, bytes | str] = {"pdf": pdf, "txt": caption}
    return [write_file(folder / f"{name}_article.{suffix}", content) for suffix, content in files.items()]


def article_figure(picture: Picture, width: float) -> Figure:
    """The figure without its title and footnote: as many panels in a row as have space, and the legend below them."""
    figure = rendered(picture)
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    columns = max(1, min(2 if len(panels) == 4 else 3, len(panels), int(width / LEAST_PANEL)))
    lines = math.ceil(len(panels) / columns)
    with style():
        figure.suptitle("")
        figure.supxlabel("")
        grid = GridSpec(lines, columns, figure)
        for place, axes in enumerate(panels):
            axes.set_subplotspec(grid[place // columns, place % columns])
            about = axes.get_title() if len(panels) > 1 else ""
            axes.set_title("\n".join(textwrap.wrap(about, int(width / columns / LETTER * 0.8))), y=1.0)
        for text in figure.findobj(Text):
            text.set_fontsize(POINTS)
        for text in (text for axes in panels for text in axes.texts):
            text.set_fontsize(INSIDE)
            text.set_in_layout(False)  # a long one would leave its panel no space
        below = _move_legend(figure, width)
        figure.set_size_inches(width, (ASPECT * width / columns + LINE) * lines + LINE * below)
        figure.set_layout_engine("constrained")
        Canvas(figure)
    return figure


def _move_legend(figure: Figure, width: float) -> int:
    """Put the legend below, in as many columns as fit; the number of its lines."""
    if not figure.legends:
        return 0
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    legend.remove()
    handles = legend_handles(figure.axes)
    columns = max(1, min(len(names), int(width / (HANDLE + LETTER * max(map(len, names))))))
    shown = [handles[name] for name in names]
    figure.legend(shown, names, loc="outside lower center", ncols=columns, fontsize=POINTS, handlelength=2.6)
    return math.ceil(len(names) / columns)
