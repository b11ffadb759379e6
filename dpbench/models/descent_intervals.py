"""Intervals of least squares from the iterates of noisy gradient descent (Brown et al. 2024)."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError, check_known, check_part
from dpbench.models.fit import Fit
from dpbench.releases import Coefficients, Release

TARGETS = ("population", "rows")
FALSE_DRIFT = 0.01  # of settled runs, the part that is refused, were the batches independent


def descent_intervals(
    release: Release, *, design: Design, level: float = 0.95, of: str = "population", expected_rows: int
) -> Fit:
    """theta_j -+ the root of t^2 v_j + q^2 sigma^2 a_j, for the coefficients of a `population` of which the rows are a
    sample, or without the second term for the least-squares fit to the `rows` themselves.

    v_j: the variance of the mean of m batches of iterates, by their differences, and t the quantile of Student's
    distribution with m - 1 degrees of freedom. sigma^2 a_j, a = diag((X'X)^-1) and sigma^2 the mean squared residual,
    is the variance of least squares, and q the quantile of the normal distribution.

    **Source** Brown et al. 2024, arXiv 2402.13531, for `rows`; see `mechanisms.dpgd_intervals` for what was read.
    **Privacy** Post-processing. `expected_rows` is a declared n: the table's own n is private.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** 1. `population` is not in the paper: errors are taken to have one variance, sigma^2. 2. The paper
    has guarantees under its conditions; here a run that has visibly not settled is refused: the halves of its batches
    differ in a coefficient, by a t test at `FALSE_DRIFT` / p. Directions in which X'X is small settle slowly and show
    little drift, so that intervals of such features are too short.

    Raises `UserError` for a release without iterates, a level outside (0, 1), or fewer expected rows than
    coefficients; `NoEstimateError` for a run that has not settled.
    """
    from scipy.special import stdtrit

    found, p, notes = release[Coefficients], len(design.columns), release.diagnostics
    check_part("descent_intervals: level", level)
    check_known("of", of, TARGETS)
    if expected_rows <= p:
        raise UserError(
            f"descent_intervals: expected_rows must be greater than {p}, the number of coefficients, not "
            f"{expected_rows}"
        )
    if found.covariance is None or "batches" not in notes:
        raise UserError("descent_intervals needs the iterates of gradient descent; mechanism=dpgd_intervals has them")
    batches, drift = int(notes["batches"]), float(notes["drift"])
    if drift > stdtrit(batches - 2, 1 - FALSE_DRIFT / (2 * p)):
        raise NoEstimateError(
            f"gradient descent has not settled: the halves of its last iterates differ by {drift:.3g} standard errors "
            "in a coefficient; raise burn_in and steps of dpgd_intervals, or leave out features that depend on others"
        )
    sigma2 = max(float(notes["squared_residuals"]), 0.0) / (expected_rows - p)
    variance = float(stdtrit(batches - 1, (1 + level) / 2)) ** 2 * np.diag(found.covariance)
    if of == "population":
        variance = variance + NormalDist().inv_cdf((1 + level) / 2) ** 2 * sigma2 * np.array(notes["inverse"])
    half = np.sqrt(variance)
    noted = {"level": level, "of": of, "sigma2": sigma2, "drift": drift}
    return Fit(found.values, notes=noted, intervals=np.stack([found.values - half, found.values + half], axis=1))
