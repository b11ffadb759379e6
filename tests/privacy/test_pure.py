"""Steps that are eps-DP as a whole beside Gaussian ones, and claims that nobody can check."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpbench.privacy import noise
from dpbench.privacy.accounting import gaussian_delta, gaussian_epsilon, pure_epsilon, pure_mu, spent, zcdp_epsilon
from dpbench.privacy.budget import Event, Ledger
from dpbench.privacy.pld import composed_epsilon

DELTA = 1000**-1.1


def pure(epsilon: float) -> Event:
    return Event("pure", "tree", 1.0, 1 / epsilon)


@given(st.floats(1e-9, 600))
def test_mu_of_a_pure_step_is_the_printed_one_and_its_inverse_the_inverse(epsilon):
    mu = pure_mu(epsilon)
    assert stats.norm.logsf(mu / 2) == pytest.approx(-epsilon - math.log1p(math.exp(-epsilon)), rel=1e-9)
    assert mu <= math.sqrt(math.pi / 2) * epsilon * (1 + 1e-12)
    assert pure_epsilon(mu) == pytest.approx(epsilon, rel=1e-12)


def test_small_steps_keep_their_digits():
    assert pure_mu(1e-12) == pytest.approx(math.sqrt(math.pi / 2) * 1e-12, rel=1e-12)


def test_mu_of_a_pure_step_covers_randomised_response_and_no_less_would():
    for epsilon in (0.1, 1.0, 4.0):
        other = np.linspace(0, epsilon, 200)
        response = (math.exp(epsilon) - np.exp(other)) / (1 + math.exp(epsilon))  # its exact delta
        assert all(gaussian_delta(e, pure_mu(epsilon)) >= d - 1e-12 for e, d in zip(other, response, strict=True))
        assert gaussian_delta(0.0, 0.999 * pure_mu(epsilon)) < response[0]


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), (1, 3, 3, 3), (5, 1, 1, 1)])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_a_tree_and_gaussians_that_share_mu_come_out_at_mu(ratios, mu):
    parts = mu * np.array(ratios) / np.linalg.norm(ratios)
    ledger = Ledger([pure(pure_epsilon(parts[0])), *(Event("gaussian", "sums", 2.0, 1 / part) for part in parts[1:])])
    cost = spent(ledger, DELTA)
    assert cost.mu == pytest.approx(mu, rel=1e-12)
    assert cost.epsilon <= gaussian_epsilon(mu, DELTA) * (1 + 1e-12)


def test_the_loss_distribution_is_the_tightest_of_the_three_bounds():
    ledger = Ledger([pure(1.0), Event("gaussian", "sums", 1.0, 1.5)])
    cost = spent(ledger, DELTA)
    exact = composed_epsilon(ledger.events, DELTA)
    assert cost.epsilon == exact < gaussian_epsilon(cost.mu, DELTA)
    assert exact < zcdp_epsilon(cost.rho, DELTA)
    assert cost.rho == pytest.approx(0.5 + 0.5 / 1.5**2)


def test_a_pure_step_costs_its_epsilon_and_at_least_what_laplace_noise_costs():
    for epsilon in (0.3, 1.0, 2.0):
        whole = spent(Ledger([pure(epsilon)]), DELTA).epsilon
        assert whole == pytest.approx(epsilon, rel=5e-3)
        assert whole >= spent(Ledger([Event("laplace", "x", 1.0, 1 / epsilon)]), DELTA).epsilon
        twice = [pure(epsilon), Event("laplace", "x", 1.0, 1 / epsilon)]
        assert spent(Ledger(twice), DELTA).epsilon <= spent(Ledger([pure(epsilon)] * 2), DELTA).epsilon


def test_a_tree_is_one_event_however_often_it_draws():
    """Kolmogorov-Smirnov at level 1e-4."""
    ledger = Ledger()
    draw = noise.tree_laplace(np.random.default_rng(3), ledger, scale=2.5, epsilon=0.7, label="tree")
    values = np.concatenate([draw(np.zeros(m)) for m in (1, 5, 10_000)])
    assert stats.kstest(values, stats.laplace(0, 2.5).cdf).pvalue > 1e-4
    assert [(event.kind, event.multiplier) for event in ledger.events] == [("pure", 1 / 0.7)]


def test_a_claim_is_worth_what_it_says_at_its_delta_and_nothing_below():
    ledger = Ledger()
    noise.claimed(ledger, 1.5, 1e-5, label="engine")
    ledger = Ledger.from_list(ledger.to_list())
    assert spent(ledger, 1e-5).epsilon == pytest.approx(1.5, rel=1e-12)
    assert spent(ledger, 0.9e-5).epsilon == math.inf
    assert (spent(ledger, 1e-5).rho, spent(ledger, 1e-5).mu) == (math.inf, None)
    for more in (ledger.events[0], pure(0.1)):
        with pytest.raises(ValueError, match="cannot be composed"):
            spent(Ledger([*ledger.events, more]), 1e-5)


def test_a_delta_belongs_to_projections_and_claims():
    with pytest.raises(ValueError, match="belongs to projection or claimed"):
        Event("gaussian", "x", 1.0, 1.0, delta=1e-6)
