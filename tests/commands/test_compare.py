"""`dpbench compare`: folders and commits against each other."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from dpbench.cli import main
from dpbench.grid.store import Store
from dpbench.report.export_file import write_export
from tests.report.made_up import make_trial


@pytest.fixture(scope="module")
def stored(workbench, tmp_path_factory):
    bench = workbench(tmp_path_factory.mktemp("stored"))
    assert bench.run("mechanism=[adassp]", "repetitions=4") == 0
    return bench


def test_a_folder_is_equal_to_itself_and_to_its_export(stored, capsys):
    assert main(["figures", "name=grid", f"results={stored.results}"]) == 0
    alone = stored.folder / "alone" / "grid"
    alone.mkdir(parents=True)
    shutil.copy(stored.results / "grid" / "trials.jsonl.xz", alone)
    capsys.readouterr()
    for second in (stored.results, stored.results / "grid", alone):
        assert main(["compare", str(stored.results), str(second), "--tolerance", "0"]) == 0
        assert "1 cells are in both, with 6 scores: 6 equal" in capsys.readouterr().out


def test_a_difference_is_shown_and_breaks_a_tolerance(stored, capsys):
    def doubled(trial):
        return replace(trial, scores=tuple(replace(score, value=2 * score.value) for score in trial.scores))

    other = stored.folder / "other"
    write_export(map(doubled, Store(stored.results, "grid").all_trials()), other)
    capsys.readouterr()
    assert main(["compare", str(stored.results), str(other), "--tolerance", "0.05"]) == 1
    out = capsys.readouterr().out
    (line,) = (line for line in out.splitlines() if " mse " in line)
    assert line.split()[:4] == ["csv", "adassp", "(tight)/linear_statistics", "1"] and "beyond the tolerance" in line
    assert main(["compare", str(stored.results), str(other)]) == 0  # there is no tolerance to break


def test_scores_that_were_lost_are_told_with_and_without_a_tolerance(tmp_path, capsys):
    for name, status in (("first", "done"), ("second", "failed")):
        write_export([make_trial(repetition=k, status=status) for k in range(4)], tmp_path / name)
    line = ["compare", str(tmp_path / "first"), str(tmp_path / "second")]
    assert main([*line, "--tolerance", "0.05"]) == main(line) == 1
    assert "values missing in the second" in capsys.readouterr().out


def test_trials_without_a_partner_are_told(tmp_path, capsys):
    for name, count in (("first", 6), ("second", 7)):
        write_export([make_trial(repetition=k) for k in range(count)], tmp_path / name)
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    assert main(["compare", first, second]) == 0
    assert "0 trials of the first and 1 of the second have no partner" in capsys.readouterr().out
    assert main(["compare", first, first]) == 0
    out = capsys.readouterr().out
    assert "no partner" not in out and "None" not in out


def test_a_commit_is_read_from_the_repository(stored, capsys, monkeypatch):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(stored.folder)]
    monkeypatch.chdir(stored.folder)
    for line in (["init", "-q"], ["add", "results"], ["commit", "-q", "-m", "results"]):
        subprocess.run([*git, *line], check=True)
    assert main(["compare", "HEAD", "results"]) == 0
    assert main(["compare", "HEAD:results/grid", "results"]) == 0
    assert capsys.readouterr().out.count("6 equal") == 2


def test_what_cannot_be_compared_is_told(stored, capsys):
    empty = stored.folder / "empty"
    empty.mkdir()
    for line, told in (
        ([str(stored.results), str(empty)], "holds no trials"),
        ([str(stored.results), "nowhere"], "neither a folder nor, in this repository, a commit"),
        ([str(stored.results), str(stored.results), "--tolerance", "5"], "at least 0 and below 1"),
    ):
        assert main(["compare", *line]) == 2
        assert told in capsys.readouterr().err


def test_methods_of_one_run_are_compared_pair_by_pair(tmp_path, capsys):
    """The second is worse by 1 in each run, the third by noise of mean 0 around the first (fixed numbers)."""
    trials = []
    for k, (base, noise) in enumerate(zip((1.0, 5.0, 2.0, 9.0), (0.1, -0.2, 0.15, -0.02), strict=True)):
        for name, value in (("aim", base), ("mst", base + 1), ("ssp", base + noise)):
            trials.append(make_trial(mechanism=name, repetition=k, mse=value))
    write_export(trials, tmp_path / "own")
    assert main(["compare", str(tmp_path / "own"), "--methods", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    verdicts = {line.split()[3].split("/")[0]: line for line in out.splitlines() if " mse " in line}
    (best,) = (name for name, line in verdicts.items() if "best mean" in line)
    assert len(verdicts) == 3 and {"aim", "ssp"} >= {best} and verdicts["mst"].rstrip().endswith("worse")
    assert sum("cannot tell" in line for line in verdicts.values()) == 1 and "paired differences" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"methods.csv", "methods.md", "methods.tex"}
    for line, said in (([str(tmp_path), "--methods"], "leave out B"), ([], "takes two sets"), (["--out", "x"], "two")):
        assert main(["compare", str(tmp_path / "own"), *line]) == 2 and said in capsys.readouterr().err
