"""Random-walk Metropolis-Hastings on a density that is known, and where it does not get anywhere."""

import numpy as np
import pytest

from dpbench.errors import UnconvergedError
from dpbench.models.glm_posterior import metropolis
from dpbench.models.nuts import Laplace
from dpbench.models.posterior_fit import ess_bulk, posterior_fit

MEAN, SCALES = np.array([3.0, -1.0]), np.array([[2.0, 0.0], [1.5, 1.0]])  # x = MEAN + SCALES z
DATA = (MEAN, np.linalg.inv(SCALES @ SCALES.T))
SHORT = {"chains": 4, "draws": 5000, "warmup": 1000}


def normal(x, mean, precision):
    return -(x - mean) @ precision @ (x - mean) / 2


def drawn(seed=0, **change):
    around = Laplace(np.zeros(2), np.eye(2))
    return metropolis(normal, around, DATA, np.random.default_rng(seed), **SHORT, **({"step": 2.0} | change))


def test_it_draws_from_the_density_whatever_it_starts_from():
    """Means within 5 standard errors by the effective sample size, and variances within a quarter (5 of theirs)."""
    draws, accepted = drawn()
    assert draws.shape == (4, 5000, 2)
    assert 0.2 < accepted < 0.6
    covariance, effective = SCALES @ SCALES.T, ess_bulk(draws)
    assert effective.min() > 800
    assert np.abs((draws.mean(axis=(0, 1)) - MEAN) / np.sqrt(np.diag(covariance) / effective)).max() < 5
    np.testing.assert_allclose(np.cov(draws.reshape(-1, 2).T), covariance, rtol=0.25)
    assert (drawn()[0] == draws).all()


def test_steps_too_short_or_too_long_are_unconverged():
    for step, moved in [(1e-3, True), (1e6, False)]:
        draws, accepted = drawn(step=step)
        assert (accepted > 0) == moved
        with pytest.raises(UnconvergedError, match="have not converged"):
            posterior_fit(draws)
