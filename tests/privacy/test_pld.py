"""Sampled Gaussians with other events: their cost compared with dp-accounting."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpbench.privacy.accounting import gaussian_epsilon, spent, zcdp_epsilon
from dpbench.privacy.events import ExponentialMechanism, Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.renyi import ORDERS

DELTA = 1e-5
SLOW = [pytest.param(run, marks=pytest.mark.slow) for run in ((0.05, 1.5, 100), (256 / 50_000, 1.0, 196))]
RUNS = [*SLOW, (0.02, 3.0, 977), (0.5, 40.0, 3)]  # rate, multiplier, steps


def sampled(rate, multiplier, count):
    return Gaussian("x", 1.0, multiplier, count, rate)


@pytest.mark.parametrize("run", RUNS)
def test_cost_agrees_with_dp_accounting(run):
    rate, multiplier, count = run
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    reference = PLDAccountant(value_discretization_interval=1e-5).compose(step, count).get_epsilon(DELTA)
    cost = spent(Ledger([sampled(*run)]), DELTA)
    assert reference * (1 - 1e-4) <= cost.epsilon <= reference * (1 + 1.5e-3)
    assert cost.mu is None
    rdp = RdpAccountant(list(ORDERS[:40])).compose(step, count)._rdp
    assert np.allclose(sampled(*run).rdp(ORDERS[:40]), rdp, rtol=1e-9)


def test_cost_of_a_known_run():
    """q = 0.05, sigma = 1.5, T = 100, delta = 1e-5: 1.672; by Renyi DP 1.879."""
    assert spent(Ledger([sampled(0.05, 1.5, 100)]), DELTA).epsilon == pytest.approx(1.672, abs=2e-3)


def test_without_sampling_the_cost_is_the_closed_form_and_sampling_lowers_it():
    whole = spent(Ledger([sampled(1.0, 10.0, 25)]), DELTA)
    assert (whole.mu, whole.epsilon) == (0.5, gaussian_epsilon(0.5, DELTA))
    costs = [spent(Ledger([sampled(rate, 10.0, 25)]), DELTA).epsilon for rate in (0.1, 0.5, 0.999)]
    assert costs[0] < costs[1] < costs[2] <= whole.epsilon
    assert costs[2] == pytest.approx(whole.epsilon, rel=5e-3)


def test_sampled_events_compose_with_each_other_and_with_the_rest():
    halves = Ledger([sampled(0.05, 1.5, 50), Gaussian("y", 7.0, 1.5, 50, 0.05)])
    assert spent(halves, DELTA) == spent(Ledger([sampled(0.05, 1.5, 100)]), DELTA)
    more = [Gaussian("z", 1.0, 5.0), ExponentialMechanism("s", 1.0, 0.1), sampled(0.01, 2.0, 10)]
    both = spent(Ledger([*halves.events, *more]), DELTA).epsilon
    assert (
        spent(halves, DELTA).epsilon < both < spent(halves, DELTA / 2).epsilon + spent(Ledger(more), DELTA / 2).epsilon
    )


def test_noise_too_small_for_a_distribution_has_its_cost_without_sampling():
    cost = spent(Ledger([sampled(0.9, 0.01, 3)]), DELTA)
    assert cost.epsilon == gaussian_epsilon(math.sqrt(3) * 100, DELTA) <= zcdp_epsilon(cost.rho, DELTA)
