"""Steps that are eps-DP in total, composed with Gaussian ones, and claims that nobody can check."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpbench.privacy import noise
from dpbench.privacy.accounting import gaussian_delta, gaussian_epsilon, spent, zcdp_epsilon
from dpbench.privacy.events import ExponentialMechanism, Gaussian, Laplace, PermuteAndFlip, PureDP
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import composed_epsilon
from dpbench.privacy.pure import bounded_range_epsilon, bounded_range_mu, pure_epsilon, pure_mu

DELTA = 1000**-1.1


def pure(epsilon: float) -> PureDP:
    return PureDP("tree", epsilon)


@given(st.floats(1e-9, 600))
def test_mu_of_a_pure_step_is_the_published_one_and_its_inverse_the_inverse(epsilon):
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


def test_mu_of_a_bounded_range_covers_every_binary_pair_and_no_less_would():
    """Losses t and t - eps, for a grid of t over [0, eps]: the corner of each pair's trade-off function."""
    for epsilon in (1e-2, 0.1, 1.0, 4.0, 8.0):
        t = np.linspace(0, epsilon, 10_001)[1:-1]
        q, p = np.expm1(epsilon - t) / np.expm1(epsilon), np.expm1(t - epsilon) / np.expm1(-epsilon)
        np.testing.assert_allclose(np.log(p / q), t, atol=1e-8)
        np.testing.assert_allclose(np.log((1 - p) / (1 - q)), t - epsilon, atol=1e-8)
        needed = stats.norm.isf(q) - stats.norm.isf(p)
        assert needed.max() == pytest.approx(bounded_range_mu(epsilon), rel=1e-9)
        assert needed[len(t) // 2] == pytest.approx(bounded_range_mu(epsilon), rel=1e-9)
        assert needed[len(t) // 4] < bounded_range_mu(epsilon) > needed[-1]
        assert bounded_range_epsilon(bounded_range_mu(epsilon)) == pytest.approx(epsilon, rel=1e-12)
    assert bounded_range_mu(1e-3) == pytest.approx(0.62666e-3, rel=1e-4)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def errors(P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the trade-off function of P against Q: errors of the first and second kind of the best tests."""
    order = np.argsort(-P / Q)
    return np.append(0, np.cumsum(Q[order])).clip(0, 1), 1 - np.append(0, np.cumsum(P[order])).clip(0, 1)


def test_the_exponential_mechanism_has_bounded_range_and_the_mu_of_it():
    """Random scores and neighbours; and the worst pair, whose trade-off function touches that of mu-Gaussian DP."""
    rng = np.random.default_rng(0)
    for epsilon in (0.2, 1.0, 5.0):
        mu = bounded_range_mu(epsilon)
        for _ in range(300):
            m = rng.integers(2, 9)
            scores, change = rng.normal(0, 10, m), rng.choice([-1.0, 0, 1.0, rng.uniform(-1, 1)], m)
            P, Q = (softmax(epsilon * u / 2) for u in (scores, scores + change))
            losses = np.log(P / Q)
            assert np.ptp(losses) <= epsilon * (1 + 1e-9)
            first, second = errors(P, Q)
            assert (second >= stats.norm.cdf(stats.norm.isf(first) - mu) - 1e-12).all()
        q = 1 / (1 + math.exp(epsilon / 2))
        start = np.array([math.log(q / (1 - q)), 0.0]) * 2 / epsilon
        moved = start + np.array([1.0, -1.0])
        first, second = errors(softmax(epsilon * moved / 2), softmax(epsilon * start / 2))
        assert second[1] == pytest.approx(stats.norm.cdf(stats.norm.isf(first[1]) - mu), rel=1e-9)


def test_permute_and_flip_has_no_bounded_range():
    """Scores 0, 0 against 1, -1. The second is chosen if it comes first and is kept, with probability e^-eps."""
    epsilon = 1.0
    P, Q = np.array([0.5, 0.5]), np.array([1 - math.exp(-epsilon) / 2, math.exp(-epsilon) / 2])
    assert np.ptp(np.log(P / Q)) == pytest.approx(epsilon + math.log(2 - math.exp(-epsilon)))
    first, second = errors(P, Q)
    assert second[1] < stats.norm.cdf(stats.norm.isf(first[1]) - bounded_range_mu(epsilon))  # its mu would be too small
    event = PermuteAndFlip("selection", 1.0, epsilon)
    assert event.mu == pure_mu(epsilon) > ExponentialMechanism("selection", 1.0, epsilon).mu


def test_selections_with_gaussians_are_cheapest_by_gaussian_dp_where_these_dominate():
    gaussian, selection = Gaussian("x", 1.0, 10.0, count=9), ExponentialMechanism("s", 1.0, 2 / 40.0, count=9)
    cost = spent(Ledger([gaussian, selection]), DELTA)
    assert cost.mu == pytest.approx(math.sqrt(9 / 100 + 9 * pure_mu(1 / 40) ** 2), rel=1e-12)
    assert cost.epsilon == gaussian_epsilon(cost.mu, DELTA) < zcdp_epsilon(cost.rho, DELTA)


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), (1, 3, 3, 3), (5, 1, 1, 1)])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_a_tree_and_gaussians_that_share_mu_come_out_at_mu(ratios, mu):
    parts = mu * np.array(ratios) / np.linalg.norm(ratios)
    ledger = Ledger([pure(pure_epsilon(parts[0])), *(Gaussian("sums", 2.0, 1 / part) for part in parts[1:])])
    cost = spent(ledger, DELTA)
    assert cost.mu == pytest.approx(mu, rel=1e-12)
    assert cost.epsilon <= gaussian_epsilon(mu, DELTA) * (1 + 1e-12)


def test_the_loss_distribution_is_the_tightest_of_the_three_bounds():
    ledger = Ledger([pure(1.0), Gaussian("sums", 1.0, 1.5)])
    cost = spent(ledger, DELTA)
    exact = composed_epsilon(ledger.events, DELTA)
    assert cost.epsilon == exact < gaussian_epsilon(cost.mu, DELTA)
    assert exact < zcdp_epsilon(cost.rho, DELTA)
    assert cost.rho == pytest.approx(0.5 + 0.5 / 1.5**2)


def test_a_pure_step_costs_its_epsilon_and_at_least_what_laplace_noise_costs():
    for epsilon in (0.3, 1.0, 2.0):
        whole = spent(Ledger([pure(epsilon)]), DELTA).epsilon
        assert whole == pytest.approx(epsilon, rel=5e-3)
        assert whole >= spent(Ledger([Laplace("x", 1.0, 1 / epsilon)]), DELTA).epsilon
        twice = [pure(epsilon), Laplace("x", 1.0, 1 / epsilon)]
        assert spent(Ledger(twice), DELTA).epsilon <= spent(Ledger([pure(epsilon)] * 2), DELTA).epsilon


def test_a_tree_is_one_event_however_often_it_draws():
    """Kolmogorov-Smirnov at level 1e-4."""
    ledger = Ledger()
    draw = noise.tree_laplace(np.random.default_rng(3), ledger, scale=2.5, epsilon=0.7, label="tree")
    values = np.concatenate([draw(np.zeros(m)) for m in (1, 5, 10_000)])
    assert stats.kstest(values, stats.laplace(0, 2.5).cdf).pvalue > 1e-4
    assert ledger.events == (PureDP("tree", 0.7),)


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
