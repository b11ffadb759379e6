"""Least squares by gradient descent with noise, whose path shows its own uncertainty (Brown et al. 2024)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_part, check_positive
from dpbench.mechanisms.boosted_adassp import check_descent
from dpbench.mechanisms.fitting import check_settings
from dpbench.privacy.accounting import check_calibration, gaussian_mu, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, sampled_gaussian
from dpbench.privacy.recording import Rows
from dpbench.privacy.sensitivity import of_least_eigenvalue
from dpbench.releases import Coefficients, Release

SHARE = 0.05  # of mu^2, for each of the largest eigenvalue and the residuals
MARGIN = 2.0  # standard deviations that are added to the noisy largest eigenvalue
FAILURE = 0.01  # of runs that do not diverge, the largest part that may be refused


def dpgd_intervals(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    clip: float = 1.0,
    steps: int = 400,
    burn_in: float = 0.25,
    batches: int = 10,
) -> Release:
    """The mean of the last iterates of T noisy steps from 0, and how much the means of batches of them differ.

    Once the start is forgotten and while nothing is clipped, the iterates are a stationary Gaussian process around the
    least-squares fit to the rows: with A = X'X, step eta and noise sd s of a gradient, theta_t - theta_hat = (I - eta
    A) (theta_(t-1) - theta_hat) - eta z_t. Their spread is the error that privacy adds, on these very rows, and costs
    nothing.

    **Source** Brown, Dvijotham, Evans, Liu, Smith and Thakurta 2024, "Private Gradient Descent for Linear Regression:
    Tighter Error Bounds and Instance-Specific Uncertainty Estimation", arXiv 2402.13531: clipped gradients of all rows,
    zCDP, and intervals from the checkpoints of a run. Its abstract, introduction and a summary were read, not the full
    text: the settings are ours.
    **Privacy** Add/remove, or replace one; all steps are Gaussian. The largest eigenvalue of X'X changes by ||X||^2 at
    most (Weyl, as the least one), and has the part `SHARE` of mu^2. A sum of gradients clipped to l2 norm C changes by
    C (replace: 2 C) whatever theta is; T such sums have 1 - 2 `SHARE` of mu^2, by adaptive composition. The sum of
    squared residuals, of predictions clipped to the target's range [l, h], changes by (h - l)^2 at most, and has
    `SHARE`. `tight`: mu is the largest Gaussian-DP parameter that (eps, delta) allows. `paper`: mu^2 = 2 rho, rho the
    largest of zCDP that gives (eps, delta) by its Renyi bound, which spends less.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; theta (p,).
    **Departures** 1. C = `clip` ||X|| ||Y||: at 1 nothing is clipped at theta = 0. 2. eta is 1 over the noisy largest
    eigenvalue with `MARGIN` standard deviations on top, which needs no n. 3. The means of `batches` batches of all
    iterates after `burn_in` stand for single checkpoints: their mean has less noise. 4. The residuals, and
    diag((X'X)^-1) by the autocovariances C_0 + C_1 = eta s^2 A^-1 of the iterates, are for intervals of a population
    (`models.descent_intervals`), which the paper does not have.

    The covariance of the coefficients is that of the batches' means over their number, and is of rank `batches` - 1 at
    most. `drift` is the largest t statistic of a coefficient between the two halves of the batches.

    Raises `UserError` for a parameter out of range, and `NoEstimateError` for steps that diverge.
    """
    check_calibration(calibration)
    check_positive("dpgd_intervals", clip=clip)
    kept = batches * _length(steps, burn_in, batches)
    epsilon, delta = budget.epsilon, budget.delta
    mu = gaussian_mu(epsilon, delta) if calibration == "tight" else math.sqrt(2 * zcdp_rho(epsilon, delta))
    share, bound = math.sqrt(SHARE) * mu, clip * design.x_bound * design.y_bound
    ledger, sensitivity = Ledger(), bound * (2 if budget.relation == "replace" else 1)
    X, y = design.encode(train)

    largest = np.linalg.eigvalsh(X.T @ X)[-1]
    change = of_least_eigenvalue(design)
    noisy = gaussian(rng, ledger, largest, sensitivity=change, multiplier=1 / share, label="lambda_max(X'X)")
    step = 1 / max(float(noisy) + MARGIN * change / share, change / share)

    norms, theta = np.sqrt(np.einsum("ij,ij->i", X, X)), np.zeros(X.shape[1])

    def gradient(rows: Rows) -> Floats:  # sum_i r_i x_i min(1, C / (|r_i| ||x_i||))
        residuals = X @ theta - y
        residuals *= bound / np.maximum(bound, np.abs(residuals) * norms)
        total: Floats = residuals @ X
        return total

    path, multiplier = [], math.sqrt(steps / (1 - 2 * SHARE)) / mu
    for noisy in sampled_gaussian(
        rng,
        ledger,
        len(X),
        gradient,
        sensitivity=sensitivity,
        multiplier=multiplier,
        rate=1.0,
        count=steps,
        label="clipped gradients",
    ):
        theta = theta - step * noisy
        path.append(theta)
    sd, advice = multiplier * sensitivity, "raise epsilon"
    check_descent(-path[0] / step, noisy, sd, FAILURE, steps="steps", advice=advice)

    low, high = design.target_range
    tail = np.array(path[-kept:])
    mean = tail.mean(axis=0)
    rest = np.sum((y - np.clip(X @ mean, low, high)) ** 2)
    residuals = gaussian(
        rng, ledger, rest, sensitivity=(high - low) ** 2, multiplier=1 / share, label="squared residuals"
    )
    means = tail.reshape(batches, -1, len(theta)).mean(axis=1)
    covariance = np.atleast_2d(np.cov(means.T)) / batches
    around = tail - mean
    doubled = (around**2).mean(axis=0) + (around[1:] * around[:-1]).mean(axis=0)
    inverse = np.maximum(doubled, 0.0) / (step * sd**2)
    diagnostics = {
        "batches": batches,
        "drift": _drift(means),
        "squared_residuals": float(residuals),
        "inverse": inverse.tolist(),
        "step": step,
    }
    return Release(train.domain, budget, ledger, (Coefficients(mean, covariance),), diagnostics)


def _length(steps: int, burn_in: float, batches: int) -> int:
    """The number of iterates in a batch. Raises `UserError` for batches that have none or whose halves say little."""
    check_settings("dpgd_intervals", tolerance=None, steps=steps, batches=batches)
    check_part("dpgd_intervals: burn_in", burn_in)
    if batches < 4 or batches % 2:
        raise UserError(f"dpgd_intervals: batches must be even and at least 4, not {batches}")
    if (length := int((1 - burn_in) * steps / batches)) < 1:
        raise UserError(
            f"dpgd_intervals: {steps} steps with a burn_in of {burn_in} leave none for {batches} batches; raise steps"
        )
    return length


def _drift(means: Floats) -> float:
    """The largest t statistic of a coefficient between the first half of the batches and the last."""
    first, last = np.split(means, 2)
    spread = np.sqrt((first.var(axis=0, ddof=1) + last.var(axis=0, ddof=1)) / len(first))
    return float(np.max(np.abs(first.mean(axis=0) - last.mean(axis=0)) / np.maximum(spread, 1e-300)))
