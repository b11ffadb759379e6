"""Tables over the whole domain and weighted rows as models: their marginals, rows and stored form."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, load_model
from dpbench.inference.points import HistogramModel, WeightedRows, histogram_mb

SIZES = {"a": 3, "b": 2, "c": 4}
FEW = {"a": 3, "b": 2}
CODES = np.array([[0, 0], [2, 1], [2, 0]])


@pytest.fixture
def model():
    distribution = np.random.default_rng(0).random((3, 2, 4)) ** 4
    return HistogramModel(SIZES, 500.0, 1, 0.0, distribution / distribution.sum())


def test_its_marginals_are_the_sums_of_its_table(model):
    found = model.answer([("a", "c"), ("b",), (), ("a", "b", "c")])
    np.testing.assert_allclose(found["a", "c"], 500 * model.distribution.sum(axis=1))
    np.testing.assert_allclose(found["b",], 500 * model.distribution.sum(axis=(0, 2)))
    np.testing.assert_allclose(found["a", "b", "c"], 500 * model.distribution)
    assert found[()] == 500


def test_its_rows_have_the_counts_of_its_table_up_to_rounding(model):
    rows = model.sample(2000, np.random.default_rng(1))
    counts = np.zeros((3, 2, 4))
    np.add.at(counts, tuple(rows.T), 1)
    assert np.abs(counts - 2000 * model.distribution).max() <= 1
    assert len(np.unique(rows[:100], axis=0)) > 5  # in random order


def test_what_is_stored_answers_and_samples_to_the_same_bits(model):
    again = load_model(*model.state())
    assert again.answer([("a", "b")])["a", "b"].tobytes() == model.answer([("a", "b")])["a", "b"].tobytes()
    rows = [one.sample(50, np.random.default_rng(2)).tobytes() for one in (model, again)]
    assert rows[0] == rows[1]
    data, arrays = model.state()
    with pytest.raises(InferenceError, match="shape"):
        load_model(data, {"law": arrays["law"][:2]})


def test_its_size_is_that_of_all_cells(model):
    assert model.size_mb == histogram_mb(SIZES) == 24 * 8 / 2**20


@pytest.fixture
def weighted():
    return WeightedRows(FEW, 100.0, 1, 0.0, CODES, np.array([0.5, 0.2, 0.3]))


def test_marginals_of_weighted_rows_by_hand(weighted):
    found = weighted.answer([("a",), ("a", "b"), ()])
    np.testing.assert_allclose(found["a",], [50, 0, 50])
    np.testing.assert_allclose(found["a", "b"], [[50, 0], [0, 0], [30, 20]])
    assert found[()] == 100


def test_rows_drawn_of_weighted_ones_are_those_given_as_often_as_expected(weighted):
    rows, counts = np.unique(weighted.sample(1000, np.random.default_rng(0)), axis=0, return_counts=True)
    assert rows.tolist() == sorted(CODES.tolist()) and np.abs(counts - [500, 300, 200]).max() <= 1


def test_stored_weighted_rows_answer_and_sample_to_the_same_bits(weighted):
    again = load_model(*weighted.state())
    assert again.answer([("b",)])["b",].tobytes() == weighted.answer([("b",)])["b",].tobytes()
    assert again.sample(50, np.random.default_rng(2)).tolist() == weighted.sample(50, np.random.default_rng(2)).tolist()
    data, arrays = weighted.state()
    with pytest.raises(InferenceError, match="3 rows"):
        load_model(data, arrays | {"codes": arrays["codes"][:2]})
