"""Stored fits: what was fitted is scored again to the bit, and nothing foreign is loaded."""

import numpy as np
import pytest

from dpbench.errors import ContractError
from dpbench.grid import seeds
from dpbench.grid.fits import read_fit, read_header, write_fit
from dpbench.grid.records import FitKey, PartKey, ReleaseKey
from dpbench.grid.store import Store
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget

RELEASE = ReleaseKey({"name": "csv"}, {"train_rows": 9}, 0, 0, PartKey("ssp", "m", {}, "1"), Budget(1.0))
KEY = FitKey(RELEASE, PartKey("linear", "m", {}, "1"), {})
RECORD = {"arrays_sha256": "ab", "runtime": {"seconds": 0.5, "peak_mb": 10.0}}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "salt"))
    store = Store(tmp_path, "grid")
    store.prepare()
    return store


def linear():
    X = np.random.default_rng(0).normal(size=(5, 3))
    moments = (np.asfortranarray(X.T @ X), X[0])
    return Fit(X[0], moments, {"rank": 3}, intervals=X[:2].T)


class Doubling:
    """A predictor."""

    def __call__(self, X):
        return 2 * X[:, 0]


def test_a_fit_comes_back_to_the_bit_with_its_record(store):
    fit = linear()
    back = read_fit(store, KEY, "ab", write_fit(store, KEY, fit, RECORD))
    given, found = ((one.coefficients, one.intervals, *one.moments) for one in (fit, back))
    for one, two in zip(given, found, strict=True):
        assert one.tobytes() == two.tobytes()
        assert one.flags.c_contiguous == two.flags.c_contiguous
        assert not two.flags.writeable
    header, _ = read_header(store, KEY, "ab")
    assert header["notes"] == back.notes == {"rank": 3}
    assert header["runtime"] == RECORD["runtime"]


def test_a_fit_of_another_release_or_of_none_is_none(store):
    assert read_header(store, KEY, "ab") is None
    place = write_fit(store, KEY, linear(), RECORD)
    assert read_header(store, KEY, "ab")[1] == place
    assert read_fit(store, KEY, "cd", place) is read_header(store, KEY, "cd") is None


@pytest.mark.parametrize("fit", [linear(), Fit(predictor=Doubling())], ids=["arrays", "predictor"])
@pytest.mark.parametrize("suffix", [".jsonl", ".bin"])
@pytest.mark.parametrize("byte", [0, 50, -1])
def test_a_damaged_fit_is_none(store, fit, suffix, byte):
    place = write_fit(store, KEY, fit, RECORD)
    (path,) = (store.root / "fits").glob(f"*{suffix}")
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)
    assert read_fit(store, KEY, "ab", place) is read_header(store, KEY, "ab") is None
    path.write_bytes(b"")
    assert read_fit(store, KEY, "ab", place) is read_header(store, KEY, "ab") is None


def test_a_predictor_is_loaded_only_if_this_user_wrote_it(store, tmp_path, monkeypatch):
    place = write_fit(store, KEY, Fit(predictor=Doubling()), RECORD)
    assert np.array_equal(read_fit(store, KEY, "ab", place).predict(np.ones((2, 1))), [2, 2])
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "of another user"))
    monkeypatch.setattr("pickle.loads", lambda body: pytest.fail("loaded"))
    assert read_fit(store, KEY, "ab", place) is None


def test_a_predictor_within_a_function_is_refused(store):
    with pytest.raises(ContractError, match="top level of a module"):
        write_fit(store, KEY, Fit(predictor=lambda X: X[:, 0]), RECORD)
