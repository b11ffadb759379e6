"""A submission is on a leaderboard with the numbers that can be compared, and with no others."""

import math
import re
from dataclasses import replace

import pytest

from dpbench.config import Paper, compose
from dpbench.metrics.evaluation import Score
from dpbench.report.export_file import load_export, write_export
from dpbench.report.site.boards import board_of
from dpbench.report.site.leaderboards import Pages
from dpbench.report.site.rendering import Site
from dpbench.report.site.submitted import entries_of
from dpbench.report.submissions import About, Submission

from ..made_up import make_trial
from .test_site import SPEC

ABOUT = About("My method", "A. Name", "arena_regression", "arena 1.0", "0.1.0")


@pytest.fixture(scope="module")
def adult():
    return {"adult": compose(["dataset=adult"]).dataset}


@pytest.fixture
def board(tmp_path):
    errors = {"ssp": 0.3, "adassp": 0.1}
    trials = [make_trial(name, mse=mse, repetition=n, epsilon=1.0) for name, mse in errors.items() for n in (0, 1)]
    return made_of([*trials, make_trial("exact", mse=0.05, epsilon="inf")], tmp_path)


def made_of(trials, folder, spec=SPEC):
    paper = Paper("one", "One", {"panels": {}, "figures": [spec]}, {})
    return board_of(paper, spec, load_export(write_export(trials, folder)))


def submitted(folder, trials):
    return Submission(ABOUT, load_export(write_export(trials, folder, name="submitted.jsonl.xz")))


def test_it_has_the_rank_that_it_would_have_and_changes_no_other(board, adult, tmp_path):
    ranks = board.private.set_index("series")["rank"].to_dict()
    trials = [make_trial("mine", mse=mse, repetition=n, epsilon=1.0) for n, mse in enumerate((0.15, 0.25))]
    (entry,) = entries_of(board, submitted(tmp_path, trials), adult, ())
    (row,) = entry.rows
    assert row.cell["mean"] == pytest.approx(0.2) and row.cell["rank"] == 2 and row.cell["series"] == "My method"
    assert entry.ranks == {1.0: (2.0, 1, 0)}
    assert board.private.set_index("series")["rank"].to_dict() == ranks == {"AdaSSP": 1, "SSP": 2}


def test_its_own_word_on_which_direction_is_better_is_not_read(board, adult, tmp_path):
    trial = make_trial("mine", mse=0.9, epsilon=1.0)
    scores = tuple(replace(score, direction="higher", unit="points") for score in trial.scores)
    (entry,) = entries_of(board, submitted(tmp_path, [replace(trial, scores=scores)]), adult, ())
    assert entry.rows[0].cell["rank"] == 3 and entry.rows[0].cell["unit"] == "scaled target^2"


@pytest.mark.parametrize(
    "other", [{"rows": 100}, {"epsilon": 2.0}, {"delta": 1e-6}, {"dataset": "fire"}, {"data": {"a": 1}}]
)
def test_numbers_of_other_rows_or_budgets_are_not_on_the_leaderboard(board, adult, tmp_path, other):
    trial = make_trial("mine", mse=0.01, **{"epsilon": 1.0, **other})
    assert entries_of(board, submitted(tmp_path, [trial]), adult, ()) == []


def test_a_metric_with_other_settings_is_another_metric(board, adult, tmp_path):
    trial = make_trial("mine", mse=0.01, epsilon=1.0)
    metrics = tuple(replace(metric, parameters={"clip": 1}) for metric in trial.key.metrics)
    key = replace(trial.key, metrics=metrics)
    assert entries_of(board, submitted(tmp_path, [replace(trial, key=key, id=key.id)]), adult, ()) == []


def test_a_method_of_which_a_run_has_no_value_ranks_last(board, adult, tmp_path):
    trials = [make_trial("mine", mse=mse, repetition=n, epsilon=1.0) for n, mse in enumerate((0.01, None))]
    (entry,) = entries_of(board, submitted(tmp_path, trials), adult, ())
    assert entry.rows[0].cell["rank"] == 3 and not math.isnan(entry.rows[0].cell["mean"])


def test_beside_its_mark_are_another_protocol_and_how_many_tables(board, adult, tmp_path):
    arena = replace(board, spec={**SPEC, "experiments": ["arena_regression"]})
    (entry,) = entries_of(arena, submitted(tmp_path, [make_trial("mine", mse=0.2, epsilon=1.0)]), adult, ())
    assert entry.mark == "self-reported, arena 1.0, 1 of 1 tables" and arena.protocol != "arena 1.0"
    same = replace(entry, about=replace(ABOUT, protocol=arena.protocol, recomputed=1))
    assert same.mark == "recomputed, 1 of 1 tables"


@pytest.mark.parametrize(("mse", "mark"), [(0.04, "below the error without privacy"), (0.06, ""), (None, "")])
def test_a_mean_below_the_error_without_privacy_is_marked(board, adult, tmp_path, mse, mark):
    arena = replace(board, spec={**SPEC, "experiments": ["arena_regression"]})
    (entry,) = entries_of(arena, submitted(tmp_path, [make_trial("mine", mse=mse, epsilon=1.0)]), adult, ())
    Pages(arena, adult, ()).write(site := Site(tmp_path / "pages"), [entry])
    page = (site.folder / "boards" / f"{arena.name}.md").read_text()
    assert re.findall(r"</a> <em>(\w+ the [^<]*)</em></td>", page) == ([mark] if mark else [])


def test_a_score_above_that_without_privacy_is_marked(adult, tmp_path):
    def trial(name, value, epsilon):
        return make_trial(name, epsilon=epsilon, scores=[Score("auc", value, "", "higher")], metrics=["auc"])

    board = made_of([trial("ssp", 0.7, 1.0), trial("exact", 0.8, "inf")], tmp_path, {**SPEC, "metric": "auc"})
    for value, mark in ((0.9, "above the score without privacy"), (0.75, "")):
        (entry,) = entries_of(board, submitted(tmp_path, [trial("mine", value, 1.0)]), adult, ())
        assert [entry.beyond(row) for row in entry.rows] == [mark]
