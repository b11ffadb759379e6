"""Analyze Gauss: what is where in the moments of [X, y], and noise of one scale on all of them."""

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.mechanisms.analyze_gauss import analyze_gauss
from dpbench.privacy.budget import Budget
from dpbench.releases import SufficientStatistics

DELTA = 1e-5


@pytest.fixture
def draw(small_table, small_domain):
    design = Design(small_domain, "grade")
    X, y = design.encode(small_table)

    def made(epsilon, seed):
        rng = np.random.default_rng(seed)
        found = analyze_gauss(small_table, Budget(epsilon, DELTA), rng, design=design)[SufficientStatistics]
        return found, (found.xtx - X.T @ X, found.xty - X.T @ y, found.yty - y @ y)

    return made


def test_each_moment_stands_where_it_belongs(draw):
    _, errors = draw(1e9, 0)
    assert all(np.allclose(error, 0, atol=1e-2) for error in errors)


def test_noise_has_one_scale_and_is_symmetric(draw):
    """Sample deviations of 400 draws lie within 5 standard errors (error rate below 1e-5)."""
    draws = [draw(1.0, seed) for seed in range(400)]
    found, (noise, _, _) = draws[0]
    assert np.allclose(noise, noise.T)
    assert found.xtx_sd == found.xty_sd
    for which in (lambda e: e[0][0, 0], lambda e: e[0][0, 1], lambda e: e[1][0], lambda e: e[2]):
        sd = np.std([which(errors) for _, errors in draws], ddof=1)
        assert abs(sd / found.xtx_sd - 1) < 5 / np.sqrt(2 * 400)
