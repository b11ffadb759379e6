import json
import lzma
from dataclasses import replace
from itertools import pairwise

import pytest

from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Failure
from dpbench.metrics.evaluation import Score
from dpbench.report.export import FORMAT, add_to_export, answers, load_export, write_export

from .made_up import make_grid, make_score, make_trial


def loaded(path):
    return [trial for cell in load_export(path) for trial in cell.trials]


def as_text(trials):
    return sorted(json.dumps(trial.to_dict(), sort_keys=True) for trial in trials)


def test_every_field_of_every_trial_is_kept(tmp_path):
    other = {"commit": "other", "dirty": True, "versions": {"numpy": "2"}, "threads": 1, "cpu": "y"}
    trials = [
        *make_grid(repetitions=2),
        make_trial("aim", mse=None, notes={"bins": 3}),
        make_trial("aim", scores=[make_score("coverage", 1.0, edges=[1, 2.5], counts=[])], repetition=7),
        replace(make_trial("mst"), provenance=other, release_provenance=other),
    ]
    assert as_text(loaded(write_export(trials, tmp_path))) == as_text(trials)


def test_new_trials_take_the_place_of_those_that_answer_the_same(tmp_path):
    old = make_grid(repetitions=2)
    write_export(old, tmp_path)
    again = replace(old[0], notes={"again": True})
    more = make_trial("aim", mse=0.5, repetition=9)
    add_to_export([again, more], tmp_path)
    assert as_text(loaded(tmp_path / "trials.jsonl.xz")) == as_text([again, *old[1:], more])


def test_an_export_of_the_same_trials_stays_as_it_is_however_it_was_compressed(tmp_path):
    trials = make_grid(repetitions=3)
    path = write_export(trials, tmp_path)
    before = lzma.compress(lzma.decompress(path.read_bytes()), preset=0)
    path.write_bytes(before)
    add_to_export(trials[::2], tmp_path)
    assert path.read_bytes() == before
    add_to_export([replace(trials[0], notes={"again": True})], tmp_path)
    assert path.read_bytes() != before


def test_zeros_of_either_sign_and_numbers_of_either_kind_are_told_apart(tmp_path):
    values = [0.0, -0.0, 1, 1.0, True, None, "", [], [1.0], [1], {}, {"a": 0.0}, {"a": -0.0}, [{"a": 1}], [{"a": 1.0}]]
    trials = [make_trial(repetition=k, notes={"one": one}) for k, one in enumerate([v for v in values for _ in "ab"])]
    for pair in pairwise(trials):
        assert as_text(loaded(write_export(pair, tmp_path))) == as_text(pair)


def test_trials_of_one_cell_and_release_share_their_keys(tmp_path):
    write_export(make_grid(repetitions=3), tmp_path)
    cells = load_export(tmp_path / "trials.jsonl.xz")
    cell = next(cell for cell in cells if cell.key.fit.model.name == "linear_marginals")
    rows = next(other for other in cells if other.key.fit.model.name == "linear_rows")
    assert [trial.key.release.repetition for trial in cell.trials] == [0, 1, 2]
    assert len({id(trial.key.fit.model) for trial in cell.trials}) == 1
    assert rows.key.release is cell.key.release


def test_what_a_score_says_of_private_rows_beside_its_value_is_left_out(tmp_path):
    score = Score("coverage", 0.5, "", "none", {"population": [0.515506]})
    made = [make_trial(repetition=k, scores=[score], metrics=["coverage"]) for k in (0, 1)]
    trials = [replace(trial, public=k > 0) for k, trial in enumerate(made)]
    private, public = sorted(loaded(write_export(trials, tmp_path)), key=lambda trial: trial.public)
    assert private.scores == (replace(score, detail=None),) and public.scores == (score,)


def test_the_text_of_an_error_on_private_rows_is_left_out(tmp_path):
    told = Failure("ValueError", "the row 1.23 of Ann", "...")
    trials = [replace(make_trial(repetition=k, status="failed"), public=k > 0, error=told) for k in (0, 1)]
    private, public = sorted(loaded(write_export(trials, tmp_path)), key=lambda trial: trial.public)
    assert private.error == Failure("ValueError", "(left out: the rows are private)") and public.error == told


@pytest.mark.parametrize(
    "content", [b"no archive", lzma.compress(b"{"), lzma.compress(b'{"format": 0, "cells": 0}'), b""]
)
def test_a_damaged_export_is_named(content, tmp_path):
    (tmp_path / "trials.jsonl.xz").write_bytes(content)
    with pytest.raises(UserError, match="is damaged or of another version"):
        load_export(tmp_path / "trials.jsonl.xz")


@pytest.mark.parametrize(
    ("old", "new"), [('"runtime"', '"time"'), ('"each":[0,1]', '"each":[0]'), ('"records"', '"record"')]
)
def test_an_export_of_other_fields_is_named_when_it_is_read(old, new, tmp_path):
    path = write_export([make_trial(repetition=k) for k in (0, 1)], tmp_path)
    text = lzma.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(lzma.compress(text.replace(old, new).encode()))
    with pytest.raises(UserError, match="is damaged or of another version"):
        load_export(path)


def test_an_export_that_was_cut_or_is_not_there(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load_export(tmp_path / "absent.jsonl.xz")
    header = json.dumps({"format": FORMAT, "cells": 2})
    (tmp_path / "cut.xz").write_bytes(lzma.compress(header.encode()))
    with pytest.raises(UserError, match="cut"):
        load_export(tmp_path / "cut.xz")


def test_an_experiment_is_answered_by_its_cells_whatever_code_made_them(tmp_path):
    small = ["experiment=quickstart", "epsilon=[0.5]", "mechanism=[exact,ssp]", "model=[linear_statistics]"]
    experiment = compose([*small, "repetitions=3"])
    keys = [trial for item in make_plan(experiment).releases for trial in item.trials]
    stored = [replace(make_trial(), key=key.uncoded(), id=key.id, release_id=key.release.id) for key in keys]
    write_export([*stored, make_trial("aim")], tmp_path)
    cells = load_export(tmp_path / "trials.jsonl.xz")
    found, asked = answers(cells, experiment)
    assert {trial.id for trial in found} == {trial.id for trial in stored} and asked == len(stored)
    fewer, _ = answers(cells, compose([*small, "repetitions=2"]))
    assert {trial.key.release.repetition for trial in fewer} == {0, 1}
    assert not answers(cells, compose([*small, "repetitions=3", "seed=1"]))[0]


def test_what_two_experiments_have_answers_once_and_by_the_trials_of_its_own(tmp_path):
    small = ["experiment=quickstart", "epsilon=[0.5]", "mechanism=[exact,ssp]", "model=[linear_statistics]"]
    experiment = compose([*small, "repetitions=3"])
    keys = [trial for item in make_plan(experiment).releases for trial in item.trials]
    trials = [
        replace(make_trial(), key=key, id=key.id, release_id=key.release.id, experiment=name)
        for name in ("another", experiment.name, "yet_another")
        for key in keys
    ]
    write_export(trials, tmp_path)
    found, asked = answers(load_export(tmp_path / "trials.jsonl.xz"), experiment)
    assert len(found) == asked == len(keys)
    assert {trial.experiment for trial in found} == {experiment.name}
