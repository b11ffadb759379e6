"""Least squares with confidence intervals from the released second moments of X and y."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError, check_part
from dpbench.models.fit import Fit
from dpbench.releases import Release, SufficientStatistics


def linear_statistics_intervals(release: Release, *, design: Design, level: float = 0.95, expected_rows: int) -> Fit:
    """theta = (X'X + ridge I)^-1 X'y, and theta_j -+ q se_j for the coefficients beta of y = x'beta + e.

    `ssp` and `analyze_gauss`, with A = X'X, E and e_y their noise: theta - beta = A^-1 (X'e + e_y - E beta), so Cov =
    A^-1 (sigma^2 A + C) A^-1, C = s_y^2 I + s^2 (||beta||^2 I + beta beta' - diag(beta^2)), with theta for beta,
    sigma^2 = max(0, y'y - theta'X'y) / (n - p), and q from the normal distribution. This treats A, which is noisy too,
    as fixed: a first-order approximation, good where the noise is small compared with the smallest eigenvalue of X'X.

    `jlt`: given the table, its r projected rows are iid N(0, M), M the moments of [X, y] + ridge I. Their regression is
    a normal linear model: theta_j -+ q sqrt(v A^-1_jj), A = X'X + ridge I, v = (y'y + ridge - theta'X'y) / (r - p), q
    from Student's distribution with r - p degrees of freedom, has exact coverage for the coefficients of M. v A^-1 r /
    n is added for the table's own deviation from beta. With a ridge (`altered` in the notes) the coefficients of M are
    those of ridge regression, (X'X + ridge I)^-1 X'y: the intervals do not cover their bias, -ridge (X'X + ridge I)^-1
    beta.

    **Source** Lin, Paquette and Kolaczyk 2024 for the first, Sheffet 2017 for the second.
    **Privacy** Post-processing. `expected_rows` is a declared n: the table's own n is private.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** 1. Sheffet's intervals for `ssp` need Gaussian features; these do not. 2. His for `jlt` need r to
    be well below n; here the ratio widens them.

    Raises `NoEstimateError` where X'X + ridge I is not positive definite, and `UserError` for a release without y'y, a
    level outside (0, 1), or fewer expected rows than coefficients.
    """
    from scipy.special import stdtrit

    statistics, p = release[SufficientStatistics], len(design.columns)
    check_part("linear_statistics_intervals: level", level)
    if expected_rows <= p:
        raise UserError(
            f"linear_statistics_intervals: expected_rows must be greater than {p}, the number of coefficients, not "
            f"{expected_rows}"
        )
    if statistics.yty is None:
        raise UserError(
            "the release has no y'y, which intervals need; mechanisms that release it: ssp_intervals, analyze_gauss, "
            "jlt, exact"
        )
    xtx = statistics.xtx + statistics.ridge * np.eye(p)
    inverse = inverse_of(xtx)
    theta = inverse @ statistics.xty
    rest = float(statistics.yty + statistics.ridge - theta @ statistics.xty)  # the residual sum of squares
    if "projections" in release.diagnostics:
        r = int(release.diagnostics["projections"])
        variance = rest / (r - p) * (1 + r / expected_rows) * np.diag(inverse)
        quantile = float(stdtrit(r - p, (1 + level) / 2))
        notes = {"level": level, "projections": r, "altered": release.diagnostics["altered"]}
    else:
        sigma2 = max(rest, 0.0) / (expected_rows - p)
        variance = sigma2 * np.diag(inverse) + np.diag(inverse @ _noise(theta, statistics) @ inverse)
        quantile = NormalDist().inv_cdf((1 + level) / 2)
        notes = {"level": level, "sigma2": sigma2}
    half = quantile * np.sqrt(variance)
    return Fit(theta, (statistics.xtx, statistics.xty), notes, np.stack([theta - half, theta + half], axis=1))


def inverse_of(xtx: Floats) -> Floats:
    """The inverse (p, p) of X'X with its noise. Raises `NoEstimateError` where that is not positive definite."""
    if np.linalg.eigvalsh(xtx)[0] <= 0:
        raise NoEstimateError(
            "X'X with its noise is not positive definite, so that no interval can be computed: features depend on each "
            "other, such as columns that are missing together, no row has some level, or epsilon is too small for so "
            f"many features ({len(xtx)})"
        )
    return np.linalg.solve(xtx, np.eye(len(xtx))).astype(np.float64, copy=False)


def _noise(beta: Floats, statistics: SufficientStatistics) -> Floats:
    """C (p, p), the covariance of e_y - E beta: E is symmetric, its upper triangle independent."""
    shared = np.outer(beta, beta) + np.diag(beta @ beta - beta**2)
    noise: Floats = statistics.xtx_sd**2 * shared + statistics.xty_sd**2 * np.eye(len(beta))
    return noise
