"""A `TextTable` written as Markdown, LaTeX and CSV."""

from __future__ import annotations

from pathlib import Path

from dpbench.contracts import TextTable
from dpbench.files import write_file
from dpbench.report.footnotes import as_text
from dpbench.report.tables.cells import RULE
from dpbench.report.tables.latex import Grid, latex_tables
from dpbench.report.text import csv_text, markdown, markdown_table


def write_text_table(table: TextTable, folder: Path, name: str, title: str) -> list[Path]:
    """Write `name`.csv, .md and .tex into `folder`; their paths."""
    below = as_text(table.footnotes)
    text = f"# {markdown(title)}\n\n{markdown_table(table.header, table.rows)}\n\n{markdown(below)}\n"
    caption = as_text([title, *table.footnotes, *([RULE] if table.best else [])])
    tex = latex_tables(Grid.of(table.header, table.rows, table.best), caption, name)
    contents = {
        "csv": csv_text(table.tidy),
        "md": text,
        "tex": f"% needs \\usepackage{{booktabs}}\n\n{tex}\n",
    }
    return [write_file(folder / f"{name}.{suffix}", content) for suffix, content in contents.items()]
