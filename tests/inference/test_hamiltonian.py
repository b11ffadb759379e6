"""Hamiltonian Monte Carlo on a density that is known."""

import math

import numpy as np

from dpbench.inference.hamiltonian import hamiltonian

MEAN, ROOT = np.array([3.0, -1.0]), np.array([[2.0, 0.0], [1.5, 0.1]])  # x = MEAN + ROOT z
PRECISION = np.linalg.inv(ROOT @ ROOT.T)


def normal(x):
    return -float((x - MEAN) @ PRECISION @ (x - MEAN)) / 2, -PRECISION @ (x - MEAN)


def test_draws_have_the_moments_of_the_density():
    """1,500 nearly independent draws: means within 5 standard errors (1e-6), variances within a fifth (5 of them)."""
    found = hamiltonian(normal, np.zeros(2), 1.5 * ROOT, np.random.default_rng(0), warmup=200, count=1500, steps=5)
    assert found.draws.shape == (1500, 2)
    assert found.divergences == 0 and 0.6 < found.acceptance < 0.99
    z = np.linalg.solve(ROOT, (found.draws - MEAN).T)
    assert np.abs(z.mean(axis=1)).max() < 5 / math.sqrt(1500)
    assert np.abs(np.cov(z) - np.eye(2)).max() < 0.2
    np.testing.assert_allclose(found.values, [normal(x)[0] for x in found.draws])


def test_a_wall_on_one_side_is_no_obstacle():
    """The log of a cell's count that is known to be small, under a wide prior: the mean and the mass near the wall.

    Values by quadrature; the chain's means have standard errors of about 0.2 and 0.02 (1,500 draws, correlated).
    """
    points = np.linspace(-40, 5, 200_001)
    weights = np.exp(-np.square(np.exp(points)) / 8 - np.square(points) / 200)
    weights /= weights.sum()

    def density(x):
        return -(float(np.exp(x[0])) ** 2) / 8 - float(x @ x) / 200, -np.exp(2 * x) / 4 - x / 100

    found = hamiltonian(density, np.zeros(1), np.eye(1), np.random.default_rng(1), warmup=200, count=1500, steps=16)
    assert abs(found.draws.mean() - points @ weights) < 1.0
    assert abs((found.draws > 0).mean() - weights[points > 0].sum()) < 0.1


def test_what_diverges_is_counted_and_left_out():
    def cliff(x):
        return (-float(x @ x) / 2, -x) if x[0] > -1 else (-math.inf, np.zeros_like(x))

    found = hamiltonian(cliff, np.array([0.5]), np.eye(1), np.random.default_rng(1), warmup=1, count=50, steps=20)
    assert (found.draws > -1).all()
    assert found.divergences > 0


def test_the_same_generator_gives_the_same_chain():
    one, two = (
        hamiltonian(normal, MEAN, ROOT, np.random.default_rng(5), warmup=5, count=5, steps=3).draws for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)
