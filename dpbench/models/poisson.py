"""Poisson regression from a release: marginals, sufficient statistics, or rows (DD-SSP, appendix F.2).

The target y is a count with mean exp(x'theta): the log link. `Design` scales a numeric target to [-1, 1]; here that is
undone, so that X'y and y are counts.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_positive
from dpbench.models.fit import Fit
from dpbench.models.linear import solve
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.releases import Marginals, Release, SufficientStatistics, SyntheticRows

LARGEST_CENTER = 700  # beyond, exp overflows


def poisson_marginals(
    release: Release,
    *,
    design: Design,
    radius: float = 0.5,
    center: float | None = None,
    construction: str = "interpolation",
) -> Fit:
    """DD-SSP: the maximiser of the degree-2 Poisson log-likelihood of released pairwise marginals.

    With s_i = x_i'theta, exp(s) is near e^c (c0 + c1 (s - c) + c2 (s - c)^2) on [c - radius, c + radius], where c is
    `center` and (c0, c1, c2) are `polynomial_coefficients(exp, 2, radius, construction)`. c2 > 0, and

        sum_i y_i s_i - e^c (c0 + c1 (s_i - c) + c2 (s_i - c)^2)

    is largest where theta' = theta - c e, e the unit vector of the intercept, solves

        2 c2 X'X theta' = e^-c X'y - c1 X'1.

    **Source** DD-SSP, appendix F.2.
    **Privacy** Post-processing of the release.
    **Shapes** X'X (p, p); X'y (p,) of counts; X'1 (p,), the column of X'X that belongs to the intercept.
    **Departures** 1. F.2 names [-6, 6] as an example (`center=0 radius=6`). No polynomial of degree 2 approximates exp
    there: the interpolation is off by up to 179 and the series by 120, and both make the mean count far too low. The
    default is an interval suited to the counts: its center is the logarithm of the released mean count
    (`center=None`), so that the polynomial is near exp for means from 0.61 to 1.65 times it. Where the features are not
    informative, the fitted mean is exp((1 - c1) / (2 c2)) of the true one: 3% low at radius 0.5, 11% at 1. Where noise
    moved the released mean out of the range of the counts, the center is the published one, 0.
    2. `models.linear.solve` says how a singular X'X is solved.

    Raises `UserError` for a target that is not a count, a design without intercept, a radius or a center out of range,
    or an unknown construction.
    """
    check_counts(design)
    xtx, xty = design.moments(release[Marginals].tables)
    return _maximiser(xtx, xty, 0.0, design, radius, center, construction, scaled=design.scaled)


def poisson_statistics(
    release: Release,
    *,
    design: Design,
    radius: float = 0.5,
    center: float | None = None,
    construction: str = "interpolation",
) -> Fit:
    """`poisson_marginals` from released sufficient statistics: (X'X + ridge I)^-1 in place of (X'X)^-1."""
    check_counts(design)
    given = release[SufficientStatistics]
    scaled = design.scaled or given.xtx_sd > 0  # as in `models.linear.linear_statistics`
    return _maximiser(given.xtx, given.xty, given.ridge, design, radius, center, construction, scaled=scaled)


def _maximiser(
    xtx: Floats,
    xty: Floats,
    ridge: float,
    design: Design,
    radius: float,
    center: float | None,
    construction: str,
    *,
    scaled: bool,
) -> Fit:
    if not design.intercept:
        raise UserError("poisson_marginals and poisson_statistics need design.intercept=true: they read X'1 off X'X")
    if center is not None and not abs(center) <= LARGEST_CENTER:
        raise UserError(f"center must lie between {-LARGEST_CENTER} and {LARGEST_CENTER}, not {center:g}")
    b = polynomial_coefficients(np.exp, 2, radius, construction)
    ones = xtx[:, -1]
    counts = design.target_scale * xty + _middle(design) * ones
    mean = float(counts[-1] / ones[-1])
    if center is None:
        center = math.log(mean) if 0 < mean <= max(design.domain[design.target].values) else 0.0
    right = (math.exp(-center) * counts - b[1] * ones) / (2 * b[2])
    fit = solve(xtx, right, ridge=ridge, scaled=scaled)
    theta = fit.coefficients.copy()
    theta[-1] += center
    chosen = {"construction": construction, "radius": radius, "center": center, "mean": mean, "b": b.tolist()}
    return replace(fit, coefficients=theta, moments=(xtx, xty), notes={**fit.notes, **chosen})


def poisson_rows(
    release: Release, *, design: Design, ridge: float = 1e-8, tolerance: float = 1e-10, iterations: int = 100
) -> Fit:
    """Maximum likelihood on released rows, with a tiny ridge (AIM-Synth; 'public' on the real rows).

    The theta that minimises `poisson_loss`, by scikit-learn's PoissonRegressor (Newton's method from 0). The ridge, the
    tolerance and the notes are those of `models.logistic.logistic_rows`.

    Raises `UserError` for a target that is not a count, or a parameter that is not positive.
    """
    from sklearn.linear_model import PoissonRegressor

    table = release[SyntheticRows].table
    check_positive("poisson_rows", ridge=ridge, tolerance=tolerance, iterations=iterations)
    y = counts_of(design, table)
    X, _ = design.encode(table)
    solver = PoissonRegressor(
        alpha=ridge, fit_intercept=False, solver="newton-cholesky", tol=tolerance, max_iter=iterations
    )
    with warnings.catch_warnings(action="ignore"):  # recorded in the notes
        solver.fit(X, y)
    theta: Floats = solver.coef_
    value, gradient = poisson_loss(theta, X, y, ridge)
    norm, steps = float(np.abs(gradient).max()), int(solver.n_iter_)
    notes = {"converged": norm <= tolerance, "iterations": steps, "gradient_norm": norm, "loss": value, "ridge": ridge}
    return Fit(theta, notes=notes)


def poisson_loss(theta: Floats, X: Floats, y: Floats, ridge: float) -> tuple[float, Floats]:
    """1/n sum_i exp(x_i'theta) - y_i x_i'theta + ridge/2 ||theta||_2^2 and its gradient (p,), of X (n, p) and y (n,).

    >>> value, gradient = poisson_loss(np.zeros(1), np.array([[1.0], [3.0]]), np.array([2.0, 1.0]), 0.0)
    >>> value, gradient.tolist()
    (1.0, [-0.5])
    """
    scores = X @ theta
    mu = np.exp(scores)
    value = np.mean(mu - y * scores) + ridge / 2 * (theta @ theta)
    return float(value), X.T @ (mu - y) / len(y) + ridge * theta


def counts_of(design: Design, table: Table) -> Floats:
    """The counts y (n,) of a table's rows. Raises `UserError` for a target that is not a count."""
    check_counts(design)
    return np.array(design.domain[design.target].values)[table.column(design.target)]


def check_counts(design: Design) -> None:
    """Raises `UserError` for a target that is not a count: listed whole numbers of at least 0."""
    if not design.counted:
        raise UserError(
            f"Poisson regression needs a target of listed whole numbers of at least 0, such as "
            f"{{values: {{from: 0, to: 9}}}}, but {design.target!r} is not one"
        )


def _middle(design: Design) -> float:
    """The count at y = 0."""
    lower, upper = design.domain[design.target].bounds or (-1.0, 1.0)
    return (lower + upper) / 2 if design.scaled else 0.0
