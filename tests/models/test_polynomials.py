"""Polynomials near a log-likelihood: by hand, at their nodes, and how far they are from the function."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import iv
from scipy.stats import binom

from dpbench.errors import UserError
from dpbench.models.logistic import phi
from dpbench.models.polynomials import CONSTRUCTIONS, polynomial_coefficients


@pytest.mark.parametrize("radius", [0.5, 6.0, 20.0])
def test_degree_two_by_hand(radius):
    r = radius * math.cos(math.pi / 6)
    by_hand = [-math.log(2), 0.5, -math.log(math.cosh(r / 2)) / r**2]
    assert polynomial_coefficients(phi, 2, radius, "interpolation") == pytest.approx(by_hand, rel=1e-10)

    c0, c1, c2 = (
        2 / math.pi * quad(lambda t, k=k: phi(radius * math.cos(t)) * math.cos(k * t), 0, math.pi, epsabs=1e-12)[0]
        for k in range(3)
    )
    by_hand = [c0 / 2 - c2, c1 / radius, 2 * c2 / radius**2]
    assert polynomial_coefficients(phi, 2, radius, "series") == pytest.approx(by_hand, rel=1e-8)
    assert c1 / radius == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("construction", "degree", "error"),
    [("interpolation", 2, 0.23794), ("series", 2, 0.18910), ("interpolation", 4, 0.05492), ("series", 4, 0.04603)],
)
def test_largest_error_on_the_interval_of_figure_2(construction, degree, error):
    s = np.linspace(-6, 6, 20_001)
    b = polynomial_coefficients(phi, degree, 6.0, construction)
    assert len(b) == degree + 1
    assert np.abs(np.polynomial.Polynomial(b)(s) - phi(s)).max() == pytest.approx(error, abs=1e-5)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_an_interpolation_meets_the_function_at_its_nodes(degree):
    nodes = 6 * np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
    b = polynomial_coefficients(phi, degree, 6.0, "interpolation")
    assert b.shape == (degree + 1,)
    np.testing.assert_allclose(np.polynomial.Polynomial(b)(nodes), phi(nodes), atol=1e-12)


def test_a_leading_coefficient_that_vanishes_keeps_its_place():
    for construction, degree, radius in product(CONSTRUCTIONS, range(1, 10), [0.001, 0.1, 2.0, 6.0]):
        assert polynomial_coefficients(phi, degree, radius, construction).shape == (degree + 1,)


@pytest.mark.parametrize("construction", ["interpolation", "series", "minimax"])
def test_a_small_radius_gives_the_taylor_polynomial_and_a_large_one_still_has_a_maximum(construction):
    assert polynomial_coefficients(phi, 2, 1e-3, construction) == pytest.approx([-math.log(2), 1 / 2, -1 / 8], rel=1e-6)
    b = polynomial_coefficients(phi, 2, 1e3, construction)
    assert b[1] == pytest.approx(0.5)
    assert b[2] < 0


def test_the_series_of_exp_has_the_bessel_functions():
    """exp(x) = I_0(1) + 2 sum_k I_k(1) T_k(x) on [-1, 1] (Abramowitz and Stegun 9.6.34)."""
    c = [iv(0, 4.0), 2 * iv(1, 4.0), 2 * iv(2, 4.0)]
    by_hand = [c[0] - c[2], c[1] / 4, 2 * c[2] / 16]
    assert polynomial_coefficients(np.exp, 2, 4.0, "series") == pytest.approx(by_hand, rel=1e-12)


def test_the_interpolation_of_exp_by_hand():
    r = 6 * math.cos(math.pi / 6)
    by_hand = [1, math.sinh(r) / r, (math.cosh(r) - 1) / r**2]
    assert polynomial_coefficients(np.exp, 2, 6.0, "interpolation") == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    ("iterations", "coefficients", "error"),
    [
        (1, [1.2377, -0.5, 0.0544, 0, -0.0001], 0.545),
        (4, [0.7934, -0.5, 0.0812, 0, -0.0005], 0.100),
        (9, [0.7504, -0.5, 0.0931, 0, -0.0009], 0.057),
    ],
)
def test_iterated_bernstein_polynomials_are_those_of_figure_1_of_excess_risk(iterations, coefficients, error):
    b = polynomial_coefficients(phi, 4, 5.0, "bernstein", iterations)
    assert b == pytest.approx([-one for one in coefficients], abs=5.1e-5)  # the paper prints those of -phi
    assert largest_error(b, 5.0) == pytest.approx(error, abs=5.1e-4)


def test_the_minimax_of_figure_1_of_excess_risk_is_three_times_nearer_than_the_published_one():
    published = -np.array([0.71, -0.5, 0.1096, 0, -0.0015])
    assert largest_error(published, 5.0) == pytest.approx(0.062, abs=5e-4)  # the paper says 0.061
    b = polynomial_coefficients(phi, 4, 5.0, "minimax")
    assert largest_error(b, 5.0) == pytest.approx(0.0202, abs=5e-5)
    nine = polynomial_coefficients(phi, 4, 5.0, "bernstein", 9)
    assert largest_error(b, 5.0) < largest_error(nine, 5.0) / 2, "the paper: Bernstein's is slightly better"


FUNCTIONS = {"phi": phi, "exp": np.exp, "kink": np.abs, "wave": lambda s: np.sin(2 * s + 1)}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("radius", [2.0, 5.0, 12.0])
def test_the_minimax_distance_is_largest_degree_plus_two_times_with_alternating_signs(function, degree, radius):
    """Chebyshev's theorem: no other polynomial of this degree is nearer."""
    b = polynomial_coefficients(function, degree, radius, "minimax")
    s = radius * np.cos(np.pi * np.arange(2**14 + 1) / 2**14)
    distance = np.polynomial.polynomial.polyval(s, b) - function(s)
    largest = np.abs(distance).max()
    assert largest > 1e-9
    signs = np.sign(distance[np.abs(distance) >= largest * (1 - 1e-6)])
    assert 1 + np.count_nonzero(np.diff(signs)) >= degree + 2


@pytest.mark.parametrize("construction", ["interpolation", "series", "minimax"])
def test_a_polynomial_is_its_own(construction):
    b = polynomial_coefficients(lambda s: 1 - 2 * s + s**3, 4, 3.0, construction)
    np.testing.assert_allclose(b, [1, -2, 0, 1, 0], atol=1e-12)


def test_bernstein_is_the_mean_of_the_function_at_binomial_nodes_and_iterated_it_tends_to_the_interpolation():
    s, degree = 1.3, 5
    weights = binom.pmf(np.arange(degree + 1), degree, (s + 2) / 4)
    nodes = np.linspace(-2, 2, degree + 1)
    b = polynomial_coefficients(np.exp, degree, 2.0, "bernstein")
    assert np.polynomial.polynomial.polyval(s, b) == pytest.approx(weights @ np.exp(nodes))
    far = polynomial_coefficients(np.exp, degree, 2.0, "bernstein", 2000)
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(nodes, far), np.exp(nodes), rtol=1e-4)


@pytest.mark.parametrize(("construction", "iterations"), [("bernstein", 0), ("minimax", 2)])
def test_iterations_are_bernsteins(construction, iterations):
    with pytest.raises(UserError, match="iterations must be 1, or more for bernstein"):
        polynomial_coefficients(phi, 4, 5.0, construction, iterations)


def largest_error(b, radius):
    s = np.linspace(-radius, radius, 20_001)
    return np.abs(np.polynomial.polynomial.polyval(s, b) - phi(s)).max()


def test_phi_is_the_log_likelihood_and_does_not_overflow():
    s = np.array([-3.0, 0.0, 0.5])
    assert phi(s) == pytest.approx(-np.log(1 + np.exp(-s)))
    assert phi(np.array([-1e4, 1e4])).tolist() == [-1e4, 0]


@pytest.mark.parametrize(
    ("degree", "radius", "construction", "message"),
    [
        (2, 0.0, "series", "radius must lie between 0.001 and 1000, not 0"),
        (2, math.nan, "series", "radius must lie between"),
        (2, 900.0, "series", "radius = 900 is too large: the function overflows"),
        (2, 6.0, "serie", "unknown construction 'serie'; did you mean 'series'"),
        (-1, 6.0, "series", "degree must be at least 0"),
        (0, 6.0, "bernstein", "degree must be at least 1, not 0"),
        (2, 900.0, "minimax", "radius = 900 is too large: the function overflows"),
        (2, 900.0, "bernstein", "radius = 900 is too large: the function overflows"),
    ],
)
def test_what_is_refused(degree, radius, construction, message):
    with pytest.raises(UserError, match=message):
        polynomial_coefficients(np.exp, degree, radius, construction)
