"""Moments of the statistics of a Bayesian GLM: against enumeration, simulation and the limits of each expectation."""

from itertools import product
from math import prod

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpbench.errors import UserError
from dpbench.inference.glm_statistics import triangle
from dpbench.models.glm_moments import POLYNOMIALS, expectations, fourth, moments, third

FUNCTIONS = {
    "tanh": lambda u: np.tanh(u / 2),
    "softplus": lambda u: np.logaddexp(0, u),
    "counts": lambda u: np.logaddexp(0, u) + np.logaddexp(0, u) ** 2,
}


def parameters(d, seed=0, norm=1.0):
    rng = np.random.default_rng(seed)
    W, theta = rng.normal(size=(d, 2 * d)), rng.normal(size=d)
    return theta * norm / np.linalg.norm(theta), W @ W.T / (2 * d)


def gaussian_moment(Sigma, indices):
    """E[prod x_i] by Isserlis' theorem as it is stated: the sum over all pairings."""
    if not indices:
        return 1.0
    first, *rest = indices
    return sum(Sigma[first, one] * gaussian_moment(Sigma, rest[:k] + rest[k + 1 :]) for k, one in enumerate(rest))


def enumerated(theta, Sigma, family):
    """Mean and covariance with Taylor's polynomials in place of E[y^a | x], every monomial by itself."""
    d = len(theta)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    singles = [(i,) for i in range(d)]
    if family == "logistic":  # indices of x, and the power of y
        entries = [(one, 1) for one in singles] + [(one, 0) for one in pairs]
        powers = [np.array([1.0]), POLYNOMIALS["tanh"].coef, np.array([1.0])]
    else:
        entries = [(one, a) for a in (0, 1) for one in singles + pairs]
        powers = [np.array([1.0]), POLYNOMIALS["softplus"].coef, POLYNOMIALS["counts"].coef]

    def expected(indices, a):
        return sum(
            c * prod(theta[list(more)]) * gaussian_moment(Sigma, [*indices, *more])
            for m, c in enumerate(powers[a])
            for more in product(range(d), repeat=m)
            if c and (m + len(indices)) % 2 == 0
        )

    mean = np.array([expected(one, a) for one, a in entries])
    both = [[expected(one + two, a + b) for two, b in entries] for one, a in entries]
    return mean, np.array(both) - np.outer(mean, mean)


@pytest.mark.parametrize(("family", "d"), [("logistic", 1), ("logistic", 3), ("poisson", 1), ("poisson", 2)])
def test_the_closed_forms_are_those_of_an_enumeration_of_all_pairings(family, d):
    theta, Sigma = parameters(d)
    mean, covariance = moments(theta, Sigma, family, "taylor")
    wanted_mean, wanted_covariance = enumerated(theta, Sigma, family)
    np.testing.assert_allclose(mean, wanted_mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(covariance, wanted_covariance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("d", [5, 10])
@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_simulated_statistics_have_these_moments(family, d):
    """Within 5 standard errors: of the at most 130 + 8,515 entries of a case, one false alarm in 200 runs."""
    theta, Sigma = parameters(d, norm=1.5)
    rng, n = np.random.default_rng(d), 100_000
    X = rng.multivariate_normal(np.zeros(d), Sigma, size=n)
    u = X @ theta
    y = (
        np.where(rng.random(n) < 1 / (1 + np.exp(-u)), 1.0, -1.0)
        if family == "logistic"
        else rng.poisson(np.logaddexp(0, u))
    )
    i, j = triangle(d)
    pairs, yx = X[:, i] * X[:, j], y[:, None] * X
    drawn = np.hstack([yx, pairs] if family == "logistic" else [X, pairs, yx, y[:, None] * pairs])
    mean, covariance = moments(theta, Sigma, family, "quadrature")
    centred = drawn - mean
    assert np.abs(centred.mean(axis=0) / np.sqrt(np.diag(covariance) / n)).max() < 5
    both, squares = centred.T @ centred / n, (centred**2).T @ centred**2 / n
    assert np.abs((both - covariance) / np.sqrt((squares - both**2) / n)).max() < 5


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("v", "tolerance"), [(0.01, 1e-9), (1.0, 1e-9), (9.0, 2e-6), (25.0, 5e-4)])
def test_quadrature_is_the_integral(name, v, tolerance):
    """E[He_m(z) f(u)] = v^(m/2) E[f^(m)(u)] (Stein), by adaptive integration."""
    hermite = np.polynomial.hermite_e.HermiteE
    found = expectations(name, np.float64(v), "quadrature")
    for m in range(5):
        basis = hermite.basis(m)
        wanted = quad(lambda z, b=basis: b(z) * FUNCTIONS[name](np.sqrt(v) * z) * norm.pdf(z), -12, 12, limit=200)[0]
        assert found[m] * v ** (m / 2) == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_polynomial_is_good_where_scores_are_small_and_only_there(name):
    def error(v):
        return abs(expectations(name, np.float64(v), "taylor")[1] - expectations(name, np.float64(v), "quadrature")[1])

    assert error(1e-4) < 1e-8
    assert error(0.1) < 0.002
    if name == "tanh":  # the polynomial says that y falls with x'theta
        assert expectations(name, np.float64(5.0), "taylor")[1] < 0


def test_a_label_grows_with_its_score():
    """The sign that equation (6) of the paper has turned: E[y x'theta] > 0 for y = +1 where x'theta is large."""
    for method in ("taylor", "quadrature"):
        theta, Sigma = parameters(4)
        mean, _ = moments(theta, Sigma, "logistic", method)
        assert mean[:4] @ theta > 0


@pytest.mark.parametrize("family", ["logistic", "poisson"])
@pytest.mark.parametrize("size", [1e-8, 1.0, 30.0])
def test_by_quadrature_the_covariance_is_positive_definite_however_large_the_scores(family, size):
    theta, Sigma = parameters(3, norm=size)
    unit = np.sqrt(np.diag(covariance := moments(theta, Sigma, family, "quadrature")[1]))
    assert np.linalg.eigvalsh(covariance / np.outer(unit, unit))[0] > 1e-4


def test_a_collinear_feature_leaves_the_covariance_singular_and_no_more():
    theta, Sigma = parameters(3)
    root = np.linalg.cholesky(Sigma)
    root[2] = root[1]
    _, covariance = moments(theta, root @ root.T, "poisson", "quadrature")
    assert np.linalg.eigvalsh(covariance)[0] > -1e-12


def test_the_factors_are_isserlis_sums():
    """E[x_1^4] = 3 Sigma_11^2, E[x_1^2 x_2^2] = Sigma_11 Sigma_22 + 2 Sigma_12^2 (supplement 7), and so on"""
    theta, Sigma = parameters(2)
    b = Sigma @ theta
    pairings, mixed, rest = fourth(Sigma, b)
    assert pairings[0, 0] == pytest.approx(3 * Sigma[0, 0] ** 2)
    assert pairings[0, 2] == pytest.approx(Sigma[0, 0] * Sigma[1, 1] + 2 * Sigma[0, 1] ** 2)
    assert mixed[0, 0] == pytest.approx(6 * Sigma[0, 0] * b[0] ** 2)
    assert rest[1, 2] == pytest.approx(b[0] * b[1] ** 3)
    assert third(Sigma, b)[0][0, 0] == pytest.approx(3 * Sigma[0, 0] * b[0])


def test_an_unknown_expectation_is_named():
    with pytest.raises(UserError, match="unknown expectations 'exact'"):
        moments(*parameters(2), "logistic", "exact")
