"""Data-independent sufficient statistic perturbation (Paper 0, section 2.2)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget, Ledger
from dpbench.privacy.noise import gaussian


def ssp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    intervals: bool = False,
) -> Release:
    """Gaussian noise on X'X and X'y, of the same scale for every entry, and on y'y if `intervals` are wanted.

    **Source** Paper 0, section 2.2 and Appendix D; with y'y, the second moments of [X, y] of Dwork et al. (2014,
    "Analyze Gauss"), on which Sheffet (2017) builds intervals.
    **Privacy** Add/remove. X'X: l2 sensitivity ||X||^2; X'y: ||X|| ||Y||; y'y: ||Y||^2. `tight`: each of k = 2 or 3
    statistics is (mu/sqrt k)-Gaussian DP, mu the largest that (eps, delta) allows. `paper`: multiplier
    sqrt(log(1.25/delta))/eps on each, as printed, which spends more than (eps, delta); the ledger says how much.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; X'X (p, p), X'y (p,).
    **Departures** 1. `tight` uses the sensitivity of what is released, the upper triangle of X'X (see
    `triangle_sensitivity`), which is below ||X||^2. 2. Analyze Gauss gives all entries of [X, y]'[X, y] noise of one
    scale; here each block has its own.
    """
    check_calibration(calibration)
    ledger = Ledger()
    if calibration == "paper":
        multiplier = math.sqrt(math.log(1.25 / budget.delta)) / budget.epsilon
        xx_sensitivity = design.x_bound**2
    else:
        multiplier = math.sqrt(3 if intervals else 2) / gaussian_mu(budget.epsilon, budget.delta)
        xx_sensitivity = design.triangle_sensitivity
    xy_sensitivity = design.x_bound * design.y_bound

    X, y = design.encode(train)
    xtx, xty = second_moments(X, y)
    xtx = perturb_symmetric(rng, ledger, xtx, sensitivity=xx_sensitivity, multiplier=multiplier)
    xty = gaussian(rng, ledger, xty, sensitivity=xy_sensitivity, multiplier=multiplier, label="X'y")
    yty = None
    if intervals:
        yty = float(gaussian(rng, ledger, y @ y, sensitivity=design.y_bound**2, multiplier=multiplier, label="y'y"))
    sds = multiplier * xx_sensitivity, multiplier * xy_sensitivity
    return Release(train.domain, budget, ledger, SufficientStatistics(xtx, xty, *sds, yty=yty))


def perturb_symmetric(
    rng: np.random.Generator,
    ledger: Ledger,
    matrix: Floats,
    *,
    sensitivity: float,
    multiplier: float,
    of: str = "X'X",
) -> Floats:
    """The matrix `of` this name (p, p) with Gaussian noise on its upper triangle, mirrored below."""
    upper = np.triu_indices(len(matrix))
    noisy = np.zeros_like(matrix)
    noisy[upper] = gaussian(
        rng, ledger, matrix[upper], sensitivity=sensitivity, multiplier=multiplier, label=f"upper triangle of {of}"
    )
    return noisy + np.triu(noisy, 1).T
