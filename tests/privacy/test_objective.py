"""The cost of objective perturbation, audited where the law of theta is known exactly: logistic loss, one dimension.

A table is a list of (u, count): `count` records with y x = u. Theta solves b(theta) = b, where b ~ N(0, sigma^2) and

    b(theta) = sum_i u_i expit(-u_i theta) - ridge theta,

so that its density is that of b at b(theta), times |b'(theta)|.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from dpbench.privacy.accounting import SOLVER_DELTA, gaussian_epsilon, gaussian_mu, objective_epsilon, spent
from dpbench.privacy.events import Gaussian, Laplace, ObjectivePerturbation
from dpbench.privacy.ledger import Ledger

L = 2.0  # the largest |u|: the bound on the gradient of one record; its Hessian is at most L^2 / 4
TABLES = [[], [(L, 1)], [(L, 200)], [(-L, 200)], [(-L, 20_000)], [(L, 50), (-L, 50)], [(0.3 * L, 20)]]
RECORDS = [L, -L, L / 2]
Z = np.linspace(-9, 9, 2001)  # b / sigma: beyond, a normal has 2e-19


def b_of(theta, table, ridge):
    return sum((count * u * expit(-u * theta) for u, count in table), -ridge * theta)


def log_density(theta, table, ridge, sigma):
    slope = sum(
        (count * u**2 * expit(u * theta) * expit(-u * theta) for u, count in table), np.full(theta.shape, ridge)
    )
    return norm.logpdf(b_of(theta, table, ridge), scale=sigma) + np.log(slope)


def theta_of(b, table, ridge):
    """The theta of each b, by bisection: b(theta) falls."""
    reach = (np.abs(b).max() + sum(abs(u) * count for u, count in table)) / ridge
    low, high = np.full(b.shape, -reach), np.full(b.shape, reach)
    for _ in range(80):
        middle = (low + high) / 2
        above = b_of(middle, table, ridge) > b
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def true_delta(table, other, ridge, sigma, epsilon):
    """E max(0, 1 - exp(epsilon - loss)), loss the log ratio of the densities at theta of the first table."""
    theta = theta_of(Z * sigma, table, ridge)
    loss = log_density(theta, table, ridge, sigma) - log_density(theta, other, ridge, sigma)
    assert np.trapezoid(norm.pdf(Z) * np.exp(-loss), Z) == pytest.approx(1, abs=1e-3)  # the other density, whole
    return np.trapezoid(norm.pdf(Z) * np.maximum(1 - np.exp(epsilon - loss), 0), Z)


def largest_delta(multiplier, offset, epsilon):
    """Over all tables and neighbours, adding and removing a record."""
    ridge, sigma = L**2 / 4 / math.expm1(offset), multiplier * L
    pairs = [(table, [*table, (u, 1)]) for table, u in product(TABLES, RECORDS)]
    return max(true_delta(*pair, ridge, sigma, epsilon) for one, two in pairs for pair in ((one, two), (two, one)))


CASES = [(4.0, 0.1, 1e-5), (40.0, 0.005, 1e-5), (1.0, 0.001, 0.1), (0.5, 1.0, 0.3), (1.0, 3.0, 0.1)]


@pytest.mark.parametrize(("multiplier", "offset", "delta"), CASES)
def test_no_pair_of_neighbours_exceeds_the_claim(multiplier, offset, delta):
    assert largest_delta(multiplier, offset, objective_epsilon(multiplier, offset, delta)) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-3), (1.0, 1e-5), (4.0, 1e-3)])
def test_with_a_ridge_of_its_square_over_eps_the_noise_is_that_of_the_gaussian_mechanism_and_no_less(epsilon, delta):
    """Nearly attained by 20,000 records of the other label: the one that is added is all but certain to be on its wrong
    side."""
    multiplier, offset = 1 / gaussian_mu(epsilon, delta), math.log1p(epsilon / 4)
    assert objective_epsilon(multiplier, offset, delta) == pytest.approx(epsilon)
    assert 0.98 * delta < largest_delta(multiplier, offset, epsilon) < 1.001 * delta


def test_claims_that_are_too_low_are_caught():
    half_of_the_noise = objective_epsilon(2 * 4.0, 0.1, 1e-5)
    assert largest_delta(4.0, 0.1, half_of_the_noise) > 100 * 1e-5
    less_ridge = gaussian_epsilon(1 / 1.0, 0.1)  # the Gaussian's eps alone, with a ridge below its square over eps
    assert largest_delta(1.0, 3.0, less_ridge) > 2 * 0.1


def test_a_ledger_costs_what_its_objective_does_and_holds_no_other_of_its_kind():
    event = ObjectivePerturbation("b", L, 4.0, offset=0.1)
    cost = spent(Ledger([event]), 1e-5)
    assert cost.epsilon == objective_epsilon(4.0, 0.1, 1e-5) == pytest.approx(gaussian_epsilon(0.25, 1e-5))
    assert (cost.rho, cost.mu) == (math.inf, None)
    for more in (event, Laplace("x", 1.0, 4.0), Gaussian("x", 1.0, 4.0, 3, 0.1)):
        with pytest.raises(ValueError, match="cannot be composed"):
            spent(Ledger([event, more]), 1e-5)


def test_gaussian_noise_for_the_solver_s_error_adds_its_cost_at_its_part_of_delta():
    """Basic composition: each at its own part of delta, the epsilons added."""
    objective, noise = ObjectivePerturbation("b", L, 4.0, offset=0.1), Gaussian("error", 1e-9, 500.0)
    cost = spent(Ledger([objective, noise]), 1e-5)
    by_hand = gaussian_epsilon(1 / 500, SOLVER_DELTA * 1e-5) + objective_epsilon(4.0, 0.1, (1 - SOLVER_DELTA) * 1e-5)
    assert cost.epsilon == pytest.approx(by_hand, rel=1e-9)
    assert cost.epsilon > spent(Ledger([objective]), 1e-5).epsilon
