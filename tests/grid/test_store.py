"""Stored files: sealed by a checksum, believed only if they are whole and what their name says."""

import json
import logging

import numpy as np
import pytest

from dpbench.grid.seeds import digest
from dpbench.grid.store import Store
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.privacy.budget import Budget, Event, Ledger


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, "grid")
    store.prepare()
    return store


def trial(identity, value=0.5):
    return {"id": identity, "status": "done", "scores": [{"name": "mse", "value": value}]}


@pytest.fixture
def release(small_domain):
    statistics = SufficientStatistics(np.eye(2), np.ones(2), 1.0, 1.0)
    return Release(small_domain, Budget(1.0), Ledger([Event("gaussian", "x", 1.0, 2.0)]), statistics)


def put(store, release, name):
    key = {"mechanism": {"name": name}}
    store.write_release(digest(key), release, {"id": digest(key), "key": key})
    return digest(key)


def test_a_trial_comes_back_and_is_plain_json(store):
    store.write_trial(trial("a"))
    assert store.trial_ids() == {"a"}
    assert store.read_trial("a") == trial("a")
    stored = json.loads((store.trials_folder / "a.json").read_text())
    assert stored.pop("checksum")
    assert stored == trial("a")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.5", "0.4"),
        lambda text: text.replace("done", "fail"),
        lambda text: text + "\n",
    ],
)
def test_a_trial_file_that_was_changed_is_told_and_counts_as_none(store, caplog, damage):
    store.write_trial(trial("a"))
    store.write_trial(trial("b"))
    path = store.trials_folder / "a.json"
    path.write_text(damage(path.read_text()))
    with caplog.at_level(logging.WARNING):
        assert store.trial_ids() == {"b"}
        assert store.trial_ids() == {"b"}
    assert len(caplog.records) == 1
    assert "a.json is damaged" in caplog.text
    assert store.read_trial("a") is None
    assert [found["id"] for found in store.all_trials()] == ["b"]


def test_a_trial_under_the_name_of_another_is_not_believed(store):
    store.write_trial(trial("a"))
    (store.trials_folder / "a.json").rename(store.trials_folder / "b.json")
    assert store.read_trial("b") is None


def test_a_release_comes_back_with_arrays_that_cannot_be_written_to(store, release):
    identity = put(store, release, "ssp")
    back, record = store.read_release(identity)
    assert np.array_equal(back.statistics.xtx, np.eye(2))
    assert record == {"id": identity, "key": {"mechanism": {"name": "ssp"}}}
    with pytest.raises(ValueError, match="read-only"):
        back.statistics.xtx[0, 0] = 7


@pytest.mark.parametrize("name", ["release.json", "arrays.npz"])
def test_a_release_with_a_damaged_file_counts_as_none(store, release, name):
    identity = put(store, release, "ssp")
    path = store.release_folder(identity) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert store.read_release(identity) is None


def test_a_release_swapped_for_anothers_is_not_believed(store, release):
    one, two = put(store, release, "ssp"), put(store, release, "adassp")
    folders = store.release_folder(one), store.release_folder(two)
    folders[0].rename(folders[0].with_name("aside"))
    folders[1].rename(folders[0])
    folders[0].with_name("aside").rename(folders[1])
    assert store.read_release(one) is None
    arrays = folders[0] / "arrays.npz"
    assert arrays.exists()


def test_arrays_swapped_for_anothers_are_not_believed(store, release, small_domain):
    one = put(store, release, "ssp")
    other = Release(
        small_domain, release.budget, release.ledger, SufficientStatistics(2 * np.eye(2), np.ones(2), 1.0, 1.0)
    )
    two = put(store, other, "adassp")
    arrays = [store.release_folder(identity) / "arrays.npz" for identity in (one, two)]
    arrays[0].write_bytes(arrays[1].read_bytes())
    assert store.read_release(one) is None
    assert store.read_release(two) is not None
