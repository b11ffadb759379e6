"""Values are integer multiples of a spacing, the sensitivity covers the rounding, and the cost of discrete noise."""

import math
from itertools import product

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.privacy import discrete, noise
from dpbench.privacy.accounting import gaussian_delta, gaussian_epsilon, spent
from dpbench.privacy.discrete import (
    GRID,
    ROUNDED,
    DiscreteGaussian,
    grouped,
    products,
    single,
    spacing_of,
    whole,
)
from dpbench.privacy.ledger import Ledger


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# --- values ----------------------------------------------------------------------------------------------------------


def test_products_are_the_sums_of_what_each_row_gives(rng):
    """A spacing of 1/4, row by row and by hand."""
    X, y = rng.uniform(-1, 1, (40, 3)), rng.uniform(-1, 1, 40)
    X[:, 1] = rng.integers(0, 2, 40)  # one-hot
    by_hand = sum(np.rint(np.outer(row, row) * 4) for row in X)
    assert np.array_equal(products(X, X, "discrete").multiples(0.25), by_hand)
    assert np.array_equal(products(X, X, "discrete")[np.triu_indices(3)].multiples(0.25), by_hand[np.triu_indices(3)])
    assert np.array_equal(
        products(X, y, "discrete").multiples(0.25), sum(np.rint(r * v * 4) for r, v in zip(X, y, strict=True))
    )
    assert products(y, y, "discrete").multiples(0.25) == np.rint(y * y * 4).sum()
    assert np.array_equal(products(X, X, "continuous"), X.T @ X)
    assert not products(X[:0], X[:0], "discrete").multiples(0.25).any()


def test_sums_of_groups(rng):
    terms, groups = rng.uniform(-1, 1, (40, 3)), rng.integers(0, 4, 40)
    by_hand = [np.rint(terms[groups == k] * 8).sum(axis=0) for k in range(5)]
    assert np.array_equal(grouped(terms, groups, 5).multiples(0.125), by_hand)
    assert np.array_equal(grouped(terms[:, 0], groups, 5).multiples(0.125), np.array(by_hand)[:, 0])


def test_the_spacing_is_the_power_of_two_below():
    assert [spacing_of(sd) * GRID for sd in (0.3, 1.0, 1.99, 2.0, 700)] == [0.25, 1, 1, 2, 512]


def test_an_answer_is_a_multiple_of_the_spacing(rng):
    """However large the values are compared with the noise: up to 53 bits."""
    for value in (whole(np.array([0.0, 3e6, 17]), "discrete"), single(lambda _: 12345.678)):
        ledger = Ledger()
        answered = noise.gaussian(rng, ledger, value, sensitivity=1.0, multiplier=7.3, label="x")
        (event,) = ledger.events
        assert np.all(answered / event.spacing == np.rint(answered / event.spacing))
        assert math.log2(event.spacing).is_integer()
        assert event.spacing * GRID <= event.sd < 2.001 * event.spacing * GRID


def test_counts_stay_whole_under_the_largest_noise(rng):
    """Their spacing is never above 1, and their sensitivity is what it was."""
    event = DiscreteGaussian.of("counts", math.sqrt(2), 1e9, 0)
    assert (event.spacing, event.sensitivity) == (1.0, math.sqrt(2))


@pytest.mark.parametrize("multiplier", [1e-4, 1e12, math.inf])
def test_noise_out_of_range_is_refused(multiplier):
    with pytest.raises(UserError, match=r"noise=discrete: x would get noise of .* choose another epsilon"):
        DiscreteGaussian.of("x", 1.0, multiplier, 0)


def test_no_two_neighbours_differ_by_more_than_the_sensitivity_in_the_ledger(rng, monkeypatch):
    """A search over 40,000 pairs of records, and all corners, of X'X with a coarse spacing: what rounding adds is seen.

    The bound on ||x||^2 is attained without rounding; with it records go beyond that, but not beyond what is paid.
    """
    monkeypatch.setattr(discrete, "GRID", 16)
    p = 3
    event = DiscreteGaussian.of("X'X", p, 5 / 3, p * p)
    spacing, paid = event.spacing, event.sensitivity - p
    assert spacing == 0.25
    records = [
        *product((-1.0, 0.0, 1.0), repeat=p),
        *rng.uniform(-1, 1, (200, p)),
        *rng.choice([0.35355, 0.6124, 1], (9, p)),
    ]
    X = np.array(records)
    terms = np.array([products(x[None], x[None], "discrete").multiples(spacing).ravel() for x in X]) * spacing
    exact = np.einsum("ij,ik->ijk", X, X).reshape(len(X), -1)
    one = np.linalg.norm(terms, axis=1)
    assert one.max() <= p + paid
    assert (one - np.linalg.norm(exact, axis=1)).max() > 0.1 * paid  # the search is not idle
    two = np.linalg.norm(terms[:, None] - terms[None], axis=2)
    apart = np.linalg.norm(exact[:, None] - exact[None], axis=2)
    assert (two - apart).max() <= paid
    assert (two - apart).max() > 0.3 * paid


# --- costs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sensitivity", "multiplier", "entries"), [(1.0, 0.5, 0), (3.7, 40.0, 5000), (1e-3, 7.0, 1)])
def test_the_noise_is_hardly_larger_and_costs_the_budget(sensitivity, multiplier, entries):
    event = DiscreteGaussian.of("x", sensitivity, multiplier, entries)
    assert spent(Ledger([event]), 1e-5).epsilon == gaussian_epsilon(1 / multiplier, 1e-5)
    assert sensitivity * multiplier <= event.sd <= 1.001 * sensitivity * multiplier
    assert event.rho == 0.5 / multiplier**2 >= 0.5 * (event.sensitivity / event.sd) ** 2  # Theorem 14's


def test_a_ledger_cannot_claim_more_than_its_scale_gives():
    event = DiscreteGaussian.of("x", 1.0, 2.0, 3)
    with pytest.raises(ValueError, match=r"does not give a multiplier of 2\.1"):
        DiscreteGaussian("x", event.sensitivity, 2.1, scale=event.scale, spacing=event.spacing)


def pmf(scale, reach):
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k.astype(float) ** 2) / (2 * scale**2))
    return weights / weights.sum()


@pytest.mark.parametrize("scale", [5, 8, 30])
@pytest.mark.parametrize("shift", [(1, 0), (3, 0), (2, 1)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_delta_is_at_most_that_of_the_gaussian_noise_that_it_rounds(scale, shift, epsilon):
    """The exact delta of two entries, summed over the integers, at scales so small that rounding would be seen.

    And it is above that of Gaussian noise of the scale itself somewhere, so that the difference is needed.
    """
    reach = 14 * scale
    p = pmf(scale, reach)
    distribution = np.outer(p, p)
    moved = np.roll(distribution, shift, axis=(0, 1))
    delta = np.maximum(distribution - math.exp(epsilon) * moved, 0).sum()
    mu = math.hypot(*shift) / math.sqrt(scale**2 - ROUNDED**2)
    assert delta <= gaussian_delta(epsilon, mu) + 1e-12


def test_gaussian_dp_of_the_scale_itself_would_not_hold():
    """At a scale of 5 a lattice shows: some exact delta is above that of Gaussian noise of this scale."""
    p = pmf(5, 100)
    excess = [
        np.maximum(p - math.exp(e) * np.roll(p, 1), 0).sum() - gaussian_delta(e, 1 / 5) for e in np.linspace(0, 1, 41)
    ]
    assert max(excess) > 1e-5


def test_dp_accounting_agrees():
    """eps by its privacy loss distribution of the discrete Gaussian (one entry) is ours, but for the grid of that."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    event = DiscreteGaussian("x", 6.0, math.sqrt(50**2 - ROUNDED**2) / 6 * (1 - 1e-12), scale=50, spacing=1.0)
    theirs = pld.from_discrete_gaussian_mechanism(50, sensitivity=6).get_epsilon_for_delta(1e-5)
    ours = spent(Ledger([event]), 1e-5).epsilon
    assert theirs - 1e-4 <= ours <= 1.01 * theirs
