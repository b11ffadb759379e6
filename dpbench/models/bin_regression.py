"""Bias-corrected linear regression on noisy sums of bins, with confidence intervals (BinAgg, Algorithm 2)."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, check_known, check_part, check_positive
from dpbench.files import Json
from dpbench.models.fit import Fit
from dpbench.releases import BinSums, Release

CORRECTIONS = {  # whether the sum or the mean of w_k D_k is subtracted: in the estimate, in its covariance
    "sum": ("sum", "sum"),
    "published": ("mean", "mean"),
    "authors": ("mean", "sum"),
}


def bin_regression(
    release: Release, *, design: Design, level: float = 0.95, correction: str = "sum", definite: bool = True
) -> Fit:
    """beta = (S'WS - D)^-1 S'W t, weighted least squares on the bins, corrected for the bias due to the noise of S.

    `correction` defines D. With `definite: false` S'WS - D need not be positive definite.

    **Source** BinAgg, Algorithm 2, lines 5 to 7, and Theorem 4.2. w_k = 1 / c_k; D_k is the covariance of the noise of
    s_k; D is the sum of w_k D_k. The covariance of beta is M^-1 H M^-1, with M = S'WS - D, H = K / (K - d) times the
    sum of Q_k Q_k', Q_k = w_k s_k (t_k - s_k beta) + w_k D_k beta (the published factors 1 / K cancel).
    **Privacy** Post-processing.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** 1. Line 6 has the mean of w_k D_k over the bins, line 7 subtracts it from a sum over them. The
    estimating equation sum Q_k = 0 in the proof of Theorem 4.2 needs the sum. `correction: published` has the mean,
    in M and Q_k too, and leaves most of the bias. `authors`, as in the authors' package: beta has the mean, its
    covariance the sum. 2. The standard error is the root of the diagonal entry.
    3. Of a release that is `centred`, D_k is the covariance of the noise of s_k given the count c_k. There, with m the
    bin's middle, s_k / c_k = m + z / c_k, and t_k - s_k beta has (m_y - m beta) times the error of the count besides
    its other, independent parts. The mean of their product is 0 except for z / c_k, which is small in the middle of a
    bin, so that the noise of the count needs no correction; its variance is in H. 4. With `definite: false` and no more
    bins than features, K - d is set to 1, as in the package.

    Raises `NoEstimateError` unless there are more bins than features and M is positive definite: for a column that is
    (almost) a linear combination of others, the result is noise. With `definite: false`, unless M is singular.
    """
    check_known("correction", correction, CORRECTIONS)
    z, bins = _quantile(level), _enough(release) if definite else release[BinSums]
    K, d = bins.sums.shape
    w, unit = 1 / bins.counts, _units(bins)
    S, t = bins.sums / unit, bins.targets
    gram, xty = (S * w[:, None]).T @ S, (S * w[:, None]).T @ t
    noise = w[:, None] * (bins.sums_sd / unit) ** 2  # w_k D_k, its diagonal, (K, d)
    of_estimate, D = (noise / (1 if over == "sum" else K) for over in CORRECTIONS[correction])
    M = gram - np.diag(of_estimate.sum(axis=0))
    if definite:
        _check_positive(M, "S'WS minus its correction")
    beta = _solve(M, xty)
    Q = S * (w * (t - S @ beta))[:, None] + D * beta
    M_inverse_Q = _solve(gram - np.diag(D.sum(axis=0)), Q.T)
    se = np.sqrt(K / max(K - d, 1) * (M_inverse_Q**2).sum(axis=1))
    notes = {"bins": K, "level": level, "correction": correction}
    return _fit(beta / unit, z * se / unit, (M * np.outer(unit, unit), xty * unit), notes)


def bin_regression_naive(release: Release, *, design: Design, level: float = 0.95, sigma: float = 1.0) -> Fit:
    """beta = (S'WS)^-1 S'W t with the interval of a regression without noise; neither accounts for the noise.

    **Source** BinAgg, section 4.2: the covariance is sigma^2 (S'WS)^-1. sigma, the target's standard deviation around
    the model, is treated as known, and the intervals are centred at this estimate, not that of `bin_regression`. The
    paper does not say so; the authors' package does it, with sigma = 1.
    **Privacy** Post-processing, if sigma is public.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.

    Raises `NoEstimateError` unless there are more bins than features and S'WS is positive definite.
    """
    check_positive("bin_regression_naive", sigma=sigma)
    z, bins = _quantile(level), _enough(release)
    w, unit = 1 / bins.counts, _units(bins)
    S = bins.sums / unit
    M, xty = (S * w[:, None]).T @ S, (S * w[:, None]).T @ bins.targets
    _check_positive(M, "S'WS")
    beta = np.linalg.solve(M, xty)
    se = sigma * np.sqrt(np.diag(np.linalg.inv(M)))
    notes = {"bins": len(w), "level": level, "sigma": sigma}
    return _fit(beta / unit, z * se / unit, (M * np.outer(unit, unit), xty * unit), notes)


def _enough(release: Release) -> BinSums:
    """The bins of the release, if there are more of them than features."""
    bins = release[BinSums]
    K, d = bins.sums.shape
    if d >= K:
        raise NoEstimateError(f"{K} bins are left, but more than {d}, the number of features, are needed")
    return bins


def _solve(M: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(M, right), dtype=float)
    except np.linalg.LinAlgError as error:
        raise NoEstimateError("S'WS minus its correction is singular") from error


def _units(bins: BinSums) -> Floats:
    """The root of the diagonal of S'WS (d,), in which the features have comparable sizes; 1 for a column of 0."""
    root = np.sqrt((bins.sums**2 / bins.counts[:, None]).sum(axis=0))
    return np.where(root > 0, root, 1.0)


def _check_positive(M: Floats, name: str) -> None:
    least = float(np.linalg.eigvalsh(M)[0])
    if least <= len(M) * np.finfo(float).eps:
        raise NoEstimateError(
            f"{name} is not positive definite: its least eigenvalue is {least:.3g} where the diagonal of S'WS is 1"
        )


def _quantile(level: float) -> float:
    check_part("level", level)
    return NormalDist().inv_cdf((1 + level) / 2)


def _fit(beta: Floats, half: Floats, moments: tuple[Floats, Floats], notes: Json) -> Fit:
    """beta (d,) with the interval beta -+ half."""
    return Fit(beta, moments, notes, np.stack([beta - half, beta + half], axis=1))
