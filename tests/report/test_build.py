import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dpbench.config import compose
from dpbench.config.reports import checked_report
from dpbench.errors import UserError
from dpbench.report.build import build_report, draw_table
from dpbench.report.export_file import write_export
from dpbench.report.frames.results import Results
from dpbench.report.picture.save import save_figure
from dpbench.targets import use_folder

from .made_up import LABELS, REPORT, make_grid, make_trial

WITH_PDF = partial(save_figure, pdf=True)
CHILD = """
import sys
from functools import partial
from pathlib import Path
from dpbench.config import compose
from dpbench.report.build import build_report
from dpbench.report.export_file import load_export
from dpbench.report.picture.save import save_figure
from dpbench.report.frames.results import Results
trials = [trial for cell in load_export(Path(sys.argv[1])) for trial in cell.trials]
results = Results(compose(["experiment=quickstart"]), trials, ["limits: smoke"])
build_report(results, Path(sys.argv[2]), partial(save_figure, pdf=True))
"""


@pytest.fixture(scope="module")
def quickstart():
    return compose(["experiment=quickstart"])


@pytest.fixture
def results(quickstart):
    """results(trials, a note, figures=[...]) of the quickstart, with the report of these tests and these changes."""

    def made(trials, *notes, **changes):
        return Results(replace(quickstart, report={**quickstart.report, **REPORT, **changes}), trials, notes)

    return made


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_trials_give_the_same_bytes(quickstart, tmp_path):
    trials = make_grid()
    shuffled = random.Random(3).sample(trials, len(trials))
    paths = build_report(Results(quickstart, trials, ["limits: smoke"]), tmp_path / "a", WITH_PDF)
    build_report(Results(quickstart, shuffled, ["limits: smoke"]), tmp_path / "b", WITH_PDF)
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", CHILD, str(write_export(trials, tmp_path)), str(tmp_path / "c")]
    subprocess.run(command, check=True, env=environment)
    expected = contents(tmp_path / "a")
    assert sorted(expected) == sorted(str(path.relative_to(tmp_path / "a")) for path in paths)
    for other in ("b", "c"):
        found = contents(tmp_path / other)
        assert list(found) == list(expected)
        assert [name for name in expected if found[name] != expected[name]] == []


def test_files_of_a_report(results, tmp_path):
    names = [str(path.relative_to(tmp_path)) for path in build_report(results(make_grid()), tmp_path)]
    assert names == [
        *(f"figures/mse.{suffix}" for suffix in ("png", "csv")),
        *(f"tables/quickstart.{suffix}" for suffix in ("csv", "md", "tex")),
        "tables/quickstart_runs.md",
    ]


def test_figures_carry_no_date(results, tmp_path):
    build_report(results([make_trial()]), tmp_path, WITH_PDF)
    assert b"CreationDate" not in (tmp_path / "figures/mse.pdf").read_bytes()
    assert b"matplotlib" not in (tmp_path / "figures/mse.png").read_bytes().lower()


def test_no_trials_is_the_users_matter(results, tmp_path):
    with pytest.raises(UserError, match="no stored trials"):
        build_report(results([]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_metrics_and_figures_may_be_left_out(results, tmp_path):
    build_report(results([make_trial()], metrics=[], figures=[], labels={}), tmp_path)
    text = (tmp_path / "tables/quickstart.md").read_text()
    assert "## mse" in text and "## r2" in text and "ssp / linear" in text.replace("\\", "")


def test_a_table_that_is_asked_for_stands_in_place_of_that_of_all_metrics(results, tmp_path):
    spec = {"name": "mse", "kind": "comparison_table", "title": "T", "metric": "mse", "x": "release.split.train_rows"}
    paths = build_report(results(make_grid(repetitions=1), figures=[spec]), tmp_path)
    tables = [path.name for path in paths if path.parent.name == "tables"]
    assert tables == ["mse.csv", "mse.md", "mse.tex", "quickstart_runs.md"]


def test_a_table_has_the_notes_and_is_not_written_without_trials(results, tmp_path):
    spec = {"name": "t", "kind": "comparison_table", "title": "T", "metric": "mse"}
    paths = draw_table([results([make_trial()])], LABELS, spec, tmp_path, ["limits: smoke"])
    assert [path.name for path in paths] == ["t.csv", "t.md", "t.tex"]
    assert "limits: smoke." in (tmp_path / "tables/t.md").read_text()
    assert r"\toprule" in (tmp_path / "tables/t.tex").read_text()
    assert draw_table([results([])], LABELS, spec, tmp_path / "none", []) == []
    assert draw_table([results([make_trial()])], LABELS, spec | {"show": ["AdaSSP"]}, tmp_path / "none", []) == []
    unpaired = {"kind": "difference_table", "setting": "release.split.protocol", "values": ["authors", "split"]}
    spec |= unpaired | {"x": "release.budget.epsilon"}
    assert draw_table([results([make_trial()])], LABELS, spec, tmp_path / "none", []) == []


def test_an_empty_figure_does_not_take_the_place_of_a_good_one(results, tmp_path):
    build_report(results(make_grid(repetitions=1)), tmp_path)
    before = contents(tmp_path / "figures")
    other = [replace(trial, scores=trial.scores[1:]) for trial in make_grid(repetitions=1)]
    build_report(results(other, metrics=["r2"]), tmp_path)
    assert contents(tmp_path / "figures") == before


PIE = """
from matplotlib.figure import Figure

def pie(frame, labels, spec, notes):
    figure = Figure()
    figure.add_subplot().pie([len(frame), spec["slice"]])
    return figure, frame[["trial"]]
"""


def test_a_kind_of_figure_comes_from_outside(results, tmp_path):
    own = tmp_path / "own"
    (own / "figure").mkdir(parents=True)
    (own / "pies.py").write_text(PIE)
    (own / "figure" / "pie.yaml").write_text("pie:\n  _target_: pies.pie\n  slice: int\n")
    spec = {"name": "slices", "kind": "pie", "slice": 3}
    use_folder(own)
    try:
        paths = build_report(results([make_trial()], figures=[spec]), tmp_path)
        assert tmp_path / "figures" / "slices.png" in paths
        with pytest.raises(UserError, match="'slyce'; did you mean 'slice'"):
            checked_report({"figures": [{**spec, "slyce": 4}]}, ["mse"])
    finally:
        use_folder(None)
