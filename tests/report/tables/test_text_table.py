"""A table as a reader gets it: Markdown and LaTeX with its footnotes, and twelve digits as CSV."""

import pandas as pd
import pytest

from dpbench.contracts import TextTable
from dpbench.report.tables.text_table import write_text_table


@pytest.fixture
def texts(tmp_path):
    """The three files of a table, by their endings."""
    tidy = pd.DataFrame({"row": ["a_b"], "value": [0.123456789012345]})
    table = TextTable(["", "ε = 1"], [["a_b", "0.12 | 5%"]], ["First sentence", "", "Second."], tidy)
    paths = write_text_table(table, tmp_path / "tables", "table1", "A_title")
    assert [path.name for path in paths] == ["table1.csv", "table1.md", "table1.tex"]
    return {path.suffix[1:]: path.read_text() for path in paths}


def test_markdown_has_title_cells_and_footnotes_with_its_marks_escaped(texts):
    assert texts["md"].splitlines() == [
        "# A\\_title", "", "|  | ε = 1 |", "| --- | --- |", "| a\\_b | 0.12 \\| 5% |", "", "First sentence. Second."
    ]  # fmt: skip


def test_latex_is_a_whole_table_whose_caption_has_title_and_footnotes(texts):
    assert texts["tex"].startswith("% needs \\usepackage{booktabs}")
    assert r"\caption{A\_title. First sentence. Second.}" in texts["tex"]
    assert r"& $\varepsilon$ = 1 \\" in texts["tex"] and r"a\_b & 0.12 $|$ 5\% \\" in texts["tex"]


def test_csv_has_twelve_digits(texts):
    assert texts["csv"] == "row,value\na_b,0.123456789012\n"
