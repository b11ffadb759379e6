"""DD-SSP with confidence intervals from unbiased noisy marginals, whose noise has a known distribution."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.encode import Design, pairs
from dpbench.errors import NoEstimateError, UserError, check_part
from dpbench.inference import Measurement
from dpbench.inference.residuals import Residuals, centred
from dpbench.models.fit import Fit
from dpbench.models.linear_intervals import inverse_of
from dpbench.releases import Marginals, Release


def linear_marginals_intervals(release: Release, *, design: Design, level: float = 0.9) -> Fit:
    """theta = A^-1 b, A = X'X and b = X'y from noisy marginals of pairs, and theta_j -+ q se_j for the beta of y =
    x'beta + e.

    With E and e_b the noise of A and b, theta - beta = A^-1 (X'e + e_b - E beta), so that Cov = A^-1 (sigma^2 A + C)
    A^-1, sigma^2 = max(0, y'y - theta'b) / (n - p) and C the covariance of e_b - E theta. As in
    `linear_statistics_intervals`, A is treated as fixed: a first-order approximation, good where the noise is small
    compared with the smallest eigenvalue of X'X.

    C is exact. A row adds x (y - x'theta) to b - A theta, and both factors are sums of functions of one attribute each,
    x = sum_a G_a(v_a) and y - x'theta = sum_a f_a(v_a). So b - A theta is linear in the marginals of pairs, and in
    their residuals, whose noise is independent: the residual of a clique r has the coefficients L_r, and C is
    sum_r variance_r sum_cells L_r L_r', L_r centred.

    **Source** DD-SSP, Proposition 3.2, for A and b; Xiao et al. 2023, section 4, for the noise of residuals.
    **Privacy** Post-processing. n is public, or estimated by the release.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** None.

    Raises `UserError` for a level outside (0, 1), or a release whose marginals are not unbiased with a known noise;
    `NoEstimateError` where X'X with its noise is not positive definite, or there are fewer rows than coefficients.
    """
    check_part("linear_marginals_intervals: level", level)
    residuals = _unbiased(release)
    wanted, p = pairs(release.domain), len(design.columns)
    xtx, xty = design.moments({r: residuals.marginal(r) for r in wanted})
    n, target = residuals.total, design.matrices[design.target][0]
    inverse = inverse_of(xtx)
    if n <= p:
        raise NoEstimateError(f"the noisy number of rows, {n:.0f}, is not greater than {p}, the number of coefficients")
    theta = inverse @ xty
    yty = float(residuals.marginal((design.target,)) @ target**2)
    sigma2 = max(yty - float(theta @ xty), 0.0) / (n - p)
    variance = np.diag(inverse @ (sigma2 * xtx + _noise(design, theta, residuals)) @ inverse)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance)
    notes = {"level": level, "sigma2": sigma2, "pairs": len(wanted)}
    return Fit(theta, (xtx, xty), notes, np.stack([theta - half, theta + half], axis=1))


def _unbiased(release: Release) -> Residuals:
    """The residuals of the release's marginals, with the variances of their noise."""
    marginals, sizes = release[Marginals], release.domain.sizes
    if release.diagnostics.get("reconstruction") != "unbiased" or not marginals.noise:
        raise UserError(
            "linear_marginals_intervals needs unbiased marginals with Gaussian noise: those of residual_planner or "
            "gaussian_marginals with reconstruction=unbiased; this release's are "
            f"by {release.diagnostics.get('reconstruction', release.diagnostics.get('engine', 'another mechanism'))}"
        )
    n = round(release.diagnostics["total"]) if release.budget.relation == "replace" else None
    noisy = {r: sd for r, sd in marginals.noise if not marginals.of_residuals}
    if noisy:
        return Residuals.of(sizes, [Measurement(r, marginals.tables[r], sd) for r, sd in noisy.items()], n)
    exact = Residuals.of(sizes, [Measurement(r, table, 1.0) for r, table in marginals.tables.items()], n)
    variances = {r: sd**2 for r, sd in marginals.noise} | ({} if n is None else {(): 0.0})
    return Residuals(sizes, {r: exact.values[r] for r in variances}, variances)


def _noise(design: Design, theta: Floats, residuals: Residuals) -> Floats:
    """C (p, p), the covariance of the noise of X'y - X'X theta."""
    p, names = len(theta), design.domain.names
    G: dict[str, Floats] = {}  # (p, m): the contribution of a level to x
    f: dict[str, Floats] = {}  # (m,): and to y - x'theta
    start = 0
    for name in design.features:
        matrix = design.matrices[name]
        G[name] = np.zeros((p, matrix.shape[1]))
        G[name][start : start + len(matrix)] = matrix
        f[name] = -theta[start : start + len(matrix)] @ matrix
        start += len(matrix)
    f[design.target] = design.matrices[design.target][0]
    G[design.target] = np.zeros((p, len(f[design.target])))
    one, constant = np.zeros(p), 0.0  # contribution of the intercept to both
    if design.intercept:
        one[-1], constant = 1.0, -float(theta[-1])

    L: dict[Clique, Floats] = {(): one * constant}
    for a in names:
        L[(a,)] = G[a] * (f[a] + constant) + one[:, None] * f[a]
    for a, b in combinations(names, 2):
        L[a, b] = G[a][:, :, None] * f[b] + f[a][:, None] * G[b][:, None, :]
        L[(a,)] = L[(a,)] + L[a, b].mean(axis=2)
        L[(b,)] = L[(b,)] + L[a, b].mean(axis=1)
    L[()] = L[()] + sum(table.mean(axis=1) for r, table in L.items() if len(r) == 1)
    L[()] = L[()] - sum(table.mean(axis=(1, 2)) for r, table in L.items() if len(r) == 2)  # each is in two singles

    C = np.zeros((p, p))
    for r, table in L.items():
        if residuals.variances.get(r, 0.0) > 0:
            flat = np.stack([centred(part) for part in table]).reshape(p, math.prod(table.shape[1:]))
            C += residuals.variances[r] * flat @ flat.T
    return C
