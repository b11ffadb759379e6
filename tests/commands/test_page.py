"""`dpbench report` writes what is stored as one page."""

import pytest

from dpbench.cli import main
from dpbench.report.page import page

from ..report.page.reading import cells, with_cells


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    monkeypatch.setattr(page, "vega", lambda: "")


def test_the_page_of_a_run_by_its_folder_alone_with_the_ledgers_of_its_releases(bench, capsys):
    assert bench.run("mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2") == 0
    capsys.readouterr()
    assert main(["report", str(bench.results / "grid")]) == 0
    path = bench.results / "grid" / "report.html"
    assert capsys.readouterr().out.startswith("results/grid/report.html (0.")
    text = with_cells(path.read_text())
    assert "Ledger of the release of repetition 0; of the others listed: 1 the same" in text
    assert "gaussian: " in text and "multiplier" in text
    assert str(bench.folder) not in text, "the folder of a user's own table"


def test_the_page_of_an_export_alone_has_the_ledgers_of_first_releases(bench, capsys):
    bench.has_run("mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2")
    folder = bench.results / "grid"
    bench.keep_the_export_alone()
    assert main(["report", str(folder)]) == 0
    text = with_cells((folder / "report.html").read_text())
    assert "Ledger of the release of repetition 0; of the others listed: 1 not stored" in text
    assert "gaussian: " in text and all(one["ledger"] for one in cells(text) if one["epsilon"] != "∞")


def test_an_empty_folder_is_a_clear_message(tmp_path, capsys):
    assert main(["report", "experiment=quickstart", f"results={tmp_path}"]) == 2
    assert "run it first: dpbench run experiment=quickstart" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", [[], ["paper=dd_ssp", "experiment=quickstart"], ["paper=dd_ssp", "paper=binagg"]])
def test_one_paper_or_run_is_named(line, capsys):
    assert main(["report", *line]) == 2
    assert "give one of paper=..." in capsys.readouterr().err
