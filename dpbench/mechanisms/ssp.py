"""Data-independent sufficient statistic perturbation (DD-SSP, section 2.2)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import OnGrid, products
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_cross, of_gram, of_square, of_triangle
from dpbench.releases import Release, SufficientStatistics


def ssp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    intervals: bool = False,
    noise: str = "continuous",
) -> Release:
    """Gaussian noise on X'X and X'y, of the same scale for every entry, and on y'y if `intervals` are wanted.

    **Source** DD-SSP, section 2.2 and Appendix D; with y'y, the second moments of [X, y] of Dwork et al. (2014,
    "Analyze Gauss"), on which Sheffet (2017) builds intervals.
    **Privacy** Add/remove, or replace one; sensitivities: `privacy.sensitivity`. `tight`: each of k = 2 or 3 statistics
    is (mu/sqrt k)-Gaussian DP, mu the largest that (eps, delta) allows. `paper`: the published noise,
    sqrt(log(1.25/delta))/eps times the sensitivity of all of X'X (`of_gram`, ||X||^2), of X'y and of y'y. What is
    released of X'X is its upper triangle, which is less sensitive, and so the ledger has it; even so that is more than
    (eps, delta).
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; X'X (p, p), X'y (p,).
    **Departures** 1. `tight` adds noise for the upper triangle of X'X. 2. Analyze Gauss gives all entries of
    [X, y]'[X, y] noise of one scale; here each block has its own.

    `noise`: `continuous`, or `discrete` (`privacy.discrete`).
    """
    check_calibration(calibration)
    ledger, relation = Ledger(), budget.relation
    xx_sensitivity, xy_sensitivity = of_triangle(design, relation), of_cross(design, relation)
    if calibration == "paper":
        multiplier = math.sqrt(math.log(1.25 / budget.delta)) / budget.epsilon
        xx_multiplier = multiplier * of_gram(design, relation) / xx_sensitivity
    else:
        multiplier = xx_multiplier = math.sqrt(3 if intervals else 2) / gaussian_mu(budget.epsilon, budget.delta)

    X, y = design.encode(train)
    xx, xy, yy = products(X, X, noise), products(X, y, noise), products(y, y, noise)
    xtx = perturb_symmetric(rng, ledger, xx, sensitivity=xx_sensitivity, multiplier=xx_multiplier)
    xty = gaussian(rng, ledger, xy, sensitivity=xy_sensitivity, multiplier=multiplier, label="X'y")
    yty = None
    if intervals:
        sensitivity = of_square(design, relation)
        yty = float(gaussian(rng, ledger, yy, sensitivity=sensitivity, multiplier=multiplier, label="y'y"))
    sds = xx_multiplier * xx_sensitivity, multiplier * xy_sensitivity
    return Release(train.domain, budget, ledger, (SufficientStatistics(xtx, xty, *sds, yty=yty),))


def perturb_symmetric(
    rng: np.random.Generator,
    ledger: Ledger,
    matrix: Floats | OnGrid,
    *,
    sensitivity: float,
    multiplier: float,
    of: str = "X'X",
) -> Floats:
    """The matrix `of` this name (p, p) with Gaussian noise on its upper triangle, mirrored below."""
    upper = np.triu_indices(matrix.shape[0])
    noisy = np.zeros(matrix.shape)
    noisy[upper] = gaussian(
        rng, ledger, matrix[upper], sensitivity=sensitivity, multiplier=multiplier, label=f"upper triangle of {of}"
    )
    return noisy + np.triu(noisy, 1).T
