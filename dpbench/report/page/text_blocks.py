"""The tables that `dpbench figures` writes, read back: headings, paragraphs, lists and tables of plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dpbench.report.page.filters import Tags

_CELL = re.compile(r"\|((?:\\.|[^\\|])*)(?=\|)")


@dataclass(frozen=True)
class Links:
    """The links of the numbers of a table: (row, column) -> cells of trials, and the tags these give rows and
    columns.
    """

    cells: Mapping[tuple[int, int], list[int]] = field(default_factory=dict)
    rows: Mapping[int, Tags] = field(default_factory=dict)
    columns: Mapping[int, Tags] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """Whether a number comes from several cells."""
        return any(len(places) > 1 for places in self.cells.values())


@dataclass
class Block:
    """A `kind`: "heading", "paragraph", "item" of a list, with its text, or "table", with header, rows and links."""

    kind: str
    text: str = ""
    level: int = 0
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    links: Links = field(default_factory=Links)


def blocks(text: str) -> list[Block]:
    """The blocks of a Markdown file as `report.text.markdown_table` and its like write it.

    >>> heading, table = blocks("# A\\n\\n| a | b |\\n| --- | --- |\\n| 1 | x\\\\|y |")
    >>> heading.text, table.header, table.rows
    ('A', ['a', 'b'], [['1', 'x|y']])
    """
    found: list[Block] = []
    for line in text.splitlines():
        before = found[-1] if found else None
        if line.startswith("|") and before is not None and before.kind == "table":
            if not line.startswith("| ---"):
                before.rows.append(list(_cells(line)))
        elif line.startswith("|"):
            found.append(Block("table", header=list(_cells(line))))
        elif line.startswith("#"):
            marks, _, title = line.partition(" ")
            found.append(Block("heading", _plain(title), len(marks)))
        elif line.startswith("- "):
            found.append(Block("item", _plain(line[2:])))
        elif line.strip():
            found.append(Block("paragraph", _plain(line)))
        else:
            found.append(Block("blank"))  # ends a table
    return [block for block in found if block.kind != "blank"]


def _cells(line: str) -> Iterator[str]:
    return (_plain(cell.strip()) for cell in _CELL.findall(line))


def _plain(text: str) -> str:
    """The text without the backslashes of `report.text.markdown`."""
    return re.sub(r"\\(.)", r"\1", text)
