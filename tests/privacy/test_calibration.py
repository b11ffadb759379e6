"""Multipliers of sampled Gaussians spend what was asked, and no more."""

import math
from dataclasses import replace

import pytest

from dpbench.errors import UserError
from dpbench.privacy.accounting import spent
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.calibration import advanced_composition, least_multiplier, sampled_multiplier
from dpbench.privacy.events import Gaussian, Laplace
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import LEAST_MULTIPLIER

DELTA = 1e-5


def sampled(rate, multiplier, count):
    return Gaussian("x", 1.0, multiplier, count, rate)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 2.0, 20.0, 1e4])
@pytest.mark.parametrize("run", [(1.0, 20), (0.02, 49), (256 / 50_000, 1954), (256 / 50_000, 1)])
def test_multipliers_spend_the_budget_and_no_more(run, epsilon):
    rate, count = run
    multiplier = sampled_multiplier(epsilon, DELTA, rate, count)
    cost = spent(Ledger([sampled(rate, multiplier, count)]), DELTA).epsilon
    assert cost <= epsilon * (1 + 1e-12)
    if epsilon < 50 and multiplier > LEAST_MULTIPLIER:  # beyond, sampling is not counted
        assert cost >= 0.998 * epsilon


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("event", [Laplace("", 1.0, 1.0, 100), BatchGaussian("", 2.0, 1.0, 1000, 30, True, 100)])
def test_the_least_multiplier_spends_the_budget_and_no_more(event, epsilon):
    multiplier = least_multiplier(epsilon, DELTA, event)
    cost, more = (
        spent(Ledger([replace(event, multiplier=scale * multiplier)]), DELTA).epsilon for scale in (1.0, 0.999)
    )
    assert cost <= epsilon < more


def test_a_budget_that_no_multiplier_meets_is_refused():
    with pytest.raises(UserError, match="is known to give epsilon = 1 and delta = 1e-25"):
        sampled_multiplier(1.0, 1e-25, 0.1, 100)
    with pytest.raises(UserError, match="finite epsilon"):
        sampled_multiplier(math.inf, DELTA, 0.1, 100)


def test_composed_mechanisms_share_delta_and_epsilon_by_the_theorem():
    for epsilon, k in [(0.1, 5), (3.0, 108)]:
        each, delta = advanced_composition(epsilon, DELTA, k)
        assert k * each**2 / 2 + each * math.sqrt(2 * k * math.log(2 / DELTA)) == pytest.approx(epsilon)
        assert k * delta == pytest.approx(DELTA / 2)
