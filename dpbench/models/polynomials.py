"""Polynomials near a function on [-radius, radius]: Chebyshev's, Bernstein's, and the minimax one.

DD-SSP, section 3.3 and appendix F (Huggins et al. 2017), and excess risk, section 2.3 and Figure 1.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.polynomial import Polynomial, chebyshev
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.errors import UserError, check_known

CONSTRUCTIONS = ("interpolation", "series", "bernstein", "minimax")
RADII = (1e-3, 1e3)  # below, the square of s is lost in the rounding of the function
# The c_k of a function that is analytic up to +-i pi shrink like exp(-k asinh(pi / radius)) (Trefethen 2013, Theorem
# 8.1), and at radius 1000 are below the rounding of 1 from k = 11,473 on.
NODES = 2**14
EXCHANGES = 1000  # of Remez: 10 to 50 are enough for the functions and degrees used here
ROUNDING = 1e-13  # of the distance, relative to the function


def polynomial_coefficients(
    function: Callable[[Floats], Floats], degree: int, radius: float, construction: str, iterations: int = 1
) -> Floats:
    """b (degree + 1,) of the polynomial sum_m b_m s^m near function(s) on [-radius, radius].

    With T_k(cos t) = cos(k t) and c_0 halved, Chebyshev's polynomial is sum_k c_k T_k(s / radius), where
    `interpolation` at the M + 1 nodes radius cos(t_j), t_j = (j + 1/2) pi / (M + 1), has

        c_k = 2 / (M + 1) sum_j function(radius cos t_j) cos(k t_j)         (M = degree)

    and the truncated `series` has the integral that this sum tends to as its nodes grow in number,

        c_k = 2 / pi int_0^pi function(radius cos t) cos(k t) dt,

    here with 16,384 nodes: exact up to rounding for `exp` and for functions analytic up to +-i pi, such as the logistic
    log-likelihood. DD-SSP does not say which of the two its Figure 2 (degree 2, radius 6) shows.

    `bernstein` is B f = sum_i f(x_i) C(M, i) t^i (1 - t)^(M - i) with t = (s + radius) / (2 radius) and the nodes
    x_i = (2i/M - 1) radius (excess risk, Definition 2.2), and with `iterations` k it is f - (I - B)^k f (Guan 2009).

    `minimax` has the least possible largest distance from the function, found by Remez's exchange: the distance takes
    its largest value M + 2 times, with alternating signs. It is that over 16,385 points, which is the one over the
    interval up to about 1e-7 of the distance.

    Raises `UserError` for a degree below 0 (Bernstein: 1), a radius outside [0.001, 1000] or on which the function
    overflows, an unknown construction, or iterations below 1 or with another construction than Bernstein's.

    >>> polynomial_coefficients(np.exp, 2, 1.0, "interpolation").round(4).tolist()
    [1.0, 1.1298, 0.532]
    >>> polynomial_coefficients(np.exp, 2, 1.0, "series").round(4).tolist()
    [0.9946, 1.1303, 0.543]
    >>> polynomial_coefficients(np.exp, 2, 1.0, "bernstein").round(4).tolist()
    [1.2715, 1.1752, 0.2715]
    >>> polynomial_coefficients(np.exp, 2, 1.0, "minimax").round(4).tolist()
    [0.989, 1.1302, 0.554]
    """
    _check(degree, radius, construction, iterations)

    def scaled(x: Floats) -> Floats:
        with np.errstate(over="ignore"):
            values = function(radius * x)
        if not np.isfinite(values).all():
            raise UserError(f"radius = {radius:g} is too large: the function overflows on [-radius, radius]")
        return values

    if construction == "bernstein":
        b = _bernstein(scaled, degree, iterations)
    else:
        c = _minimax(scaled, degree) if construction == "minimax" else _chebyshev(scaled, degree, construction)
        b = np.asarray(chebyshev.cheb2poly(c), dtype=float)  # in powers of s / radius, without trailing zeros
    return np.pad(b, (0, degree + 1 - len(b))) / radius ** np.arange(degree + 1.0)


def _check(degree: int, radius: float, construction: str, iterations: int) -> None:
    check_known("construction", construction, CONSTRUCTIONS)
    least = 1 if construction == "bernstein" else 0
    if degree < least:
        raise UserError(f"degree must be at least {least}, not {degree}")
    if not RADII[0] <= radius <= RADII[1]:
        raise UserError(f"radius must lie between {RADII[0]:g} and {RADII[1]:g}, not {radius:g}")
    if iterations < 1 or (iterations > 1 and construction != "bernstein"):
        raise UserError(f"iterations must be 1, or more for bernstein, not {iterations} for {construction}")


def _chebyshev(function: Callable[[Floats], Floats], degree: int, construction: str) -> Floats:
    """c (degree + 1,) of sum_k c_k T_k near a function on [-1, 1]."""
    nodes = degree + 1 if construction == "interpolation" else NODES
    t = (np.arange(nodes) + 0.5) * np.pi / nodes
    c: Floats = 2 / nodes * np.cos(np.outer(np.arange(degree + 1), t)) @ function(np.cos(t))
    c[0] /= 2
    return c


def _bernstein(function: Callable[[Floats], Floats], degree: int, iterations: int) -> Floats:
    """b (degree + 1,) of f - (I - B)^k f = B (f + (I - B) f + ... + (I - B)^(k-1) f) on [-1, 1].

    B uses a function only at its nodes, so that the sum in the brackets is a sum of vectors there.
    """
    low, high = Polynomial([0.5, -0.5]), Polynomial([0.5, 0.5])  # 1 - t and t
    basis = [comb(degree, i) * high**i * low ** (degree - i) for i in range(degree + 1)]
    nodes = np.linspace(-1, 1, degree + 1)
    left = total = function(nodes)
    for _ in range(iterations - 1):
        left = left - np.stack([one(nodes) for one in basis], axis=1) @ left
        total = total + left
    return np.asarray(total @ [one.coef for one in basis], dtype=float)


def _minimax(function: Callable[[Floats], Floats], degree: int) -> Floats:
    """c (degree + 1,) of the sum_k c_k T_k nearest to a function on [-1, 1], by Remez's exchange of one point.

    The polynomial whose distance is +-E, in turn, on degree + 2 points; then the point where its distance is largest
    takes the place of one of them, which makes |E| grow, until no distance is larger.
    """
    x = np.cos(np.pi * np.arange(NODES + 1) / NODES)
    values, T = function(x), chebyshev.chebvander(x, degree)
    signs = (-1.0) ** np.arange(degree + 2)
    # Chebyshev's extrema but one: on all of a symmetric set an even or odd function would have E = 0
    points = np.round(np.arange(degree + 2) * NODES / (degree + 2)).astype(int)
    for _ in range(EXCHANGES):
        *c, level = np.linalg.solve(np.column_stack([T[points], signs]), values[points])
        distance = values - T @ c
        worst = int(np.abs(distance).argmax())
        if abs(distance[worst]) - abs(level) <= ROUNDING * np.abs(values).max():
            return np.array(c)
        points = _exchanged(points, worst, (distance[worst] > 0) == (level > 0), degree)
    raise ArithmeticError(f"Remez's exchange did not converge at degree {degree}")


def _exchanged(points: NDArray[np.intp], worst: int, first: bool, degree: int) -> NDArray[np.intp]:
    """The points with `worst` in place of a neighbour whose distance has its sign, or else of the other end.

    `first`: whether that is the sign of the first point, whose signs alternate.
    """
    place = int(np.searchsorted(points, worst))  # between the points place - 1 and place
    same = place if (place % 2 == 0) == first else place - 1
    if 0 <= same <= degree + 1:
        exchanged = points.copy()
        exchanged[same] = worst
        return exchanged
    return np.insert(points[:-1], 0, worst) if place == 0 else np.append(points[1:], worst)
