"""Lower bounds on eps and mu from scores: correct for known distributions, with the stated confidence."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from dpbench.audit.lower_bound import epsilon_bound, mu_bound, one_run_bound, one_run_mu
from dpbench.privacy.accounting import gaussian_epsilon


def test_a_bound_that_can_be_computed_by_hand():
    """The test makes no error in 500 runs of each: at most 1 - (1 - confidence / 2)^(1/500) is its error rate."""
    without, with_record = np.zeros(1000), np.ones(1000)
    rate = 1 - 0.025 ** (1 / 500)
    assert epsilon_bound(without, with_record, 1e-5, 0.95) == pytest.approx(math.log((1 - 1e-5 - rate) / rate))


def test_scores_of_one_distribution_bound_nothing():
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


@pytest.mark.parametrize(
    ("correct", "guesses", "coins", "delta", "published"),
    [(75, 100, 1000, 1e-4, 0.673), (1439, 1510, 100_000, 1e-5, 2.675)],
)
def test_the_bound_of_one_run_is_the_published_one(correct, guesses, coins, delta, published):
    """Steinke, Nasr and Jagielski (2023), Appendix D and Section 7, at confidence .95."""
    assert one_run_bound(correct, guesses, coins, delta, 0.95) == pytest.approx(published, abs=1e-3)


def test_the_bound_of_one_run_by_hand():
    """At delta = 0 all of r guesses are right with probability accuracy^r; half of them say nothing."""
    accuracy = 0.05 ** (1 / 100)
    assert one_run_bound(100, 100, 200, 0.0, 0.95) == pytest.approx(math.log(accuracy / (1 - accuracy)))
    assert one_run_bound(50, 100, 200, 1e-5, 0.95) == one_run_bound(0, 0, 200, 1e-5, 0.95) == 0


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_bound_of_one_run_is_seldom_above_the_truth(delta):
    """Randomised response of eps = 1 that tells the truth with probability delta: of 400 bounds at confidence .95 at
    most 40 exceed it (error rate 1e-5)."""
    right = (1 - delta) / (1 + math.exp(-1)) + delta
    rng = np.random.default_rng(3)
    correct, times = np.unique(rng.binomial(100, right, size=400), return_counts=True)
    bounds = [one_run_bound(int(v), 100, 100, delta, 0.95) for v in correct]
    assert np.sum(times[np.array(bounds) > 1]) <= 40


def most_likely(correct, guesses, coins, mu):
    """The largest probability of so many right guesses by mu-Gaussian DP: a linear program, 1 - f by its tangents."""
    numbers, points = np.arange(guesses + 1), np.linspace(-8, 4, 400)
    slopes = np.exp(norm.logpdf(points + mu) - norm.logpdf(points))
    rows, limits = [], []
    for i in range(1, guesses + 1):
        right, wrong = numbers * (numbers >= i) / coins, (guesses - numbers) * (numbers >= i - 1) / coins
        rows += [right - slope * wrong for slope in slopes]
        limits += list(norm.cdf(points + mu) - slopes * norm.cdf(points))
    gain = -(numbers >= correct).astype(float)
    found = linprog(gain, np.array(rows), limits, np.ones((1, guesses + 1)), [1.0], (0, 1))
    return -found.fun


@pytest.mark.parametrize(("correct", "guesses", "coins"), [(8, 8, 8), (7, 8, 8), (9, 10, 30), (10, 10, 100)])
def test_mu_of_one_run_is_that_of_the_linear_program_of_all_its_inequalities(correct, guesses, coins):
    likely = most_likely(correct, guesses, coins, 1.0)
    assert one_run_mu(correct, guesses, coins, 1 - likely) == pytest.approx(1.0, abs=1e-3)


def guessed_coins(rng, mu, coins, guesses):
    """How many guesses are right where each coin moves a normal number by mu, and the surest are guessed."""
    up = rng.random(coins) < 0.5
    seen = mu * (up - 0.5) + rng.normal(size=coins)
    surest = np.argsort(-np.abs(seen))[:guesses]
    return int(np.sum((seen[surest] > 0) == up[surest]))


@pytest.mark.parametrize(("mu", "coins", "guesses"), [(1.0, 100, 5), (3.0, 1000, 300)])
def test_mu_of_one_run_is_seldom_above_the_truth_and_tighter_than_by_eps(mu, coins, guesses):
    """Of 100 bounds at confidence .95 at most 16 exceed mu (error rate 1e-5)."""
    rng = np.random.default_rng(4)
    correct = [guessed_coins(rng, mu, coins, guesses) for _ in range(100)]
    found = {v: one_run_mu(v, guesses, coins, 0.95) for v in set(correct)}
    assert sum(found[v] > mu for v in correct) <= 16
    usual = int(np.median(correct))
    assert gaussian_epsilon(found[usual], 1e-5) > one_run_bound(usual, guesses, coins, 1e-5, 0.95)


def test_guesses_that_are_no_better_than_coins_say_nothing_of_mu():
    assert one_run_mu(0, 0, 100, 0.95) == one_run_mu(50, 100, 200, 0.95) == 0
