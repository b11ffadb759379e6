"""Polynomials near a log-likelihood in Chebyshev's basis (Paper 0, section 3.3, appendix F; Huggins et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from dpbench.data.domain import Floats
from dpbench.errors import UserError, unknown

CONSTRUCTIONS = ("interpolation", "series")
RADII = (1e-3, 1e3)  # below, the square of s drowns in the rounding of the function
# The c_k of a function that is analytic up to +-i pi shrink like exp(-k asinh(pi / radius)) (Trefethen 2013, Theorem
# 8.1), and at radius 1000 are below the rounding of 1 from k = 11,473 on.
SERIES_NODES = 2**14


def chebyshev_coefficients(
    function: Callable[[Floats], Floats], degree: int, radius: float, construction: str
) -> Floats:
    """b (degree + 1,) of the polynomial sum_m b_m s^m near function(s) on [-radius, radius].

    With T_k(cos t) = cos(k t) and c_0 halved, the polynomial is sum_k c_k T_k(s / radius), where `interpolation` at the
    M + 1 nodes radius cos(t_j), t_j = (j + 1/2) pi / (M + 1), has

        c_k = 2 / (M + 1) sum_j function(radius cos t_j) cos(k t_j)         (M = degree)

    and the truncated `series` has the integral that this sum tends to as its nodes grow in number,

        c_k = 2 / pi int_0^pi function(radius cos t) cos(k t) dt,

    here with 16,384 nodes: exact up to rounding for `exp` and for functions analytic up to +-i pi, such as the logistic
    log-likelihood. Paper 0 does not say which of the two its Figure 2 (degree 2, radius 6) shows.

    Raises `UserError` for a degree below 0, a radius outside [0.001, 1000] or on which the function overflows, or an
    unknown construction.

    >>> chebyshev_coefficients(np.exp, 2, 1.0, "interpolation").round(4).tolist()
    [1.0, 1.1298, 0.532]
    >>> chebyshev_coefficients(np.exp, 2, 1.0, "series").round(4).tolist()
    [0.9946, 1.1303, 0.543]
    """
    if construction not in CONSTRUCTIONS:
        raise unknown("construction", construction, CONSTRUCTIONS)
    if degree < 0:
        raise UserError(f"degree must be at least 0, not {degree}")
    if not RADII[0] <= radius <= RADII[1]:
        raise UserError(f"radius must lie between {RADII[0]:g} and {RADII[1]:g}, not {radius:g}")
    nodes = degree + 1 if construction == "interpolation" else SERIES_NODES
    t = (np.arange(nodes) + 0.5) * np.pi / nodes
    with np.errstate(over="ignore"):
        values = function(radius * np.cos(t))
    if not np.isfinite(values).all():
        raise UserError(f"radius = {radius:g} is too large: the function overflows on [-radius, radius]")
    c = 2 / nodes * np.cos(np.outer(np.arange(degree + 1), t)) @ values
    c[0] /= 2
    b = chebyshev.cheb2poly(c)  # in powers of s / radius, without trailing zeros
    return np.pad(b, (0, degree + 1 - len(b))) / radius ** np.arange(degree + 1.0)
