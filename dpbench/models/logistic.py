"""Logistic regression from what a release offers: marginals, sufficient statistics, or rows (Paper 0, section 3.3).

Labels y are -1 or +1, P(y = +1 | x) = 1 / (1 + exp(-x'theta)), and phi(s) = -log(1 + exp(-s)) is the log-likelihood
of one row at s = y x'theta.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import solve
from scipy.special import expit

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import UserError, unknown
from dpbench.mechanisms.release import Release
from dpbench.models.fit import Fit
from dpbench.models.linear import linear_marginals, linear_statistics

CONSTRUCTIONS = ("interpolation", "series")
RADII = (1e-3, 1e3)  # below, b2 s^2 drowns in the rounding of phi; above, a series takes more than 10,000 nodes
ARMIJO = 1e-4  # Nocedal and Wright (2006), section 3.1


def logistic_marginals(
    release: Release, *, design: Design, radius: float = 6.0, construction: str = "interpolation"
) -> Fit:
    """DD-SSP: the maximiser of the degree-2 log-likelihood of released pairwise marginals (Paper 0, Proposition 3.4).

    n b0 + b1 theta'X'y + b2 theta'X'X theta is largest at theta = -b1 / (2 b2) (X'X)^-1 X'y, b = (b0, b1, b2) being
    `chebyshev_coefficients(2, radius, construction)`. This is least squares times a positive number (`scale` in the
    notes): which of two rows has the larger score, and so the AUC, depends on neither `radius` nor `construction`; the
    log loss depends on both. `models.linear.solve` says how a singular X'X is solved.

    Raises `UserError` for a target that is not -1 and +1, a radius out of range or an unknown construction.
    """
    return _scaled(linear_marginals(release, design=design), design, radius, construction)


def logistic_statistics(
    release: Release, *, design: Design, radius: float = 6.0, construction: str = "interpolation"
) -> Fit:
    """`logistic_marginals` from released sufficient statistics: -b1 / (2 b2) (X'X + ridge I)^-1 X'y."""
    return _scaled(linear_statistics(release, design=design), design, radius, construction)


def _scaled(least_squares: Fit, design: Design, radius: float, construction: str) -> Fit:
    _check_labels(design)
    b = chebyshev_coefficients(2, radius, construction)
    scale = -b[1] / (2 * b[2])
    chosen = {"construction": construction, "radius": radius, "b": b.tolist(), "scale": float(scale)}
    return replace(
        least_squares, coefficients=scale * least_squares.coefficients, notes={**least_squares.notes, **chosen}
    )


def chebyshev_coefficients(degree: int, radius: float, construction: str) -> Floats:
    """b (degree + 1,) of the polynomial sum_m b_m s^m near phi(s) = -log(1 + exp(-s)) on [-radius, radius].

    With T_k(cos t) = cos(k t) and c_0 halved, the polynomial is sum_k c_k T_k(s / radius), where `interpolation` at the
    M + 1 nodes radius cos(t_j), t_j = (j + 1/2) pi / (M + 1), has

        c_k = 2 / (M + 1) sum_j phi(radius cos t_j) cos(k t_j)         (M = degree)

    and the truncated `series` has the integral that this sum tends to as its nodes grow in number,

        c_k = 2 / pi int_0^pi phi(radius cos t) cos(k t) dt.

    Paper 0 does not say which of the two its Figure 2 (degree 2, radius 6) shows.

    phi(s) = s/2 - log(2 cosh(s/2)), and the second term is even. So at degree 2 either construction has b1 = 1/2, and
    by hand (an interpolation meets phi at 0 and at +-r = radius cos(pi/6))

        interpolation   b0 = -log 2,       b1 = 1/2,  b2 = -log(cosh(r/2)) / r^2
        series          b0 = c_0/2 - c_2,  b1 = 1/2,  b2 = 2 c_2 / radius^2.

    Raises `UserError` for a degree below 0, a radius outside [0.001, 1000] or an unknown construction.

    >>> chebyshev_coefficients(2, 6.0, "interpolation").round(4).tolist()
    [-0.6931, 0.5, -0.0708]
    >>> chebyshev_coefficients(2, 6.0, "series").round(4).tolist()
    [-0.8823, 0.5, -0.0621]
    """
    if construction not in CONSTRUCTIONS:
        raise unknown("construction", construction, CONSTRUCTIONS)
    if degree < 0:
        raise UserError(f"degree must be at least 0, not {degree}")
    if not RADII[0] <= radius <= RADII[1]:
        raise UserError(f"radius must lie between {RADII[0]:g} and {RADII[1]:g}, not {radius:g}")
    nodes = degree + 1 + (_negligible_degree(radius) if construction == "series" else 0)
    t = (np.arange(nodes) + 0.5) * np.pi / nodes
    c = 2 / nodes * np.cos(np.outer(np.arange(degree + 1), t)) @ -np.logaddexp(0.0, -radius * np.cos(t))
    c[0] /= 2
    b = chebyshev.cheb2poly(c)  # in powers of s / radius, without trailing zeros
    return np.pad(b, (0, degree + 1 - len(b))) / radius ** np.arange(degree + 1.0)


def _negligible_degree(radius: float) -> int:
    """The degree from which the coefficients of phi(radius x) are below the rounding of 1.

    phi is singular at +-i pi, so that c_k shrinks like exp(-k asinh(pi / radius)) (Trefethen 2013, Theorem 8.1).
    """
    return math.ceil(-math.log(np.finfo(float).eps) / math.asinh(math.pi / radius))


def logistic_rows(
    release: Release, *, design: Design, ridge: float = 1e-8, tolerance: float = 1e-10, iterations: int = 100
) -> Fit:
    """Maximum likelihood on released rows, but for a tiny ridge (Paper 0, AIM-Synth; 'public' on the real rows).

    The theta of least `logistic_loss`, by Newton's method with backtracking from 0. `ridge` makes it unique and finite
    where maximum likelihood is not: with collinear columns, with labels that a hyperplane separates, with one label
    only. It belongs to the mean over n rows (a penalty of ridge n / 2 on the sum, the C = 1 / (n ridge) of other
    software) and holds the intercept too. The fit ends when no entry of the gradient is above `tolerance`, or after
    `iterations` steps; the notes record which, and the largest entry of the gradient.

    Raises `UserError` for a target that is not -1 and +1, or a parameter that is not positive.
    """
    assert release.rows is not None
    _check_labels(design)
    if not (ridge > 0 and tolerance > 0 and iterations > 0):
        raise UserError(
            "logistic_rows: ridge, tolerance and iterations must each be greater than 0, "
            f"not {ridge:g}, {tolerance:g} and {iterations}"
        )
    X, y = design.encode(release.rows)
    theta = np.zeros(X.shape[1])
    value, gradient = logistic_loss(theta, X, y, ridge)
    done = 0
    while np.abs(gradient).max() > tolerance and done < iterations:
        step: Floats = solve(_hessian(theta, X, y, ridge), -gradient, assume_a="pos")
        size = _step_size(theta, step, value, float(gradient @ step), X, y, ridge)
        theta = theta + size * step
        value, gradient = logistic_loss(theta, X, y, ridge)
        done += 1
    norm = float(np.abs(gradient).max())
    notes = {"converged": norm <= tolerance, "iterations": done, "gradient_norm": norm, "loss": value, "ridge": ridge}
    return Fit(theta, notes=notes)


def logistic_loss(theta: Floats, X: Floats, y: Floats, ridge: float) -> tuple[float, Floats]:
    """-1/n sum_i phi(y_i x_i'theta) + ridge/2 ||theta||_2^2 and its gradient (p,), of X (n, p) and y (n,) of -1 and +1.

    >>> value, gradient = logistic_loss(np.zeros(1), np.array([[1.0], [3.0]]), np.array([1.0, -1.0]), 0.0)
    >>> round(value, 4), gradient.tolist()
    (0.6931, [0.5])
    """
    margins = y * (X @ theta)
    value = np.logaddexp(0.0, -margins).mean() + ridge / 2 * (theta @ theta)
    return float(value), -(X.T @ (y * expit(-margins))) / len(y) + ridge * theta


def _hessian(theta: Floats, X: Floats, y: Floats, ridge: float) -> Floats:
    margins = y * (X @ theta)
    weights = expit(margins) * expit(-margins) / len(y)
    hessian: Floats = (X * weights[:, None]).T @ X + ridge * np.eye(X.shape[1])
    return hessian


def _step_size(theta: Floats, step: Floats, value: float, slope: float, X: Floats, y: Floats, ridge: float) -> float:
    """The first of 1, 1/2, 1/4, ... whose step lowers the loss enough, up to the rounding of the loss."""
    size, rounding = 1.0, 10 * np.finfo(float).eps * value  # a mean of rows is off by a few eps
    while logistic_loss(theta + size * step, X, y, ridge)[0] > value + ARMIJO * size * slope + rounding:
        size /= 2
    return size


def _check_labels(design: Design) -> None:
    target = design.domain[design.target]
    if not design.binary:
        raise UserError(
            "logistic regression needs a categorical target of two levels, or a numeric one of just two values; "
            f"{target.name!r} is numeric, of {target.size} bins"
        )
