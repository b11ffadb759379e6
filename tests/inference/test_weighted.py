"""Weighted rows as a model: their marginals, samples and stored form."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, load_model
from dpbench.inference.weighted import WeightedRows

SIZES = {"a": 3, "b": 2}
CODES = np.array([[0, 0], [2, 1], [2, 0]])


@pytest.fixture
def model():
    return WeightedRows(SIZES, 100.0, 1, 0.0, CODES, np.array([0.5, 0.2, 0.3]))


def test_its_marginals_by_hand(model):
    found = model.answer([("a",), ("a", "b"), ()])
    np.testing.assert_allclose(found["a",], [50, 0, 50])
    np.testing.assert_allclose(found["a", "b"], [[50, 0], [0, 0], [30, 20]])
    assert found[()] == 100


def test_its_rows_are_those_given_as_often_as_expected(model):
    rows, counts = np.unique(model.sample(1000, np.random.default_rng(0)), axis=0, return_counts=True)
    assert rows.tolist() == sorted(CODES.tolist()) and np.abs(counts - [500, 300, 200]).max() <= 1


def test_what_is_stored_answers_and_samples_to_the_same_bits(model):
    again = load_model(*model.state())
    assert again.answer([("b",)])["b",].tobytes() == model.answer([("b",)])["b",].tobytes()
    assert again.sample(50, np.random.default_rng(2)).tolist() == model.sample(50, np.random.default_rng(2)).tolist()
    data, arrays = model.state()
    with pytest.raises(InferenceError, match="3 rows"):
        load_model(data, arrays | {"codes": arrays["codes"][:2]})
