"""Residuals of marginals: they make the tables again, are estimated by least squares, and have the variances stated."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from dpbench.inference import Measurement
from dpbench.inference.residuals import Residuals, centred, centring, whole_centred

from .helpers import marginal, measure, skewed_joint

SIZES = {"a": 3, "b": 4, "c": 2}
EVERY = [r for k in range(4) for r in combinations(SIZES, k)]


def exact(joint, variance=1.0):
    values = {r: centred(marginal(joint, list(SIZES), r)) for r in EVERY}
    return Residuals(SIZES, values, dict.fromkeys(EVERY, variance))


def sums(clique):
    """The marginal of a clique as a matrix that a table over the domain, as a vector, is multiplied by."""
    factors = [np.eye(m) if name in clique else np.ones((1, m)) for name, m in SIZES.items()]
    return np.kron(np.kron(factors[0], factors[1]), factors[2])


def test_the_residuals_of_a_table_make_all_of_its_marginals():
    joint = skewed_joint(np.random.default_rng(0), SIZES, 500.0)
    for r in EVERY:
        np.testing.assert_allclose(exact(joint).marginal(r), marginal(joint, list(SIZES), r), atol=1e-9)


def test_a_residual_sums_to_0_along_each_axis_and_has_whole_multiples():
    table = np.random.default_rng(1).integers(0, 50, (3, 4, 2))
    residual = centred(table.astype(float))
    assert all(np.abs(residual.sum(axis=axis)).max() < 1e-12 for axis in range(3))
    whole = whole_centred(table)
    assert whole.dtype == np.int64
    np.testing.assert_allclose(whole, residual * table.size, atol=1e-9)
    one = np.zeros((3, 4, 2))
    one[1, 2, 0] = 1
    assert np.sum(centred(one) ** 2) == pytest.approx(centring(SIZES, ("a", "b", "c"))) == pytest.approx(1 / 4)


def test_the_variance_of_a_cell_is_that_of_its_noise():
    """From the covariance matrix of all residuals, with another scale for each."""
    scales = dict(zip(EVERY, np.random.default_rng(2).uniform(0.5, 3, len(EVERY)), strict=True))
    residuals = Residuals(SIZES, {}, {r: scale**2 for r, scale in scales.items()})
    for clique in EVERY:
        covariance = np.zeros((math.prod(SIZES[n] for n in clique),) * 2)
        for r in (r for r in EVERY if set(r) <= set(clique)):
            parts = [
                (np.eye(m) - 1 / m) if name in r else np.full((m, m), 1 / m**2)
                for name, m in SIZES.items()
                if name in clique
            ]
            term = np.ones((1, 1))
            for part in parts:
                term = np.kron(term, part)
            covariance += scales[r] ** 2 * term
        np.testing.assert_allclose(np.diag(covariance), residuals.variance(clique))


@pytest.mark.parametrize("public", [False, True])
def test_the_estimate_from_noisy_marginals_is_that_of_weighted_least_squares(public):
    """GReM-MLE: the marginals of the table over the whole domain with the least squares, given n if it is public."""
    rng, cliques = np.random.default_rng(3), [("a", "b"), ("b", "c"), ("a",), ("a", "b")]
    joint = skewed_joint(rng, SIZES, 400.0)
    measured = measure(joint, SIZES, cliques, 5.0, rng)
    measured = [Measurement(m.clique, m.values, s) for m, s in zip(measured, [5.0, 2.0, 9.0, 3.0], strict=True)]
    A = np.concatenate([sums(m.clique) / m.sigma for m in measured])
    y = np.concatenate([m.values.ravel() / m.sigma for m in measured])
    if public:  # n counts as measured with next to no noise
        A, y = np.vstack([A, np.full((1, 24), 1e5)]), np.append(y, 1e5 * 400)
    table = np.linalg.lstsq(A, y)[0]
    found = Residuals.of(SIZES, measured, 400 if public else None)
    for clique in [("a", "b"), ("b", "c"), ("b",), ("c",), ()]:
        np.testing.assert_allclose(found.marginal(clique).ravel(), sums(clique) @ table, atol=1e-4)
    assert (found.total == 400) == public
    assert (found.variances[()] == 0) == public


def test_what_was_not_measured_is_uniform():
    found = Residuals.of(SIZES, [Measurement(("a",), np.array([1.0, 2.0, 3.0]), 1.0)])
    np.testing.assert_allclose(found.marginal(("a", "c")), [[0.5, 0.5], [1.0, 1.0], [1.5, 1.5]])
    assert Residuals.of(SIZES, []).total == 1.0


def test_residuals_of_different_cliques_are_orthogonal():
    joint = skewed_joint(np.random.default_rng(4), SIZES, 500.0)
    spread = {}
    for r, x in exact(joint).values.items():
        view = x.reshape([m if name in r else 1 for name, m in SIZES.items()])
        spread[r] = np.broadcast_to(view, tuple(SIZES.values()))
    for one, two in product(EVERY, EVERY):
        assert one == two or abs(np.sum(spread[one] * spread[two])) < 1e-7
