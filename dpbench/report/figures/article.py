"""Figures as an article prints them: as wide as its column, letters of one size, title and footnote in a text file."""

from __future__ import annotations

import io
import math
import textwrap
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text

from dpbench.errors import UserError
from dpbench.files import write_file
from dpbench.report.figures.style import Canvas, footnote_of, legend_handles, style

POINTS, INSIDE = 8.0, 6.0  # of letters, as in most journals' captions, and of those inside of a panel
ASPECT, LINE, LETTER = 0.72, 0.16, 0.062  # height of a panel over its width; inches of a line and of a letter
LEAST_PANEL, HANDLE = 2.0, 0.5  # inches: width of a panel, and of a line in the legend
LEAST, MOST = 2.0, 20.0  # inches that a figure can be wide


def check_width(width: float) -> None:
    """Raises `UserError` for a width in inches that no page has."""
    if not LEAST <= width <= MOST:
        raise UserError(
            f"--width is in inches, from {LEAST:g} to {MOST:g}, such as 3.4 for one column and 7 for two, not {width:g}"
        )


def save_for_article(figure: Figure, folder: Path, name: str, width: float) -> list[Path]:
    """Write `name`_article.pdf, `width` inches wide, and `name`_article.txt, what its caption may say; their paths.

    The figure itself changes: as many panels in a row as have space, and the legend below them.
    """
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    columns = max(1, min(2 if len(panels) == 4 else 3, len(panels), int(width / LEAST_PANEL)))
    lines = math.ceil(len(panels) / columns)
    title = figure.get_suptitle() or panels[0].get_title()
    caption = f"{' '.join(title.split())}\n\n{footnote_of(figure)}\n"
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
        file = io.BytesIO()
        figure.savefig(file, format="pdf", metadata=dict.fromkeys(["CreationDate", "Creator", "Producer"]))
    files: dict[str, bytes | str] = {"pdf": file.getvalue(), "txt": caption}
    return [write_file(folder / f"{name}_article.{suffix}", content) for suffix, content in files.items()]


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
