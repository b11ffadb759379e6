"""Logistic regression from a release: marginals, sufficient statistics, or rows (DD-SSP, section 3.3).

Labels y are -1 or +1, P(y = +1 | x) = 1 / (1 + exp(-x'theta)), and phi(s) = -log(1 + exp(-s)) is the log-likelihood
of one row at s = y x'theta.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import expit

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import UserError, check_positive
from dpbench.models.estimators import trained
from dpbench.models.fit import Fit
from dpbench.models.linear import linear_marginals, linear_statistics
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.models.training_rows import labelled_rows
from dpbench.releases import Release, SyntheticRows

OF_SEVERAL = ("logistic_lbfgs", "mlp_classifier", "random_forest_classifier", "xgboost_classifier")  # levels


def logistic_marginals(
    release: Release, *, design: Design, radius: float = 6.0, construction: str = "interpolation"
) -> Fit:
    """The maximiser of the degree-2 log-likelihood of released pairwise marginals (DD-SSP, Proposition 3.4).

    n b0 + b1 theta'X'y + b2 theta'X'X theta is largest at theta = -b1 / (2 b2) (X'X)^-1 X'y, b = (b0, b1, b2) being
    `polynomial_coefficients(phi, 2, radius, construction)`. phi(s) = s/2 - log(2 cosh(s/2)), and the second term is
    even, so that b1 = 1/2, and by hand (an interpolation meets phi at 0 and at +-r = radius cos(pi/6))

        interpolation   b0 = -log 2,       b1 = 1/2,  b2 = -log(cosh(r/2)) / r^2
        series          b0 = c_0/2 - c_2,  b1 = 1/2,  b2 = 2 c_2 / radius^2.

    This is least squares times a positive number (`scale` in the notes): which of two rows has the larger score, and
    so the AUC, depends on neither `radius` nor `construction`; the log loss depends on both. `models.linear.solve` says
    how a singular X'X is solved.

    Raises `UserError` for a target that is not -1 and +1, a radius out of range or an unknown construction.
    """
    return _scaled(linear_marginals(release, design=design), design, radius, construction)


def logistic_statistics(
    release: Release, *, design: Design, radius: float = 6.0, construction: str = "interpolation"
) -> Fit:
    """`logistic_marginals` from released sufficient statistics: -b1 / (2 b2) (X'X + ridge I)^-1 X'y."""
    return _scaled(linear_statistics(release, design=design), design, radius, construction)


def _scaled(least_squares: Fit, design: Design, radius: float, construction: str) -> Fit:
    check_labels(design)
    b = polynomial_coefficients(phi, 2, radius, construction)
    scale = -b[1] / (2 * b[2])
    chosen = {"construction": construction, "radius": radius, "b": b.tolist(), "scale": float(scale)}
    return replace(
        least_squares, coefficients=scale * least_squares.coefficients, notes={**least_squares.notes, **chosen}
    )


def logistic_rows(
    release: Release, *, design: Design, ridge: float = 1e-8, tolerance: float = 1e-10, iterations: int = 100
) -> Fit:
    """Maximum likelihood on released rows, with a tiny ridge (AIM-Synth of DD-SSP; 'public' on the real rows).

    The theta that minimises `logistic_loss`, by scikit-learn's LogisticRegression (Newton's method from 0, each step by
    a Cholesky factor of the Hessian). `ridge` makes it unique and finite where maximum likelihood is not: with
    collinear columns, with labels that a hyperplane separates, with one label only. It refers to the mean over n rows
    (scikit-learn's C is 1 / (n ridge)) and penalises the design's intercept too; no other intercept is fitted. The fit
    ends when no entry of the gradient is above `tolerance`, or after `iterations` steps; the notes record which, and
    the largest entry of the gradient.

    Raises `UserError` for a target that is not -1 and +1, or a parameter that is not positive.
    """
    from sklearn.linear_model import LogisticRegression

    check_labels(design)
    check_positive("logistic_rows", ridge=ridge, tolerance=tolerance, iterations=iterations)
    X, y = design.encode(release[SyntheticRows].table)
    if abs(y.sum()) == len(y):  # scikit-learn refuses one label; the loss of (-x, -y) is that of (x, y)
        X, y = np.vstack([X, -X]), np.concatenate([y, -y])
    solver = LogisticRegression(
        C=1 / (len(y) * ridge), fit_intercept=False, solver="newton-cholesky", tol=tolerance, max_iter=iterations
    )
    with warnings.catch_warnings(action="ignore"):  # recorded in the notes
        solver.fit(X, y)
    theta: Floats = solver.coef_[0]
    value, gradient = logistic_loss(theta, X, y, ridge)
    norm, steps = float(np.abs(gradient).max()), int(solver.n_iter_[0])
    notes = {"converged": norm <= tolerance, "iterations": steps, "gradient_norm": norm, "loss": value, "ridge": ridge}
    return Fit(theta, notes=notes)


def logistic_lbfgs(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    C: float | None = 1.0,
    iterations: int = 10_000,
    share: float = 1.0,
) -> Fit:
    """Logistic regression of released rows by L-BFGS, as scikit-learn does it (Zhou et al. 2024, excess risk, 5).

    The theta that minimises ||w||_2^2 / 2 + C sum_i log(1 + exp(-y_i x_i'theta)), w being theta without the intercept;
    C = None is maximum likelihood. The paper's code has the default of scikit-learn, C = 1, at most 10,000
    `iterations`, and the codes of the attributes for features (`design.categorical=ordinal`, `+design.scaled=false`),
    on whose units the penalty depends. It trains on a random 80 % of the synthetic rows (`share`).

    For several levels it is multinomial regression, which predicts a level and has no coefficients.

    Raises `UserError` for a target that is no class or a parameter out of range, `NoEstimateError` if the rows have one
    label only.
    """
    from sklearn.linear_model import LogisticRegression

    if not design.several:
        check_labels(design)
    if not (C is None or C > 0) or iterations < 1:
        raise UserError(f"logistic_lbfgs: C and iterations must be greater than 0, not {C} and {iterations}")
    X, y = labelled_rows(release, design, rng, share=share)
    features = X[:, :-1] if design.intercept else X
    solver = LogisticRegression(C=np.inf if C is None else C, max_iter=iterations, fit_intercept=design.intercept)
    with warnings.catch_warnings(action="ignore"):  # recorded in the notes
        if design.several:
            return trained(solver, X, y, design)
        solver.fit(features, y)
    theta: Floats = np.append(solver.coef_[0], solver.intercept_) if design.intercept else solver.coef_[0]
    steps = int(solver.n_iter_[0])
    return Fit(theta, notes={"rows": len(y), "converged": steps < iterations, "iterations": steps, "C": C})


def phi(s: Floats) -> Floats:
    """-log(1 + exp(-s)), which does not overflow."""
    return -np.logaddexp(0.0, -s)


def logistic_loss(theta: Floats, X: Floats, y: Floats, ridge: float) -> tuple[float, Floats]:
    """-1/n sum_i phi(y_i x_i'theta) + ridge/2 ||theta||_2^2 and its gradient (p,), of X (n, p) and y (n,) of -1 and +1.

    >>> value, gradient = logistic_loss(np.zeros(1), np.array([[1.0], [3.0]]), np.array([1.0, -1.0]), 0.0)
    >>> round(value, 4), gradient.tolist()
    (0.6931, [0.5])
    """
    margins = y * (X @ theta)
    value = -phi(margins).mean() + ridge / 2 * (theta @ theta)
    return float(value), -(X.T @ (y * expit(-margins))) / len(y) + ridge * theta


def check_labels(design: Design) -> None:
    """Raises `UserError` for a target that is not -1 and +1."""
    target = design.domain[design.target]
    if not design.binary:
        several = f"categorical, of {target.size} levels, which {', '.join(OF_SEVERAL)} take"
        raise UserError(
            "logistic regression needs a categorical target of two levels, or a numeric one of just two values; "
            f"{target.name!r} is {several if design.several else f'numeric, of {target.size} bins'}"
        )
