import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from made_up import REPORT, make_grid, make_trial

from dpbench.config.reports import checked_report
from dpbench.errors import UserError
from dpbench.report import build
from dpbench.report.build import build_report, export_in, load_export
from dpbench.targets import use_folder

HERE = Path(__file__).parent
CHILD = """
import sys
from pathlib import Path
from made_up import REPORT
from dpbench.report.build import build_report, load_export
build_report(load_export(Path(sys.argv[1])), REPORT, Path(sys.argv[2]), "limits: smoke")
"""


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_trials_give_the_same_bytes(tmp_path):
    trials = make_grid()
    shuffled = random.Random(3).sample(trials, len(trials))
    paths = build_report(trials, REPORT, tmp_path / "a", "limits: smoke")
    build_report(shuffled, REPORT, tmp_path / "b", "limits: smoke")
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parents[1]}"}
    command = [sys.executable, "-c", CHILD, str(tmp_path / "a" / "trials.jsonl"), str(tmp_path / "c")]
    subprocess.run(command, check=True, env=environment)
    expected = contents(tmp_path / "a")
    assert sorted(expected) == sorted(str(path.relative_to(tmp_path / "a")) for path in paths)
    for other in ("b", "c"):
        found = contents(tmp_path / other)
        assert list(found) == list(expected)
        assert [name for name in expected if found[name] != expected[name]] == []


def test_files_of_a_report(tmp_path):
    names = [str(path.relative_to(tmp_path)) for path in build_report(make_grid(), REPORT, tmp_path)]
    assert names == [
        *(f"figures/mse.{suffix}" for suffix in ("pdf", "png", "csv")),
        *(f"tables/linreg_adult.{suffix}" for suffix in ("csv", "md", "tex")),
        "tables/linreg_adult_runs.md",
        "trials.jsonl",
    ]


def test_figures_carry_no_date(tmp_path):
    build_report([make_trial()], REPORT, tmp_path)
    assert b"CreationDate" not in (tmp_path / "figures/mse.pdf").read_bytes()
    assert b"matplotlib" not in (tmp_path / "figures/mse.png").read_bytes().lower()


def test_export_keeps_every_field(tmp_path):
    trials = [make_trial(), make_trial(repetition=1, status="failed"), make_trial("exact", epsilon="inf")]
    build_report(trials + trials[:1], REPORT, tmp_path)
    assert load_export(tmp_path / "trials.jsonl") == sorted(trials, key=lambda trial: trial["id"])


def test_an_export_of_many_trials_is_compressed_and_takes_the_place_of_the_plain_one(tmp_path, monkeypatch):
    trials = [make_trial(repetition=k) for k in range(3)]
    build_report(trials[:2], REPORT, tmp_path)
    monkeypatch.setattr(build, "MOST_PLAIN", 2)
    build_report(trials, REPORT, tmp_path)
    assert export_in(tmp_path) == tmp_path / "trials.jsonl.xz" and not (tmp_path / "trials.jsonl").exists()
    assert load_export(tmp_path / "trials.jsonl.xz") == sorted(trials, key=lambda trial: trial["id"])
    (tmp_path / "trials.jsonl.xz").write_bytes(b"no archive")
    with pytest.raises(UserError, match="is damaged"):
        load_export(tmp_path / "trials.jsonl.xz")


def test_no_trials_is_the_users_matter(tmp_path):
    with pytest.raises(UserError, match="no stored trials"):
        build_report([], REPORT, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_export_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load_export(tmp_path / "absent.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\n{"id":')
    with pytest.raises(UserError, match="line 2 is not JSON"):
        load_export(tmp_path / "bad.jsonl")


def test_metrics_and_figures_may_be_left_out(tmp_path):
    build_report([make_trial()], {}, tmp_path)
    text = (tmp_path / "tables/linreg_adult.md").read_text()
    assert "## mse" in text and "## r2" in text and "ssp / linear" in text.replace("\\", "")


def test_runs_tell_commit_versions_and_cost_of_each_release_once(tmp_path):
    trials = make_grid()
    (path,) = [path for path in build_report(trials, {}, tmp_path) if path.name.endswith("_runs.md")]
    text = path.read_text()
    assert trials[0]["provenance"]["commit"] in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][2:]
    assert sum(int(row[3]) for row in rows) == len({trial["release_id"] for trial in trials})


def test_a_table_that_is_asked_for_stands_in_place_of_that_of_all_metrics(tmp_path):
    spec = {"name": "mse", "kind": "comparison_table", "title": "T", "metric": "mse", "x": "release.split.train_rows"}
    paths = build_report(make_grid(repetitions=1), REPORT | {"figures": [spec]}, tmp_path)
    tables = [path.name for path in paths if path.parent.name == "tables"]
    assert tables == ["mse.csv", "mse.md", "mse.tex", "linreg_adult_runs.md"]


def test_an_empty_figure_does_not_take_the_place_of_a_good_one(tmp_path):
    build_report(make_grid(repetitions=1), REPORT, tmp_path)
    before = contents(tmp_path / "figures")
    other = make_grid(repetitions=1)
    for trial in other:
        trial["scores"] = [score for score in trial["scores"] if score["name"] != "mse"]
        trial["key"]["metrics"] = ["r2"]
    build_report(other, REPORT | {"metrics": ["r2"]}, tmp_path)
    assert contents(tmp_path / "figures") == before


PIE = """
from matplotlib.figure import Figure

def pie(frame, labels, spec, notes):
    figure = Figure()
    figure.add_subplot().pie([len(frame), spec["slice"]])
    return figure, frame[["trial"]]
"""


def test_a_kind_of_figure_comes_from_outside(tmp_path):
    own = tmp_path / "own"
    (own / "figure").mkdir(parents=True)
    (own / "pies.py").write_text(PIE)
    (own / "figure" / "pie.yaml").write_text("pie:\n  _target_: pies.pie\n  _required_: {slice: int}\n")
    spec = {"name": "slices", "kind": "pie", "slice": 3}
    use_folder(own)
    try:
        paths = build_report([make_trial()], REPORT | {"figures": [spec]}, tmp_path)
        assert tmp_path / "figures" / "slices.png" in paths
        with pytest.raises(UserError, match="'slyce'; did you mean 'slice'"):
            checked_report({"figures": [{**spec, "slyce": 4}]}, ["mse"])
    finally:
        use_folder(None)
