"""NUTS and Laplace's approximation on densities that are known."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from dpbench.errors import NoEstimateError
from dpbench.models.nuts import Laplace, climbed, laplace, nuts, prepared_jax
from dpbench.models.posterior_fit import ess_bulk, r_hat

MEAN, SCALES = np.array([3.0, -1.0]), np.array([[2.0, 0.0], [1.5, 0.1]])  # x = MEAN + SCALES z
SHORT = {"chains": 4, "draws": 500, "warmup": 300}


class Counter:
    count = 0


@cache
def normal(traced=None):
    """The log density of MEAN + SCALES z; `traced` counts how often jax reads it."""

    def density(x, mean, precision):
        if traced is not None:
            traced.count += 1
        return -(x - mean) @ precision @ (x - mean) / 2

    return density


DATA = (MEAN, np.linalg.inv(SCALES @ SCALES.T))


def test_laplace_is_exact_for_a_normal_density():
    found = laplace(normal(), np.zeros(2), DATA)
    np.testing.assert_allclose(found.mode, MEAN, atol=1e-4)
    np.testing.assert_allclose(found.root @ found.root.T, SCALES @ SCALES.T, rtol=1e-4)
    drawn = found.draws(np.random.default_rng(0), (4, 5000))
    assert drawn.shape == (4, 5000, 2)
    np.testing.assert_allclose(np.cov(drawn.reshape(-1, 2).T), SCALES @ SCALES.T, rtol=0.1)


def test_newton_climbs_to_the_mode_past_points_without_a_density():
    """log x - x has its mode at 1; a full step from 3 would leave x > 0, and one from far away as well."""

    def gamma(x):
        return (prepared_jax().numpy.log(x) - x).sum()

    for start in ([3.0, 0.5], [20.0, 1e-3]):
        found = climbed(gamma, np.array(start), ())
        np.testing.assert_allclose(found.mode, 1.0, atol=0.02)
        np.testing.assert_allclose(found.root @ found.root.T, np.eye(2), atol=0.05)
    exact = climbed(normal(), np.zeros(2), DATA)
    np.testing.assert_allclose(exact.mode, MEAN, atol=1e-3)


def test_nuts_draws_from_the_density_whatever_it_starts_from():
    """Means within 5 standard errors, by the effective sample size; one program for two sets of data."""
    counter, traced = Counter(), []
    density, around = normal(counter), Laplace(np.zeros(2), np.eye(2))
    for shift in (0.0, 10.0):
        data = (MEAN + shift, DATA[1])
        draws, diverged, steps = nuts(density, around, data, np.random.default_rng(1), **SHORT)
        assert draws.shape == (4, 500, 2)
        assert not diverged.any()
        assert steps.min() >= 1
        assert r_hat(draws).max() < 1.02
        error = (draws.mean(axis=(0, 1)) - MEAN - shift) / np.sqrt(np.diag(SCALES @ SCALES.T) / ess_bulk(draws))
        assert np.abs(error).max() < 5
        np.testing.assert_allclose(np.cov(draws.reshape(-1, 2).T), SCALES @ SCALES.T, rtol=0.3)
        traced.append(counter.count)
    assert traced[0] == traced[1]


def test_the_same_generator_gives_the_same_draws():
    around = laplace(normal(), np.zeros(2), DATA)
    one, two, other = (nuts(normal(), around, DATA, np.random.default_rng(seed), **SHORT)[0] for seed in (3, 3, 4))
    assert (one == two).all()
    assert (one != other).any()


def test_a_chain_that_cannot_move_has_an_infinite_r_hat():
    xp = prepared_jax().numpy

    def peak(x, at):
        return xp.where((x == at).all(), 0.0, xp.nan)

    draws, diverged, _ = nuts(peak, Laplace(np.zeros(2), np.eye(2)), (np.zeros(2),), np.random.default_rng(0), **SHORT)
    assert diverged.all()
    assert np.isinf(r_hat(draws)).all()


def test_a_start_without_density_is_named():
    xp = prepared_jax().numpy
    with pytest.raises(NoEstimateError, match="density is 0 or undefined at the start"):
        laplace(lambda x: xp.log(x).sum(), np.array([-1.0]), ())


def test_on_a_ridge_no_direction_is_taken_for_endless():
    found = laplace(lambda x: -((x[0] - 1) ** 2) / 2, np.zeros(2), ())
    assert found.mode[0] == pytest.approx(1.0)
    assert np.linalg.norm(found.root[1]) == pytest.approx(np.sqrt(10))


def test_jax_is_imported_when_a_density_is_sampled_and_not_before():
    code = "import sys, dpbench.models.nuts, dpbench.models.glm_posterior; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
