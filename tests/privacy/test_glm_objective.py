"""The cost of objective perturbation of other models, audited where theta's distribution is known: one dimension.

A table is a list of (x, y, count). Theta solves b(theta) = b, where b ~ N(0, sigma^2) and

    b(theta) = -sum count x f'(x theta; y) - ridge theta,

so that its density is that of b at b(theta), times |b'(theta)|.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.privacy.accounting import SOLVER_DELTA, gaussian_epsilon, glm_objective_epsilon, objective_epsilon, spent
from dpbench.privacy.events import Gaussian, GlmObjectivePerturbation
from dpbench.privacy.ledger import Ledger
from tests.privacy.objective import delta_of, theta_of

L, X = 1.5, 2.0  # bounds on |f' x| and |x|; f'' x^2 is at most beta = X^2
TABLES = [[], [(X, 1.0, 1)], [(X, 1.0, 200)], [(X, 9.0, 50), (-X, 9.0, 50)], [(0.5, -1.0, 3), (X, 0.2, 30)]]
RECORDS = [(X, 1.0), (-X, 1.0), (X, -9.0), (X, 0.0), (0.3, 4.0)]
Z = np.linspace(-9, 9, 3001)
CASES = [(4.0, 0.1, 1e-5), (40.0, 0.005, 1e-5), (1.0, 0.05, 0.1), (0.5, 1.0, 0.3), (1.0, 3.0, 0.1), (0.5, 0.2, 0.9)]


def b_of(theta, table, ridge):
    """Squared error with gradients clipped to L: Huber's loss."""
    return sum((-count * np.clip(x * (x * theta - y), -L, L) for x, y, count in table), -ridge * theta)


def log_density(theta, table, ridge, sigma):
    curvature = sum((count * x**2 * (np.abs(x * (x * theta - y)) < L) for x, y, count in table), np.full(len(Z), ridge))
    return norm.logpdf(b_of(theta, table, ridge), scale=sigma) + np.log(curvature)


def true_delta(table, other, ridge, sigma, epsilon):
    """Of the first table compared with the other."""
    reach = (np.abs(Z * sigma).max() + sum(L * count for _, _, count in table)) / ridge
    theta = theta_of(Z * sigma, lambda theta: b_of(theta, table, ridge), reach, halvings=50)
    loss = log_density(theta, table, ridge, sigma) - log_density(theta, other, ridge, sigma)
    return delta_of(Z, loss, epsilon)


def largest_delta(multiplier, offset, epsilon):
    """Over all tables and neighbours, adding and removing a record."""
    ridge, sigma = X**2 / math.expm1(offset), multiplier * L
    pairs = [(table, [*table, (*record, 1)]) for table, record in product(TABLES, RECORDS)]
    return max(true_delta(*pair, ridge, sigma, epsilon) for one, two in pairs for pair in ((one, two), (two, one)))


@pytest.mark.parametrize(("multiplier", "offset", "delta"), CASES)
def test_no_pair_of_neighbours_exceeds_the_claim(multiplier, offset, delta):
    assert largest_delta(multiplier, offset, glm_objective_epsilon(multiplier, offset, delta)) <= delta


def test_claims_that_are_too_low_are_caught():
    """That of the Gaussian mechanism alone; at half of the noise; and the one for the logistic loss."""
    assert largest_delta(1.0, 3.0, gaussian_epsilon(1.0, 0.1)) > 2 * 0.1
    assert largest_delta(4.0, 0.1, glm_objective_epsilon(8.0, 0.1, 1e-5)) > 100 * 1e-5
    assert largest_delta(1.0, 0.5, objective_epsilon(1.0, 0.1, 0.1)) > 0.1


@pytest.mark.parametrize(("multiplier", "offset", "delta"), CASES)
def test_eps_is_where_the_mean_over_the_folded_normal_is_delta(multiplier, offset, delta):
    epsilon, a = glm_objective_epsilon(multiplier, offset, delta), 1 / multiplier
    excess = 1 - np.exp(epsilon - offset - a**2 / 2 - a * np.abs(Z))
    found = np.trapezoid(norm.pdf(Z) * np.maximum(excess, 0), Z)
    assert found == pytest.approx(delta, rel=1e-4) or (epsilon == offset and found < delta)


def test_it_is_the_published_theorem_with_a_smaller_constant():
    """0.6929: `compute_delta` of the authors' code is 1e-5 there, at sigma / L = 8 and beta / lambda = 0.1."""
    published = -math.log(1 - 0.1) + glm_objective_epsilon(8.0, 0.0, 1e-5)
    assert published == pytest.approx(-math.log(0.9) + gaussian_epsilon(1 / 8, 5e-6), rel=1e-9)
    assert glm_objective_epsilon(8.0, math.log(1.1), 1e-5) == pytest.approx(published + math.log(0.99))
    assert glm_objective_epsilon(math.inf, 0.3, 1e-5) == 0.3


def test_a_ledger_adds_the_gaussian_noise_for_the_solver_s_error():
    objective, noise = GlmObjectivePerturbation("b", L, 4.0, offset=0.1), Gaussian("error", 1e-9, 500.0)
    assert spent(Ledger([objective]), 1e-5).epsilon == glm_objective_epsilon(4.0, 0.1, 1e-5)
    cost = spent(Ledger([objective, noise]), 1e-5).epsilon
    rest = glm_objective_epsilon(4.0, 0.1, (1 - SOLVER_DELTA) * 1e-5)
    assert cost == pytest.approx(gaussian_epsilon(1 / 500, SOLVER_DELTA * 1e-5) + rest, rel=1e-9)
