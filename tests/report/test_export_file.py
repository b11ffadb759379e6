import json
import lzma
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Failure
from dpbench.metrics.evaluation import Score
from dpbench.report.export_file import (
    FOLDER,
    FORMAT,
    NAME,
    SUFFIX,
    add_to_export,
    answers,
    exports_in,
    first_ledgers,
    load_export,
    write_export,
)
from dpbench.report.frames.frame import tidy_frame
from dpbench.report.frames.ledgers import FirstLedger

from .made_up import make_grid, make_score, make_trial

NOISE = [{"kind": "gaussian", "label": "X'X", "multiplier": 4.844805262605389, "sensitivity": 2.0}]
MORE = [*NOISE, {"kind": "exponential", "label": "choice", "epsilon": 0.1}]


def lines(path):
    return lzma.decompress(path.read_bytes()).decode().splitlines()


def ledgers(path):
    return {
        cell.ledger.release: (cell.ledger.repetition, cell.ledger.events) for cell in load_export(path) if cell.ledger
    }


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


def test_an_export_without_details_loses_those_of_earlier_trials_too_and_nothing_else(tmp_path):
    scored = [
        make_trial("aim", scores=[make_score("coverage", 1.0, lower=[place])], repetition=place) for place in (1, 2)
    ]
    write_export(scored[:1], tmp_path)
    kept = loaded(add_to_export(scored[1:], tmp_path, details=False))
    assert [score.detail for trial in kept for score in trial.scores] == [None, None]
    assert as_text(kept) == as_text(
        [make_trial("aim", scores=[make_score("coverage", 1.0)], repetition=place) for place in (1, 2)]
    )


def test_new_trials_take_the_place_of_those_that_answer_the_same(tmp_path):
    old = make_grid(repetitions=2)
    write_export(old, tmp_path)
    again = replace(old[0], notes={"again": True})
    more = make_trial("aim", mse=0.5, repetition=9)
    add_to_export([again, more], tmp_path)
    assert as_text(loaded(tmp_path / "trials.jsonl.xz")) == as_text([again, *old[1:], more])


def test_each_cell_has_the_first_ledger_that_there_is_and_equal_ones_stand_there_once(tmp_path):
    aim, ssp = ([make_trial(name, repetition=place) for place in range(3)] for name in ("aim", "ssp"))
    rows = [make_trial("aim", "linear_rows", repetition=place) for place in range(3)]
    exact = make_trial("exact", epsilon="inf")
    known = {aim[1].release_id: MORE, aim[2].release_id: NOISE, ssp[0].release_id: NOISE}
    path = write_export([*aim, *ssp, *rows, exact], tmp_path, lambda trial: known.get(trial.release_id))
    assert ledgers(path) == {aim[1].release_id: (1, MORE), ssp[0].release_id: (0, NOISE)}
    header, *rest = lines(path)
    assert json.loads(header) == {"format": FORMAT, "cells": 4, "ledgers": 2} and len(rest) == 2 + 4
    assert as_text(loaded(path)) == as_text([*aim, *ssp, *rows, exact])
    found = first_ledgers(load_export(path))
    first = FirstLedger(aim[1].release_id, 1, MORE)
    assert found == {one.release_id: first for one in aim} | {one.release_id: found[ssp[0].release_id] for one in ssp}


def test_a_release_of_two_experiments_has_its_own_ledger_where_one_of_them_does(tmp_path):
    trials = [make_trial("aim", repetition=place) for place in range(2)]
    alone = replace(trials[1], experiment="later")
    known = {trials[0].release_id: MORE, trials[1].release_id: NOISE}
    path = write_export([*trials, alone], tmp_path, lambda trial: known[trial.release_id])
    for cells in (load_export(path), load_export(path)[::-1]):
        assert {release: one.events for release, one in first_ledgers(cells).items()} == known


def test_without_ledgers_an_export_has_none(tmp_path):
    header, *rest = lines(write_export(make_grid(repetitions=1), tmp_path))
    assert json.loads(header) == {"format": FORMAT, "cells": len(rest), "ledgers": 0}
    assert not any("ledger" in json.loads(line) for line in rest)


@pytest.mark.parametrize(("earlier", "repetitions"), [(1, 1), (1, 2), (2, 2)])
def test_an_export_of_an_earlier_format_has_identities_too_and_is_read_as_ever(earlier, repetitions, tmp_path):
    trials = make_grid(repetitions=repetitions)
    path = write_export(trials, tmp_path, lambda trial: NOISE if earlier == 2 else None)
    text, cells, kept = lzma.decompress(path.read_bytes()).decode(), load_export(path), ledgers(path)
    header, *rest = map(json.loads, text.splitlines())
    start = header["ledgers"]
    for line, cell in zip(rest[start:], cells, strict=True):
        ids = {"id": cell.ids, "release_id": cell.release_ids}
        if "dict" in line["records"]:
            line["records"]["dict"] |= {name: {"each": each} for name, each in ids.items()}
        else:
            line["records"]["all"] |= {name: each[0] for name, each in ids.items()}
    header = {"cells": len(cells), "format": earlier} | ({"ledgers": start} if earlier == 2 else {})
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in [header, *rest]).encode()))
    assert as_text(loaded(path)) == as_text(trials) and ledgers(path) == kept and bool(kept) == (earlier == 2)
    assert lines(add_to_export(trials[:1], tmp_path)) == text.splitlines(), "the next one that is written is of today's"


def test_no_identity_is_written_as_all_follow_from_the_keys(tmp_path):
    trials = make_grid(repetitions=2)
    path = write_export(trials, tmp_path)
    text = lzma.decompress(path.read_bytes()).decode()
    assert not any(one.id in text or one.release_id in text for one in trials)
    assert {one.id: one.release_id for one in loaded(path)} == {one.id: one.release_id for one in trials}


def test_trials_that_ended_otherwise_stand_apart_and_have_the_ledger_of_their_cell(tmp_path):
    trials = [make_trial(repetition=0), make_trial(repetition=1, status="failed"), make_trial(repetition=2)]
    path = write_export(trials, tmp_path, lambda trial: MORE if trial is trials[0] else None)
    cells = load_export(path)
    assert sorted((cell.count, *set(cell.column("status"))) for cell in cells) == [(1, "failed"), (2, "done")]
    assert set(first_ledgers(cells)) == {one.release_id for one in trials}


def test_ledgers_outlive_their_releases_and_give_way_with_them(tmp_path):
    old = [make_trial("aim", repetition=place) for place in range(2)]
    write_export(old, tmp_path, lambda trial: MORE if trial is old[0] else None)
    later = make_trial("aim", repetition=2)
    stored = [later.release_id, make_trial("ssp").release_id]
    path = add_to_export(
        [later, make_trial("ssp")], tmp_path, lambda trial: NOISE if trial.release_id in stored else None
    )
    assert ledgers(path) == {old[0].release_id: (0, MORE), make_trial("ssp").release_id: (0, NOISE)}
    assert ledgers(add_to_export([replace(old[0], notes={"again": True})], tmp_path))[old[0].release_id] == (0, MORE)
    again = add_to_export(old, tmp_path, lambda trial: NOISE)
    assert ledgers(again)[old[0].release_id] == (0, NOISE), "what is at hand comes before what was"
    other = replace(old[0], release_id="another")
    assert ledgers(add_to_export([other], tmp_path)) == {make_trial("ssp").release_id: (0, NOISE)}


def test_an_old_export_takes_in_the_ledgers_of_new_trials(tmp_path):
    old = make_grid(repetitions=2)
    write_export(old, tmp_path)
    path = add_to_export([old[-1]], tmp_path, lambda trial: NOISE if trial.release_id == old[-1].release_id else None)
    assert ledgers(path) == {old[-1].release_id: (1, NOISE)} and as_text(loaded(path)) == as_text(old)


def test_an_export_of_the_same_trials_stays_as_it_is_however_it_was_compressed(tmp_path):
    trials = make_grid(repetitions=3)
    path = write_export(trials, tmp_path)
    before = lzma.compress(lzma.decompress(path.read_bytes()), preset=0)
    path.write_bytes(before)
    add_to_export(trials[::2], tmp_path)
    assert path.read_bytes() == before
    add_to_export([replace(trials[0], notes={"again": True})], tmp_path)
    assert path.read_bytes() != before


def test_zeros_of_either_sign_and_numbers_of_either_kind_are_distinguished(tmp_path):
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


def test_what_a_score_says_of_private_rows_besides_its_value_is_left_out(tmp_path):
    score = Score("coverage", 0.5, "", "none", {"population": [0.515506]})
    made = [make_trial(repetition=k, scores=[score], metrics=["coverage"]) for k in (0, 1)]
    trials = [replace(trial, public=k > 0) for k, trial in enumerate(made)]
    private, public = sorted(loaded(write_export(trials, tmp_path)), key=lambda trial: trial.public)
    assert private.scores == (replace(score, detail=None),) and public.scores == (score,)


def test_scores_keep_all_digits_their_details_and_notes_six(tmp_path):
    third, detail = 1 / 3, {"lower": [[2 / 3, 1e-300], [None, 7]], "columns": ["a"]}
    score = Score("coverage", third, "", "none", detail)
    trial = make_trial(scores=[score], metrics=["coverage"], notes={"sigma2": 1e9 * third, "bins": 123_456_789_012})
    (exported,) = loaded(write_export([replace(trial, public=True)], tmp_path))
    rounded = {"lower": [[0.666667, 1e-300], [None, 7]], "columns": ["a"]}
    assert exported.scores == (replace(score, detail=rounded),)
    assert exported.notes == {"sigma2": 333_333_000.0, "bins": 123_456_789_012}


def test_the_text_of_an_error_on_private_rows_is_left_out(tmp_path):
    reported = Failure("ValueError", "the row 1.23 of Ann", "...")
    trials = [replace(make_trial(repetition=k, status="failed"), public=k > 0, error=reported) for k in (0, 1)]
    private, public = sorted(loaded(write_export(trials, tmp_path)), key=lambda trial: trial.public)
    assert private.error == Failure("ValueError", "(left out: the rows are private)") and public.error == reported


@pytest.mark.parametrize(
    "content", [b"no archive", lzma.compress(b"{"), lzma.compress(b'{"format": 0, "cells": 0}'), b""]
)
def test_a_damaged_export_is_named(content, tmp_path):
    (tmp_path / "trials.jsonl.xz").write_bytes(content)
    with pytest.raises(UserError, match="is damaged or of another version"):
        load_export(tmp_path / "trials.jsonl.xz")


@pytest.mark.parametrize(
    ("old", "new"), [('"events":0', '"events":3'), ('"kind"', '"kin"'), ('"ledgers":1', '"ledgers":0'), ('"rep', '"re')]
)
def test_a_ledger_that_does_not_fit_is_named_when_it_is_read(old, new, tmp_path):
    path = write_export([make_trial(repetition=k) for k in (0, 1)], tmp_path, lambda trial: NOISE)
    path.write_bytes(lzma.compress("\n".join(line.replace(old, new) for line in lines(path)).encode()))
    with pytest.raises(UserError, match="is damaged or of another version"):
        load_export(path)


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


def test_an_experiment_is_answered_by_its_cells_and_those_of_other_versions_come_apart(tmp_path):
    small = ["experiment=quickstart", "epsilon=[0.5]", "mechanism=[exact,ssp]", "model=[linear_statistics]"]
    experiment = compose([*small, "repetitions=3"])
    keys = [trial for item in make_plan(experiment).releases for trial in item.trials]
    stored = [replace(make_trial(), key=key, id=key.id, release_id=key.release.id) for key in keys]
    other = replace(stored[0], key=stored[0].key.unversioned())
    write_export([other, *stored[1:], make_trial("aim")], tmp_path)
    cells = load_export(tmp_path / "trials.jsonl.xz")
    found = answers(cells, experiment)
    assert {trial.id for trial in found.own} == {trial.id for trial in stored[1:]} and found.planned == len(stored)
    assert [trial.key for trial in found.others] == [other.key]
    fewer = answers(cells, compose([*small, "repetitions=2"])).own
    assert {trial.key.release.repetition for trial in fewer} == {0, 1}
    own = answers(cells, compose([*small, "repetitions={ssp: 1, others: 3}"]))
    assert len(own.own) + len(own.others) == own.planned == 2 * 1 + 3, "SSP has two calibrations"
    assert not answers(cells, compose([*small, "repetitions=3", "seed=1"])).own


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
    found, _, asked = answers(load_export(tmp_path / "trials.jsonl.xz"), experiment)
    assert len(found) == asked == len(keys)
    assert {trial.experiment for trial in found} == {experiment.name}


def test_a_paper_has_an_export_for_each_experiment_before_the_one_of_all_that_it_may_have(tmp_path):
    old = make_grid(repetitions=2)
    write_export(old, tmp_path)
    again = replace(old[0], notes={"again": True})
    for name, own in (("b", [make_trial("aim")]), ("a", [again])):
        add_to_export(own, tmp_path / FOLDER, name=name + SUFFIX)
    found = exports_in(tmp_path)
    assert [path.name for path in found] == ["a.jsonl.xz", "b.jsonl.xz", NAME]
    assert as_text(loaded(found[0])) == as_text([again]) and as_text(loaded(found[2])) == as_text(old)
    assert exports_in(tmp_path / "absent") == []


def test_a_trial_that_two_experiments_computed_on_other_processors_is_a_row_once():
    trial = make_trial()
    again = replace(trial, experiment="again", scores=(replace(trial.scores[0], value=0.1 + 1e-15),))
    assert tidy_frame([trial, again]).equals(tidy_frame([trial]))
    with pytest.raises(UserError, match="stored twice with different scores"):
        tidy_frame([trial, replace(again, experiment=trial.experiment)])


def test_trials_whose_releases_were_not_copied_are_named(tmp_path, caplog):
    trials = [
        *(make_trial("ssp", repetition=k) for k in range(3)),
        make_trial("adassp"),
        make_trial("exact", epsilon=math.inf),
    ]
    add_to_export(trials, tmp_path, lambda trial: NOISE if trial.release_id == trials[1].release_id else None)
    assert "no privacy ledger for 1 of 2 settings" in caplog.text and "copy the folder releases/ too" in caplog.text
    caplog.clear()
    add_to_export(trials, tmp_path, lambda trial: NOISE)
    assert not caplog.text
