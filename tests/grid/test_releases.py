"""Stored releases: read only if their files are whole and what their name says."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.grid.records import PartKey, ReleaseKey
from dpbench.grid.releases import _KEPT, read_release, write_release
from dpbench.grid.store import Store
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SufficientStatistics


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, "grid")
    store.prepare()
    return store


def release_key(name):
    return ReleaseKey({"name": "csv"}, {"train_rows": 9}, 0, 0, PartKey(name, "m", {}, "1"), Budget(1.0))


@pytest.fixture
def release(small_domain):
    statistics = SufficientStatistics(np.eye(2), np.ones(2), 1.0, 1.0)
    return Release(small_domain, Budget(1.0), Ledger([Gaussian("x", 1.0, 2.0)]), (statistics,))


def put(store, release, name):
    place, _ = write_release(store, release_key(name), release, {"provenance": {}})
    return release_key(name).id, place


def test_a_release_comes_back_with_arrays_that_cannot_be_written_to(store, release):
    stands = put(store, release, "ssp")
    _KEPT.clear()
    for _ in ("from its files", "again"):
        stored = read_release(store, *stands)
        assert np.array_equal(stored.release[SufficientStatistics].xtx, np.eye(2))
        assert ReleaseKey.from_dict(stored.record["key"]) == release_key("ssp")
        assert stored.record["provenance"] == {}
        with pytest.raises(ValueError, match="read-only"):
            stored.release[SufficientStatistics].xtx[0, 0] = 7


def test_what_was_just_written_is_what_the_files_hold(store, release):
    """In the same layout too, on which sums depend in their last bits."""
    arrays = np.asfortranarray(np.arange(4.0).reshape(2, 2) + 0.1)
    statistics = SufficientStatistics(arrays, np.arange(4.0)[::2], 1.0, 1.0)
    stands = put(store, replace(release, parts=(statistics,)), "ssp")
    kept = read_release(store, *stands)
    arrays[0, 0] = 7.0
    _KEPT.clear()
    read = read_release(store, *stands)
    assert kept.record == read.record
    for one, two in zip(*(stored.release.to_parts()[1].values() for stored in (kept, read)), strict=True):
        assert np.array_equal(one, two)
        assert one.flags == two.flags or one.flags.f_contiguous == two.flags.f_contiguous


def test_a_release_that_a_reader_changed_is_read_as_it_was_written(store, release):
    stands = put(store, replace(release, diagnostics={"rounds": [1, 2]}), "ssp")
    read_release(store, *stands).release.diagnostics["rounds"].clear()
    assert read_release(store, *stands).release.diagnostics == {"rounds": [1, 2]}


@pytest.mark.parametrize("suffix", [".jsonl", ".bin"])
def test_a_release_with_a_damaged_file_counts_as_none(store, release, suffix):
    stands = put(store, release, "ssp")
    _KEPT.clear()
    (path,) = (store.root / "releases").glob(f"*{suffix}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert read_release(store, *stands) is None


def test_a_release_is_not_read_as_another_ones(store, release):
    (one, _), (_, place) = put(store, release, "ssp"), put(store, release, "adassp")
    assert read_release(store, one, place) is None


@pytest.mark.parametrize("size", [2, 200])
def test_large_arrays_are_compressed_and_come_back_to_the_bit(store, small_domain, release, size):
    xtx = np.asfortranarray(np.arange(size**2, dtype=float).reshape(size, size) / 7)
    large = replace(release, parts=(SufficientStatistics(xtx, np.ones(size), 1.0, 1.0),))
    stands = put(store, large, "ssp")
    found = read_release(store, *stands).release[SufficientStatistics].xtx
    assert np.array_equal(found, xtx) and found.flags.f_contiguous
    assert (sum(path.stat().st_size for path in (store.root / "releases").glob("*.bin")) < xtx.nbytes) == (size == 200)
