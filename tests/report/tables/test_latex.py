"""LaTeX tables that fit: widths by the letters, cut into tabulars and tables that together show every cell once."""

import re

import pytest

from dpbench.report.tables.latex import GAP, LINES, SIZES, WIDTH, Grid, latex_tables, text_width


def grid(columns, rows, cell="0.08123 ± 0.00011 (5)", groups=1, best=()):
    header = ["", *(f"ε = {column}" for column in range(columns))]
    texts = [[f"method {row}", *(f"{cell} {row}/{column}" for column in range(columns))] for row in range(rows)]
    return Grid(header, texts, [f"set {row * groups // rows}" for row in range(rows)], best=best)


def plain(text):
    return re.sub(r"\\(?:textbf|emph)\{(.*?)\}", r"\1", text).replace(r"$\pm$", "±").replace(r"$\varepsilon$", "ε")


def widths(tex):
    """Of each tabular, by its own lines and its size; columns that break their lines have their own width."""
    for table in tex.split("\\begin{table}")[1:]:
        scale = next(wide for size, wide in reversed(SIZES.items()) if size in table)
        for form, body in re.findall(r"\\begin\{tabular\}\{(.*?)\}\n(.*?)\\end\{tabular\}", table, re.DOTALL):
            lines = [plain(line).rstrip(" \\").split(" & ") for line in body.splitlines() if " & " in line]
            columns = zip(*lines, strict=True)
            natural = [scale * max(text_width(cell.strip()) for cell in column) for column in columns]
            fixed = [float(width) if width else None for width in re.findall(r"[lr]|p\{(\d+)pt", form)]
            assert len(fixed) == len(natural)
            yield sum(own or wide for own, wide in zip(fixed, natural, strict=True)) + GAP * len(natural)


@pytest.mark.parametrize("cell", ["0.08", "0.0812 ± 0.0011", "0.08123 ± 0.00011 (3; 2 failed)"])
@pytest.mark.parametrize(("columns", "rows", "groups"), [(2, 3, 1), (5, 9, 1), (12, 20, 4), (3, 130, 1), (4, 90, 45)])
def test_every_tabular_fits_the_line_and_every_table_the_page_and_no_cell_is_lost(columns, rows, groups, cell):
    made = grid(columns, rows, cell, groups)
    tex = latex_tables(made, "Title", "name")
    assert 0 < max(widths(tex)) <= WIDTH
    for table in tex.split("\\end{table}"):
        assert len(re.findall(r" \\\\$", table, re.MULTILINE)) <= LINES
    shown = plain(tex)
    for row in made.rows:
        assert all(shown.count(f"{cell} &") + shown.count(f"{cell} \\\\") == 1 for cell in row[1:]), row[0]
    labels = re.findall(r"\\label\{(.*?)\}", tex)
    assert labels[0] == "tab:name" and len(set(labels)) == len(labels) == tex.count("\\begin{table}")
    assert tex.count(r"\caption{Title}") == 1 and tex.count(r"\toprule") == tex.count("\\begin{tabular}")


def test_what_fits_stays_one_tabular_and_is_not_made_smaller():
    tex = latex_tables(grid(2, 3), "Title", "a b&c")
    assert tex.count("tabular}{lrr}") == 1 and "footnotesize" not in tex and r"\label{tab:a-b-c}" in tex
    smaller = latex_tables(grid(5, 3, cell="0.08 ± 0.01"), "Title", "x")
    assert smaller.count("footnotesize") == 1 == smaller.count("\\begin{tabular}")


def test_a_text_longer_than_a_line_is_broken():
    tex = latex_tables(grid(2, 2, cell="not precise enough, " * 10), "Title", "name")
    assert re.search(r"tabular\}\{lp\{\d+pt\}\}", tex) and max(widths(tex)) <= WIDTH


def test_groups_are_named_above_their_rows_and_rows_without_a_value_are_left_out():
    made = Grid.of(["", "", "1", "2"], [["adult", "SSP", "0.1", ""], ["adult", "AIM", "", ""]], {(0, 2)})
    tex = latex_tables(made, "Title", "name")
    assert r"\multicolumn{3}{l}{\emph{adult}} \\" in tex and r"SSP & \textbf{0.1} &  \\" in tex and "AIM" not in tex


def test_of_the_best_the_number_alone_is_bold():
    tex = latex_tables(grid(1, 2, cell="(1.2 ± 0.3)e-09 (5; 2 failed)", best={(1, 1)}), "Title", "name")
    assert tex.count("textbf") == 1 and r"method 1 & \textbf{(1.2 $\pm$ 0.3)e-09} (5; 2 failed) 1/0 \\" in tex


def test_the_letters_of_the_widths_are_not_narrower_than_those_of_computer_modern():
    """In points of cmr10, from its metrics."""
    known = {"0": 5.0, "a": 5.0, "m": 8.33, "w": 7.22, "i": 2.78, "k": 5.28, "t": 3.89, "M": 9.17, "W": 10.28}
    known |= {"S": 5.56, "J": 5.14, "I": 3.61, " ": 3.33, "(": 3.89, "-": 3.33, "%": 8.33, "&": 7.78, "±": 7.78}
    assert [letter for letter, width in known.items() if text_width(letter) < round(width, 1)] == []
