"""Least squares on rows with the classical robust interval: the non-private reference."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, second_moments
from dpbench.errors import check_part
from dpbench.models.fit import Fit
from dpbench.models.linear import RELATIVE_RANK_TOLERANCE, solve, units
from dpbench.models.training_rows import training_rows
from dpbench.releases import Release


def linear_rows_sandwich(release: Release, *, design: Design, rng: np.random.Generator, level: float = 0.9) -> Fit:
    """Least squares on the rows of `linear_rows`, theta_j -+ z se_j, as if they were drawn from the population.

    That is so for `exact_table`, whose rows are the real ones. On synthetic rows it is the analysis of a user who
    ignores how they were made: the interval accounts for neither the noise nor the model's error.

    **Source** White 1980, "A heteroskedasticity-consistent covariance matrix estimator": the covariance
    (X'X)^-1 (sum_i e_i^2 x_i x_i') (X'X)^-1, with the pseudo-inverse where columns are collinear.
    **Privacy** Post-processing.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.

    Raises `UserError` for a level outside (0, 1).
    """
    check_part("linear_rows_sandwich: level", level)
    fit, variances = robust_fit(*training_rows(release, design, rng), scaled=design.scaled)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variances)
    intervals = np.stack([fit.coefficients - half, fit.coefficients + half], axis=1)
    return replace(fit, intervals=intervals, notes={**fit.notes, "level": level})


def robust_fit(X: Floats, y: Floats, *, scaled: bool) -> tuple[Fit, Floats]:
    """Least squares, and White's variances (p,) of its coefficients."""
    fit = solve(*second_moments(X, y), scaled=scaled)
    unit = units(X.T @ X, scaled)
    square = np.outer(unit, unit)
    bread = np.linalg.pinv(X.T @ X / square, rcond=RELATIVE_RANK_TOLERANCE, hermitian=True) / square
    scores = X * (y - X @ fit.coefficients)[:, None]
    return fit, np.diag(bread @ (scores.T @ scores) @ bread)
