"""Sampled Gaussians: their law, their cost against dp-accounting, and multipliers that spend what was asked."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from dpbench.errors import UserError
from dpbench.privacy.accounting import gaussian_epsilon, spent, zcdp_epsilon
from dpbench.privacy.budget import Event, Ledger
from dpbench.privacy.calibration import sampled_multiplier
from dpbench.privacy.noise import sampled_gaussian
from dpbench.privacy.pld import LEAST_MULTIPLIER
from dpbench.privacy.renyi import ORDERS, gaussian_rdp

DELTA = 1e-5
RUNS = [(0.05, 1.5, 100), (0.02, 3.0, 977), (256 / 50_000, 1.0, 196), (0.5, 40.0, 3)]  # rate, multiplier, steps


def sampled(rate, multiplier, count):
    return Event("gaussian", "x", 1.0, multiplier, count, rate)


@pytest.mark.parametrize("run", RUNS)
def test_cost_agrees_with_dp_accounting(run):
    rate, multiplier, count = run
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    reference = PLDAccountant(value_discretization_interval=1e-5).compose(step, count).get_epsilon(DELTA)
    cost = spent(Ledger([sampled(*run)]), DELTA)
    assert reference * (1 - 1e-4) <= cost.epsilon <= reference * (1 + 1.5e-3)
    assert cost.mu is None
    rdp = RdpAccountant(list(ORDERS[:40])).compose(step, count)._rdp
    assert np.allclose(gaussian_rdp(sampled(*run), ORDERS[:40]), rdp, rtol=1e-9)


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
    halves = Ledger([sampled(0.05, 1.5, 50), Event("gaussian", "y", 7.0, 1.5, 50, 0.05)])
    assert spent(halves, DELTA) == spent(Ledger([sampled(0.05, 1.5, 100)]), DELTA)
    more = [Event("gaussian", "z", 1.0, 5.0), Event("exponential", "s", 1.0, 2 / 0.1), sampled(0.01, 2.0, 10)]
    both = spent(Ledger([*halves.events, *more]), DELTA).epsilon
    assert (
        spent(halves, DELTA).epsilon < both < spent(halves, DELTA / 2).epsilon + spent(Ledger(more), DELTA / 2).epsilon
    )


def test_noise_too_small_for_a_distribution_has_its_cost_without_sampling():
    cost = spent(Ledger([sampled(0.9, 0.01, 3)]), DELTA)
    assert cost.epsilon == gaussian_epsilon(math.sqrt(3) * 100, DELTA) <= zcdp_epsilon(cost.rho, DELTA)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 2.0, 20.0, 1e4])
@pytest.mark.parametrize("run", [(1.0, 20), (0.02, 49), (256 / 50_000, 1954), (256 / 50_000, 1)])
def test_multipliers_spend_what_was_asked_and_no_more(run, epsilon):
    rate, count = run
    multiplier = sampled_multiplier(epsilon, DELTA, rate, count)
    cost = spent(Ledger([sampled(rate, multiplier, count)]), DELTA).epsilon
    assert cost <= epsilon * (1 + 1e-12)
    if epsilon < 50 and multiplier > LEAST_MULTIPLIER:  # beyond, sampling is not counted
        assert cost >= 0.998 * epsilon


def test_a_budget_that_no_multiplier_meets_is_refused():
    with pytest.raises(UserError, match="is known to give epsilon = 1 and delta = 1e-25"):
        sampled_multiplier(1.0, 1e-25, 0.1, 100)
    with pytest.raises(UserError, match="finite epsilon"):
        sampled_multiplier(math.inf, DELTA, 0.1, 100)


def test_samples_and_noise_have_the_law_that_the_ledger_says():
    """Binomial sizes, rows in equal parts, normal noise: chi-square and Kolmogorov-Smirnov at level 1e-4 each."""
    ledger, n, steps, rate = Ledger(), 12, 20_000, 0.3
    samples = []

    def sizes_of(rows):
        samples.append(rows)
        return np.full((2, 1), float(len(rows)))

    drawn = sampled_gaussian(
        np.random.default_rng(3),
        ledger,
        n,
        sizes_of,
        sensitivity=2.0,
        multiplier=3.0,
        rate=rate,
        count=steps,
        label="g",
    )
    assert ledger.events == (Event("gaussian", "g", 2.0, 3.0, steps, rate),)  # before anything is drawn
    noise = [noisy - len(rows) for noisy, rows in zip(drawn, samples, strict=False)]
    assert len(noise) == len(samples) == steps
    assert all(len(set(rows)) == len(rows) for rows in samples)
    sizes = np.bincount([len(rows) for rows in samples], minlength=n + 1)
    expected = steps * stats.binom(n, rate).pmf(np.arange(n + 1))
    common = expected > 5
    assert stats.chisquare(sizes[common], expected[common] * sizes[common].sum() / expected[common].sum()).pvalue > 1e-4
    assert stats.chisquare(np.bincount(np.concatenate(samples), minlength=n)).pvalue > 1e-4
    assert stats.kstest(np.concatenate(noise).ravel(), stats.norm(0, 6).cdf).pvalue > 1e-4


def test_at_rate_one_every_row_takes_part():
    (noisy,) = sampled_gaussian(
        np.random.default_rng(0),
        Ledger(),
        5,
        lambda rows: 10.0 * np.arange(5)[rows],
        sensitivity=1.0,
        multiplier=1e-6,
        rate=1.0,
        count=1,
        label="g",
    )
    assert noisy == pytest.approx(np.array([0.0, 10, 20, 30, 40]), abs=1e-4)


def test_a_step_is_asked_for_after_the_answer_to_the_one_before():
    """Gradient descent needs that: without noise, theta halves its distance to 8 in each step."""
    theta = np.zeros(1)
    steps = sampled_gaussian(
        np.random.default_rng(0),
        Ledger(),
        1,
        lambda rows: 8 - theta,
        sensitivity=1.0,
        multiplier=1e-9,
        rate=1.0,
        count=3,
        label="g",
    )
    for noisy in steps:
        theta += noisy / 2
    assert theta[0] == pytest.approx(7.0, abs=1e-6)
