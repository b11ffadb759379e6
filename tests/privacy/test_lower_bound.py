"""Lower bounds on eps and mu from scores: right where the law is known, and of the confidence that they state."""

import math

import numpy as np
import pytest

from dpbench.privacy.lower_bound import epsilon_bound, mu_bound


def test_a_bound_that_can_be_computed_by_hand():
    """The test makes no error in 500 runs of each: at most 1 - (1 - confidence / 2)^(1/500) is its error rate."""
    without, with_record = np.zeros(1000), np.ones(1000)
    rate = 1 - 0.025 ** (1 / 500)
    assert epsilon_bound(without, with_record, 1e-5, 0.95) == pytest.approx(math.log((1 - 1e-5 - rate) / rate))


def test_scores_of_one_law_bound_nothing():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(2, 2000))
    assert epsilon_bound(*same, 1e-5, 0.999) == 0
    assert mu_bound(*same, 0.999) == 0
    assert mu_bound(-same[0] - 9, same[1] + 9, 0.999) > 0 == mu_bound(same[0] + 9, same[1] - 9, 0.999)


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_the_bound_of_gaussian_dp_is_near_its_mu_and_seldom_above(mu):
    """Of 200 bounds at confidence .95 at most 22 exceed mu (error rate 1e-4); with 10,000 runs they are within 15%."""
    rng = np.random.default_rng(1)
    bounds = [mu_bound(rng.normal(size=400), rng.normal(mu, size=400), 0.95) for _ in range(200)]
    assert np.sum(np.array(bounds) > mu) <= 22
    assert mu_bound(rng.normal(size=10_000), rng.normal(mu, size=10_000), 0.95) > 0.85 * mu


def test_the_bound_of_laplace_noise_is_near_its_epsilon_and_seldom_above():
    """eps = 1 at delta = 0; of 200 bounds at confidence .95 at most 22 exceed it (error rate 1e-4)."""
    rng = np.random.default_rng(2)
    bounds = [epsilon_bound(rng.laplace(size=400), rng.laplace(1.0, size=400), 0.0, 0.95) for _ in range(200)]
    assert np.sum(np.array(bounds) > 1) <= 22
    assert epsilon_bound(rng.laplace(size=20_000), rng.laplace(1.0, size=20_000), 0.0, 0.95) > 0.85
