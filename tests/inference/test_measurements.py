"""Repeated and nested measurements become one consistent table per clique."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, Measurement
from dpbench.inference.measurements import canonical, checked_sizes, fold, loss_of

from .helpers import marginal, measure, skewed_joint

SIZES = {"a": 3, "b": 4, "c": 2}
CLIQUES = [("a",), ("a", "b"), ("b", "c"), ("a", "b"), ("a", "b", "c"), ()]


def measured(sigma, seed):
    rng = np.random.default_rng(seed)
    return measure(skewed_joint(rng, SIZES, 900.0), SIZES, CLIQUES, sigma, rng)


def test_the_folded_tables_agree_on_what_they_share():
    target = fold(SIZES, measured(9.0, 50))
    tables = dict(zip(target.cliques, target.tables, strict=True))
    np.testing.assert_allclose(tables["a", "b"].sum(axis=1), tables["a",])
    np.testing.assert_allclose(tables["a", "b", "c"].sum(axis=2), tables["a", "b"])
    np.testing.assert_allclose(tables["a", "b", "c"].sum(axis=0), tables["b", "c"])
    assert all(table.sum() == pytest.approx(target.total) for table in target.tables)


def test_the_folded_loss_is_that_of_the_measurements_but_for_a_constant():
    ms, rng = measured(9.0, 51), np.random.default_rng(52)
    target, gaps = fold(SIZES, ms), []
    for _ in range(4):
        joint = skewed_joint(rng, SIZES, target.total)
        distributions = {c: marginal(joint, list(SIZES), c) for c in target.cliques}
        squares = [np.sum((distributions[c] - t) ** 2) for c, t in zip(target.cliques, target.tables, strict=True)]
        gaps.append(loss_of(ms, distributions) - 0.5 * np.dot(target.weights, squares))
    np.testing.assert_allclose(gaps, gaps[0])


def test_the_total_is_the_mean_of_least_variance():
    ms = [Measurement(("a",), np.array([10.0, 20.0, 30.0]), 1.0), Measurement((), np.array(90.0), 1.0)]
    assert fold(SIZES, ms).total == pytest.approx((60 / 3 + 90) / (1 / 3 + 1))
    assert fold(SIZES, []).total == 1.0


def test_names_and_numbers_that_fit_nothing_are_refused():
    with pytest.raises(InferenceError, match="unknown attribute 'z'; known: a, b, c"):
        canonical([("z",)], SIZES)
    with pytest.raises(InferenceError, match="values have shape"):
        checked_sizes(SIZES, [Measurement(("a",), np.ones(2), 1.0)])
    with pytest.raises(InferenceError, match="sigma is 0"):
        checked_sizes(SIZES, [Measurement(("a",), np.ones(3), 0.0)])
