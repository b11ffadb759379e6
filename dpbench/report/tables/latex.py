"""LaTeX tables that fit a page: A4 with margins of 2.5 cm, in a document of 10 points.

Widths are estimated from those of the letters of Computer Modern, each rounded up. What is too wide is set smaller,
then cut into several tabulars by its columns; what is too high is cut into several tables by its rows, between groups
of rows where that is possible. It needs the package booktabs alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dpbench.report.text import latex

WIDTH = 455.0  # points of a line
LINES, RULES = 45, 6  # lines of a page, without the caption; of a tabular without its rows
GAP = 12.0  # points between two columns
SIZES = {"": 1.0, "\\footnotesize": 0.85}  # and how wide they are
BOLD = 1.17
_LETTERS = {2.8: "il.,:;'!", 4.0: "fjrst()[]-| I", 5.0: "0123456789acegoz²³/", 5.6: "bdhknpquvxyJS_εδμθ", 10.3: "MW∞—"}
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}
OTHER = 8.4  # points of all other letters


@dataclass(frozen=True)
class Grid:
    """Texts of a table: `header`, `rows`, and of each row the group that it stands in, "" for none.

    `names`: how many columns name the rows, and are repeated. `best`: rows and columns of what is bold.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[str]
    names: int = 1
    best: Collection[tuple[int, int]] = frozenset()

    @classmethod
    def of(cls, header: Sequence[str], rows: Sequence[Sequence[str]], best: Collection[tuple[int, int]] = ()) -> Grid:
        """A table whose first column names the groups, if the second has no header either."""
        if list(header[:2]) != ["", ""]:
            return cls(header, rows, [""] * len(rows), 1, best)
        places = {(row, column - 1) for row, column in best}
        return cls(header[1:], [row[1:] for row in rows], [row[0] for row in rows], 1, places)


@dataclass(frozen=True)
class _Column:
    place: int
    width: float  # points
    natural: float  # of the widest text

    @property
    def form(self) -> str:
        if self.width < self.natural:
            return f"p{{{self.width:.0f}pt}}"
        return "r" if self.place else "l"


def text_width(text: str) -> float:
    """Points that a text takes at a size of 10, at most.

    >>> text_width("0.08 ± 0.01")
    52.0
    """
    return round(sum(_WIDTHS.get(letter, OTHER) for letter in text), 1)


def latex_tables(grid: Grid, caption: str, label: str) -> str:
    """The table, or several of them, in the style of booktabs, with labels for references."""
    size, scale = next((one for one in SIZES.items() if _total(_columns(grid, one[1])) <= WIDTH), [*SIZES.items()][-1])
    parts = list(_parts(_columns(grid, scale), grid.names))
    tabulars = [_tabular(grid, rows, part, scale) for rows in _chunks(grid) for part in parts]
    floats: list[list[str]] = []
    room = 0
    for text in tabulars:
        lines = text.count("\n")
        if not floats or lines > room:
            floats.append([])
            room = LINES
        floats[-1].append(text)
        room -= lines
    label = f"tab:{re.sub(r'[^A-Za-z0-9_-]', '-', label)}"
    found = []
    for number, texts in enumerate(floats, 1):
        said = latex(caption) if number == 1 else f"Continued from Table~\\ref{{{label}}}"
        own = label if number == 1 else f"{label}-{number}"
        head = ["\\begin{table}", "  \\centering", f"  \\caption{{{said}}}", f"  \\label{{{own}}}"]
        head += [f"  {size}"] if size else []
        found.append("\n".join([*head, "\n  \\par\\medskip\n".join(texts), "\\end{table}"]))
    return "\n\n".join(found)


def _columns(grid: Grid, scale: float) -> list[_Column]:
    """The columns; one that is too wide for a tabular of its own breaks its lines."""
    found = list[_Column]()
    for place, name in enumerate(grid.header):
        widths = [text_width(name)]
        widths += [text_width(r[place]) * (BOLD if (at, place) in grid.best else 1) for at, r in enumerate(grid.rows)]
        natural = scale * max(widths)
        most = WIDTH / 2 - GAP if place < grid.names else WIDTH - _total(found[: grid.names]) - GAP
        found.append(_Column(place, min(natural, math.floor(most)), natural))
    return found


def _total(columns: Sequence[_Column]) -> float:
    return sum(column.width + GAP for column in columns)


def _parts(columns: Sequence[_Column], names: int) -> Iterator[list[_Column]]:
    """The columns of each tabular, as few tabulars as fit, each with the names of the rows."""
    part = list(columns[:names])
    for column in columns[names:]:
        if len(part) > names and _total([*part, column]) > WIDTH:
            yield part
            part = list(columns[:names])
        part.append(column)
    yield part


def _chunks(grid: Grid) -> list[list[int]]:
    """The rows of each tabular: whole groups of them, as long as these fit a page."""
    chunks, room, most = list[list[int]](), 0, LINES - RULES
    for name, group in groupby(range(len(grid.rows)), key=lambda row: grid.groups[row]):
        own, heading = list(group), bool(name)
        if heading + len(own) <= room:
            chunks[-1] += own
            room -= heading + len(own)
        else:
            chunks += [own[start : start + most] for start in range(0, len(own), most)]
            room = most - heading - len(chunks[-1])
    return chunks


def _tabular(grid: Grid, rows: Sequence[int], columns: Sequence[_Column], scale: float) -> str:
    lines = [f"  \\begin{{tabular}}{{{''.join(column.form for column in columns)}}}", "    \\toprule"]
    lines += [f"    {' & '.join(latex(grid.header[column.place]) for column in columns)} \\\\", "    \\midrule"]
    group = ""
    for row in rows:
        if not any(grid.rows[row][column.place] for column in columns if column.place >= grid.names):
            continue
        if grid.groups[row] != group:
            group = grid.groups[row]
            form = "l" if scale * text_width(group) * BOLD + GAP <= WIDTH else f"p{{{WIDTH - GAP:.0f}pt}}"
            lines.append(f"    \\multicolumn{{{len(columns)}}}{{{form}}}{{\\emph{{{latex(group)}}}}} \\\\")
        cells = (_cell(grid, row, column.place) for column in columns)
        lines.append(f"    {' & '.join(cells)} \\\\")
    return "\n".join([*lines, "    \\bottomrule", "  \\end{tabular}"])


def _cell(grid: Grid, row: int, place: int) -> str:
    """A text; of one that is bold, what stands before the brackets."""
    text = latex(grid.rows[row][place])
    number, bracket, rest = text.partition(" (")
    return f"\\textbf{{{number}}}{bracket}{rest}" if (row, place) in grid.best else text
