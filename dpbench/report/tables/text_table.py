"""A `TextTable` written as Markdown, LaTeX and CSV."""

from __future__ import annotations

from pathlib import Path

from dpbench.contracts import TextTable
from dpbench.files import write_file
from dpbench.report.footnotes import as_text
from dpbench.report.text import csv_text, latex, latex_table, markdown, markdown_table


def write_text_table(table: TextTable, folder: Path, name: str, title: str) -> list[Path]:
    """Write `name`.csv, .md and .tex into `folder`; their paths."""
    below = as_text(table.footnotes)
    text = f"# {markdown(title)}\n\n{markdown_table(table.header, table.rows)}\n\n{markdown(below)}\n"
    tex = latex_table([latex(cell) for cell in table.header], table.rows, f"{title}. {below}")
    contents = {
        "csv": csv_text(table.tidy),
        "md": text,
        "tex": f"% needs \\usepackage{{booktabs}}\n\n{tex}\n",
    }
    return [write_file(folder / f"{name}.{suffix}", content) for suffix, content in contents.items()]
