"""A file that is submitted comes from anyone: what cannot be used is refused with one message."""

import json
import lzma
from dataclasses import asdict, replace

import pytest

from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.files import ROOM
from dpbench.grid.records import FitKey, PartKey, TrialKey
from dpbench.report.export_file import write_export
from dpbench.report.submissions import About, read_submission, submissions_in, write_submission

from .made_up import make_trial

BOMB = lzma.compress(bytes(ROOM + 2**20), preset=0)
ABOUT = About("My method", "A. Name", "arena_regression", "arena 1.0", "0.1.0")


def made(repetition=0, spent=0.1, name="mine", **given):
    """A trial of an own mechanism with a model of the project."""
    trial = make_trial(name, repetition=repetition, spent=spent, **given)
    model = PartKey("linear_statistics", "dpbench.models.linear.linear_statistics", {})
    key = TrialKey(FitKey(trial.key.release, model, trial.key.fit.design), trial.key.metrics)
    return replaced(trial, key=key, id=key.id, experiment="arena_regression")


def replaced(trial, **change):
    return type(trial)(**{**vars(trial), **change})


def scored(metric, value):
    """A trial with a score of this metric."""
    trial = made()
    return replaced(trial, scores=(replace(trial.scores[0], name=metric, value=value),))


def written(folder, trials, name="my_method", **header):
    """A file with any header."""
    about = {**asdict(ABOUT), "departs": [], **header}
    return write_export(trials, folder, name=f"{name}.jsonl.xz", about={"submission": about})


def test_what_was_written_is_read(tmp_path):
    trials = [made(0), made(1)]
    path = write_submission(ABOUT, trials, tmp_path / "submissions")
    (found,) = submissions_in(tmp_path)
    assert path.name == "my_method.jsonl.xz" and found.about == ABOUT
    assert [trial.scores for cell in found.cells for trial in cell.trials] == [trial.scores for trial in trials]
    assert found.about.follows == "arena 1.0" and found.about.mark == "self-reported"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"method": "<script>"}, "method must be a name"),
        ({"who": "[me](javascript:alert)"}, "who must be a name"),
        ({"link": "javascript:alert(1)"}, "link must be an address"),
        ({"departs": ["a|b"]}, "departs must be short texts"),
        ({"departs": [3]}, "departs must be short texts"),
        ({"ran_here": "yes"}, "ran_here must be true or false"),
        ({"recomputed": 3}, "3 trials were run again, and it has 1"),
        ({"protocol": None}, "protocol must be the name"),
        ({"more": 1}, "says what is not known"),
        ({"experiment": "arena_queries"}, "is of 'arena_regression', not of arena_queries"),
        ({"method": "Other"}, "must be called other.jsonl.xz"),
        ({"method": "ADA-SSP"}, "ADA-SSP is the name of a method that the leaderboards have: give yours another"),
        ({"method": "gaussian marginals"}, "is the name of a method"),
    ],
)
def test_a_header_that_cannot_be_shown_is_refused(tmp_path, header, message):
    with pytest.raises(UserError, match=message):
        read_submission(written(tmp_path, [made()], **header))


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([], "1 to 100,000 trials"),
        ([made(spent=0.2)], "spent epsilon = 0.2, the budget was 0.1"),
        ([replaced(made(), spent=None)], "has no recorded cost"),
        ([made(epsilon="inf")], "mine is not private"),
        ([made(name="aim")], "aim is the name of another mechanism than 'm.aim'"),
        ([made(name="a mechanism")], "no name: 'a mechanism'"),
        ([made(notes={"seen": "/home/someone/data.csv"})], "names a path of a machine: '/home/someone/data.csv'"),
        ([made(release_seconds="long")], "that is no number"),
        ([replaced(made(), status="well")], "has the status 'well'"),
        ([replaced(made(), public=False)], "on private rows"),
        ([made(mse=-0.1)], r"has mse = -0.1, which is always within \[0, inf\]"),
        ([scored("auc", 1.2)], r"has auc = 1.2, which is always within \[0, 1\]"),
        ([scored("r2", 1.1)], r"has r2 = 1.1, which is always within \[-inf, 1\]"),
    ],
)
def test_trials_that_cannot_be_used_are_refused(tmp_path, trials, message):
    with pytest.raises(UserError, match=message):
        read_submission(written(tmp_path, trials))


def test_a_ledger_that_costs_more_than_its_trial_says_is_refused(tmp_path):
    gaussian = {"kind": "gaussian", "label": "X", "norm": "l2", "sensitivity": 1.0, "multiplier": 0.1, "count": 1}
    with pytest.raises(UserError, match=r"spent epsilon = .*, the budget was 0.1"):
        write_submission(ABOUT, [made()], tmp_path, lambda trial: [gaussian])
    assert list(tmp_path.iterdir()) == [], "nothing is written"


def test_a_method_that_ran_elsewhere_has_no_cost_and_says_so(tmp_path):
    about = About("My method", "A. Name", "arena_regression", "arena 1.0", "0.1.0", ran_here=False)
    write_submission(about, [replaced(made(), spent=None)], tmp_path / "submissions")
    assert submissions_in(tmp_path)[0].about.mark == "self-reported, not run here"


@pytest.mark.parametrize("value", [0.0, -1e-12, None])
def test_a_score_at_the_end_of_its_range_or_without_a_value_is_one(tmp_path, value):
    write_submission(ABOUT, [made(mse=value)], tmp_path / "submissions")
    assert len(submissions_in(tmp_path)) == 1


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ({"recomputed": 1}, {}, "is recomputed by A. Name and would become self-reported by A. Name: delete it first"),
        ({}, {"ran_here": False}, "would become self-reported, not run here"),
        ({}, {"who": "B. Name"}, "is self-reported by A. Name and would become self-reported by B. Name"),
        ({}, {"recomputed": 1}, None),
        ({"recomputed": 1}, {"recomputed": 1, "link": "https://example.org"}, None),
    ],
)
def test_a_file_is_replaced_by_one_that_says_no_less(tmp_path, first, then, message):
    path = write_submission(replace(ABOUT, **first), [made()], tmp_path)
    before, after = path.read_bytes(), replace(ABOUT, **then)
    if message is None:
        assert read_submission(write_submission(after, [made()], tmp_path)).about == after
    else:
        with pytest.raises(UserError, match=message):
            write_submission(after, [made()], tmp_path)
        assert path.read_bytes() == before


def test_trials_are_submitted_under_one_name(tmp_path):
    folder, other = tmp_path / "submissions", replace(ABOUT, method="Other")
    write_submission(ABOUT, [made(0), made(1)], folder)
    with pytest.raises(UserError, match="1 trials of Other are those of My method under another name"):
        write_submission(other, [made(1), made(2)], folder)
    assert [path.name for path in folder.iterdir()] == ["my_method.jsonl.xz"]
    write_submission(other, [made(2)], folder)
    assert len(submissions_in(tmp_path)) == 2
    written(folder, [made(1)], name="third", method="Third")
    with pytest.raises(UserError, match="trials of Third are those of My method"):
        submissions_in(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no xz", lzma.compress(b"{}"), lzma.compress(json.dumps([1]).encode()), BOMB],
)
def test_a_file_that_is_none_is_named(tmp_path, content, capsys):
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "one.jsonl.xz").write_bytes(content)
    assert main(["verify", str(tmp_path)]) == 1
    assert "something is wrong" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"one\.jsonl\.xz is no submission that can be used"):
        submissions_in(tmp_path)
