"""Conversions and ledgers against closed forms, dp-accounting, and the published constants of SSP and AdaSSP."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpbench.privacy.accounting import (
    Spent,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    spent,
    together,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from dpbench.privacy.events import Claimed, Exact, ExponentialMechanism, Gaussian, Laplace, PermuteAndFlip, PureDP
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pure import pure_mu

DELTA = 1e-5
budgets = st.tuples(st.floats(1e-3, 50), st.sampled_from([1e-10, 1e-5, 1e-2, 0.3]))


@given(budgets)
def test_gaussian_calibration_keeps_its_claim_and_wastes_nothing(budget):
    epsilon, delta = budget
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu * (1 + 1e-6)) > delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-8)


@given(budgets)
def test_zcdp_conversion_keeps_its_claim_and_wastes_nothing(budget):
    epsilon, delta = budget
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_delta(rho, epsilon) <= delta
    assert zcdp_delta(rho * (1 + 1e-6), epsilon) > delta
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-8)


@given(st.floats(-6, 8).map(lambda power: 10.0**power), st.sampled_from([1e-10, 1e-5, 0.3]))
@example(500.0, 1e-5)  # the best alpha is 1 + 1e-217
def test_any_rho_has_an_epsilon(rho, delta):
    """Ledgers of little noise too: the ones of DP-SGD, counted without its sampling, reach thousands."""
    epsilon = zcdp_epsilon(rho, delta)
    assert rho * 0.5 < epsilon or rho < 1
    assert zcdp_delta(rho, epsilon) <= delta
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke (2016), Proposition 1.3


def test_zcdp_delta_is_the_minimum_over_alpha():
    alpha = 1 + np.geomspace(1e-3, 1e4, 200_001)
    for rho, epsilon in [(0.01, 0.8), (0.1, 3.0), (1.0, 9.5)]:
        log = (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
        assert zcdp_delta(rho, epsilon) == pytest.approx(np.exp(log.min()), rel=1e-6)


def test_gaussian_agrees_with_dp_accounting():
    from dp_accounting import get_epsilon_gaussian

    for multiplier in (0.5, 2.0, 20.0):
        assert gaussian_epsilon(1 / multiplier, DELTA) == pytest.approx(
            get_epsilon_gaussian(multiplier, DELTA), rel=1e-4
        )


def test_infinite_budgets_are_infinite_both_ways():
    assert gaussian_mu(math.inf, DELTA) == math.inf == gaussian_epsilon(math.inf, DELTA)
    assert zcdp_rho(math.inf, DELTA) == math.inf == zcdp_epsilon(math.inf, DELTA)


def gaussians(*multipliers: float) -> Ledger:
    return Ledger(Gaussian("x", 1.0, m) for m in multipliers)


@pytest.mark.parametrize(("epsilon", "actual"), [(0.1, 0.045), (1, 0.56), (2, 1.20)])
def test_published_constants_of_adassp_spend_about_half(epsilon, actual):
    """With the sensitivities that the paper states; tests/mechanisms/test_statistics.py has the true ones."""
    multiplier = math.sqrt(math.log(6 / DELTA)) * 3 / epsilon
    assert spent(gaussians(*[multiplier] * 3), DELTA).epsilon == pytest.approx(actual, abs=0.005)


@pytest.mark.parametrize(("epsilon", "actual"), [(0.1, 0.13), (1, 1.61), (2, 3.51)])
def test_published_constants_of_ssp_break_their_claim(epsilon, actual):
    multiplier = math.sqrt(math.log(1.25 / DELTA)) / epsilon
    assert spent(gaussians(multiplier, multiplier), DELTA).epsilon == pytest.approx(actual, abs=0.005)


def test_gaussians_compose_as_one():
    cost = spent(gaussians(3.0, 4.0), DELTA)
    assert cost.mu == pytest.approx(5 / 12)
    assert cost.rho == pytest.approx(25 / 288)
    assert cost.epsilon == gaussian_epsilon(5 / 12, DELTA)


def test_costs_of_the_two_selections_differ():
    exponential = ExponentialMechanism("select", 1.0, 0.1)
    flip = PermuteAndFlip("select", 1.0, 0.1)
    assert exponential.rho == pytest.approx(0.1**2 / 8)
    assert flip.rho == pytest.approx(0.1**2 / 2)


def test_one_pure_event_costs_its_own_epsilon():
    selections = PermuteAndFlip("x", 1.0, 0.3), ExponentialMechanism("x", 1.0, 0.3)
    for event in (Laplace("x", 1.0, 1 / 0.3), PureDP("x", 0.3), *selections):
        cost = spent(Ledger([event]), 1e-12)
        assert cost.epsilon == pytest.approx(0.3, rel=1e-3)
        assert cost.mu == pytest.approx(pure_mu(0.15 if event is selections[1] else 0.3), rel=1e-12)


def test_mixed_ledger_is_at_most_its_zcdp_and_gaussian_costs_and_at_least_its_gaussian_part():
    gaussian_part = gaussians(*[40.0] * 10)
    selections = [ExponentialMechanism("select", 1.0, 0.05, count=10)]
    cost = spent(Ledger([*gaussian_part.events, *selections]), DELTA)
    assert spent(gaussian_part, DELTA).epsilon < cost.epsilon <= zcdp_epsilon(10 / 3200 + 10 * 0.05**2 / 8, DELTA)
    assert cost.mu**2 == pytest.approx(10 / 1600 + 10 * pure_mu(0.025) ** 2, rel=1e-12)
    assert cost.epsilon <= gaussian_epsilon(cost.mu, DELTA)


def test_reading_without_noise_costs_everything():
    ledger = Ledger([Exact("X'X"), *gaussians(5.0).events])
    assert spent(ledger, DELTA).epsilon == math.inf


def test_count_means_repetition():
    many = Ledger([Gaussian("x", 1.0, 7.0, count=9)])
    assert spent(many, DELTA) == spent(gaussians(*[7.0] * 9), DELTA)


def test_a_budget_without_a_bound_in_practice_is_accounted_too():
    """eps = 1e6 and beyond: a release at the limit without noise must not fail in its accounting."""
    for epsilon in (1e6, 1e12):
        rho = zcdp_rho(epsilon, DELTA)
        events = [Gaussian("x", 1.0, 1 / math.sqrt(rho)), ExponentialMechanism("s", 1.0, 2 * math.sqrt(rho))]
        assert epsilon / 3 < spent(Ledger(events), DELTA).epsilon <= epsilon * (1 + 1e-6)


def test_releases_together_cost_what_their_noise_does_in_one_ledger():
    """Sixteen releases of mu = 1/4 are one of mu = 1; where one has no mu, rho is summed."""
    one = spent(gaussians(4.0), DELTA)
    assert together([one] * 16).epsilon == pytest.approx(gaussian_epsilon(1.0, DELTA))
    filtered = Ledger()
    filtered.open_filter("rho", 0.1)
    filtered.record(Gaussian("x", 1.0, 5.0))
    mixed = together([one, spent(filtered, DELTA)])
    assert mixed.rho == pytest.approx(1 / 32 + 0.1) and mixed.epsilon == pytest.approx(zcdp_epsilon(mixed.rho, DELTA))


def test_releases_of_several_deltas_hold_together_at_the_largest():
    """mu^2 adds up to 2; at the least delta the guarantee would be another one."""
    costs = [Spent(gaussian_epsilon(1.0, delta), delta, 0.5, 1.0) for delta in (1e-6, 1e-4)]
    cost = together(costs)
    assert cost.delta == 1e-4
    assert cost.epsilon == pytest.approx(gaussian_epsilon(2**0.5, 1e-4))


def test_what_has_no_rho_adds_its_epsilon_and_delta():
    claimed = spent(Ledger([Claimed("network", 0.5, 1e-6)]), DELTA)
    cost = together([spent(gaussians(4.0), DELTA), claimed, claimed])
    assert cost.epsilon == pytest.approx(spent(gaussians(4.0), DELTA).epsilon + 1.0)
    assert (cost.delta, cost.rho, cost.mu) == (pytest.approx(3 * DELTA), math.inf, None)
    assert together([claimed]).epsilon == 0.5 and together([]).epsilon == 0.0
    sampled = Spent(1.0, DELTA, 50.0, None)  # a rho that says little
    assert together([*[spent(gaussians(4.0), DELTA)] * 16, sampled]).epsilon == pytest.approx(
        gaussian_epsilon(1.0, DELTA) + 1.0
    )
