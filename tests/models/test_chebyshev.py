"""Chebyshev polynomials near a log-likelihood: by hand, at their nodes, and how far they are from the function."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import iv

from dpbench.errors import UserError
from dpbench.models.chebyshev import CONSTRUCTIONS, chebyshev_coefficients
from dpbench.models.logistic import phi


@pytest.mark.parametrize("radius", [0.5, 6.0, 20.0])
def test_degree_two_by_hand(radius):
    r = radius * math.cos(math.pi / 6)
    by_hand = [-math.log(2), 0.5, -math.log(math.cosh(r / 2)) / r**2]
    assert chebyshev_coefficients(phi, 2, radius, "interpolation") == pytest.approx(by_hand, rel=1e-10)

    c0, c1, c2 = (
        2 / math.pi * quad(lambda t, k=k: phi(radius * math.cos(t)) * math.cos(k * t), 0, math.pi, epsabs=1e-12)[0]
        for k in range(3)
    )
    by_hand = [c0 / 2 - c2, c1 / radius, 2 * c2 / radius**2]
    assert chebyshev_coefficients(phi, 2, radius, "series") == pytest.approx(by_hand, rel=1e-8)
    assert c1 / radius == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("construction", "degree", "error"),
    [("interpolation", 2, 0.23794), ("series", 2, 0.18910), ("interpolation", 4, 0.05492), ("series", 4, 0.04603)],
)
def test_largest_error_on_the_interval_of_figure_2(construction, degree, error):
    s = np.linspace(-6, 6, 20_001)
    b = chebyshev_coefficients(phi, degree, 6.0, construction)
    assert len(b) == degree + 1
    assert np.abs(np.polynomial.Polynomial(b)(s) - phi(s)).max() == pytest.approx(error, abs=1e-5)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_an_interpolation_meets_the_function_at_its_nodes(degree):
    nodes = 6 * np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
    b = chebyshev_coefficients(phi, degree, 6.0, "interpolation")
    assert b.shape == (degree + 1,)
    np.testing.assert_allclose(np.polynomial.Polynomial(b)(nodes), phi(nodes), atol=1e-12)


def test_a_leading_coefficient_that_vanishes_keeps_its_place():
    for construction, degree, radius in product(CONSTRUCTIONS, range(10), [0.001, 0.1, 2.0, 6.0]):
        assert chebyshev_coefficients(phi, degree, radius, construction).shape == (degree + 1,)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_a_small_radius_gives_the_taylor_polynomial_and_a_large_one_still_has_a_maximum(construction):
    assert chebyshev_coefficients(phi, 2, 1e-3, construction) == pytest.approx([-math.log(2), 1 / 2, -1 / 8], rel=1e-6)
    b = chebyshev_coefficients(phi, 2, 1e3, construction)
    assert b[1] == pytest.approx(0.5)
    assert b[2] < 0


def test_the_series_of_exp_has_the_bessel_functions():
    """exp(x) = I_0(1) + 2 sum_k I_k(1) T_k(x) on [-1, 1] (Abramowitz and Stegun 9.6.34)."""
    c = [iv(0, 4.0), 2 * iv(1, 4.0), 2 * iv(2, 4.0)]
    by_hand = [c[0] - c[2], c[1] / 4, 2 * c[2] / 16]
    assert chebyshev_coefficients(np.exp, 2, 4.0, "series") == pytest.approx(by_hand, rel=1e-12)


def test_the_interpolation_of_exp_by_hand():
    r = 6 * math.cos(math.pi / 6)
    by_hand = [1, math.sinh(r) / r, (math.cosh(r) - 1) / r**2]
    assert chebyshev_coefficients(np.exp, 2, 6.0, "interpolation") == pytest.approx(by_hand, rel=1e-12)


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
    ],
)
def test_what_is_refused(degree, radius, construction, message):
    with pytest.raises(UserError, match=message):
        chebyshev_coefficients(np.exp, degree, radius, construction)
