"""Stored files: sealed by a checksum, read only if they are whole and what their name says."""

import json
import logging
import os

import pytest

from dpbench.grid.log_file import sealed
from dpbench.grid.records import FitKey, PartKey, ReleaseKey, Trial, TrialKey
from dpbench.grid.store import Store
from dpbench.metrics.evaluation import Score
from dpbench.privacy.budget import Budget


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, "grid")
    store.prepare()
    return store


def release_key(name):
    return ReleaseKey({"name": "csv"}, {"train_rows": 9}, 0, 0, PartKey(name, "m", {}, "1"), Budget(1.0))


def test_what_another_runner_has_just_renamed_keeps_no_leftover_from_being_dropped(store):
    aside = store.root / ".tmp"
    (aside / "renamed").symlink_to("elsewhere")  # listed, but not there
    for name in "ab":
        (aside / name).touch()
        os.utime(aside / name, (0, 0))
    store.prepare()
    assert [path.name for path in aside.iterdir()] == ["renamed"]


def trial(identity, value=0.5):
    key = TrialKey(FitKey(release_key("ssp"), PartKey("linear", "m", {}, "1"), {}), ())
    vars(key)["id"] = identity
    return Trial(identity, key.release.id, key, "grid", "done", scores=(Score("mse", value, "", "lower"),))


def fresh(store):
    """The store as another process sees it."""
    return Store(store.root, store.name)


def line_of(store):
    """The file of the trials, and where the line of the last one starts."""
    (path,) = store.trials_folder.iterdir()
    return path, path.read_text().rstrip("\n").rindex("\n") + 1


def test_a_trial_comes_back_and_is_plain_json(store):
    for name in "ab":
        store.write_trial(trial(name))
    for one in (store, fresh(store)):
        assert [*one.all_trials()] == [trial("a"), trial("b")]
        assert [*one.read_trials([trial("a").key])] == [trial("a")]
    path, start = line_of(store)
    stored = json.loads(path.read_text()[start:])
    assert (stored["id"], stored["status"], stored["scores"][0]["value"]) == ("b", "done", 0.5)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "\n",
        lambda text: "[]\n",
        lambda text: "{}\n",
        lambda text: text[: len(text) // 2] + "\n",
        lambda text: text.replace("0.5", "0.4"),
        lambda text: text.replace("done", "fail"),
        lambda text: text.replace('"of"', '"if"'),
        lambda text: text + "\n",
    ],
)
def test_a_trial_that_was_changed_is_told_and_counts_as_none(store, caplog, damage):
    store.write_trial(trial("a"))
    store.write_trial(trial("b"))
    path, start = line_of(store)
    text = path.read_text()
    path.write_text(text[:start] + damage(text[start:]))
    other = fresh(store)
    with caplog.at_level(logging.WARNING):
        left = {"a"} if text[start:] not in path.read_text() else {"a", "b"}
        assert other.trials.scan().keys() == left
        assert other.trials.scan().keys() == left
    assert len(caplog.records) == 1
    assert f"{path.name} is damaged" in caplog.text
    assert {found.id for found in other.all_trials()} == left


def test_damage_to_what_trials_share_is_damage_to_each(store, caplog):
    for name in "ab":
        store.write_trial(trial(name))
    (path,) = store.trials_folder.iterdir()
    path.write_text(path.read_text().replace("train_rows", "grain_rows", 1))
    assert not fresh(store).trials.scan()
    assert "is damaged" in caplog.text


def test_damage_that_shows_only_when_a_trial_is_read_is_told(store, caplog):
    store.write_trial(trial("a"))
    other = fresh(store)
    assert "a" in other.trials.scan()
    path, _ = line_of(store)
    path.write_text(path.read_text().replace("0.5", "0.4"))
    assert [*other.read_trials([trial("a").key])] == []
    assert "is damaged" in caplog.text
    assert "a" not in other.trials.scan()


def test_a_trial_that_is_stored_again_stands_for_the_first_whichever_file_it_is_in(store):
    store.write_trial(trial("a", 0.5))
    for value in (0.6, 0.7):
        other = fresh(store)
        other.trials.scan()
        other.write_trial(trial("a", value))
        assert [one.scores[0].value for one in fresh(store).all_trials()] == [value]


def test_a_trial_of_an_earlier_version_is_named_and_counts_as_none(store, caplog):
    record = trial("a").to_dict()
    record["fit"] = record.pop("notes")
    (store.trials_folder / "a.jsonl").write_text(sealed(record))
    assert [*store.all_trials()] == []
    assert "cannot be read as a trial of this version" in caplog.text
