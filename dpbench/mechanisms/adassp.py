"""AdaSSP: sufficient statistic perturbation with an adaptive ridge (DD-SSP, Algorithm 5; Wang 2018)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import check_part
from dpbench.mechanisms.ssp import perturb_symmetric
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import OnGrid, products, single
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_cross, of_gram, of_least_eigenvalue, of_triangle
from dpbench.releases import Release, SufficientStatistics

SHARES = {  # of epsilon and delta, for lambda_min, X'X and X'y
    "paper": (1 / 3, 1 / 3, 1 / 3),
    "authors": (1 / 3, 0.95 * 2 / 3, 0.05 * 2 / 3),
}


def adassp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    failure: float = 0.05,
    noise: str = "continuous",
) -> Release:
    """Noisy X'X and X'y, and a ridge chosen from a noisy lower bound on the smallest eigenvalue of X'X.

    **Source** DD-SSP, Algorithm 5 (Wang 2018, Algorithm 2). `failure` is its rho: the ridge makes X'X + lambda I
    positive definite with probability 1 - rho.
    **Privacy** Add/remove, or replace one; three Gaussian releases; sensitivities: `privacy.sensitivity`. `paper`: the
    published noise, sqrt(log(6/delta)) / (eps/3) times the sensitivities of lambda_min, of all of X'X (`of_gram`,
    ||X||^2) and of X'y, which spends less than (eps, delta). `authors`: the same formula, sqrt(log(2/delta_i)) / eps_i,
    with the shares of the public code of DD-SSP, where X'y has eps/30. `tight`: multiplier sqrt 3 / mu on each, mu the
    largest Gaussian-DP parameter that (eps, delta) allows.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||.
    **Departures** 1. `tight` adds noise for the upper triangle of X'X, as `ssp` does.
    2. The published formulas are written in the noise scale s of X'X (s = ||X||^2 sqrt(log(6/delta)) / (eps/3) under
    `paper`), so that under `tight` the margins shrink with the noise. 3. Under `authors` the ridge is the
    published one, of noise for eps/3, and ||X||^2 is that of the domain, where the code takes the number of attributes.

    `noise`: `continuous`, or `discrete` (`privacy.discrete`, `_least_eigenvalue`).
    """
    check_calibration(calibration, "authors")
    check_part("adassp: failure", failure)
    ledger, relation = Ledger(), budget.relation
    log = math.log(6 / budget.delta)
    eigen_sensitivity, xy_sensitivity = of_least_eigenvalue(design), of_cross(design, relation)
    xx_sensitivity = of_triangle(design, relation)
    if calibration == "tight":
        multiplier = xx_multiplier = xy_multiplier = math.sqrt(3) / gaussian_mu(budget.epsilon, budget.delta)
    else:
        multiplier, xx_multiplier, xy_multiplier = (
            math.sqrt(math.log(2 / (share * budget.delta))) / (share * budget.epsilon) for share in SHARES[calibration]
        )
        xx_multiplier *= of_gram(design, relation) / xx_sensitivity

    X, y = design.encode(train)
    xx, xy, d = products(X, X, noise), products(X, y, noise), X.shape[1]
    # steps 1, 2: a lower bound on the smallest eigenvalue, true with probability 1 - delta
    least = _least_eigenvalue(xx)
    noisy = gaussian(rng, ledger, least, sensitivity=eigen_sensitivity, multiplier=multiplier, label="lambda_min(X'X)")
    lambda_min = max(float(noisy) - math.sqrt(log) * multiplier * eigen_sensitivity, 0.0)
    # step 3: the ridge covers the spectral norm of the noise of X'X
    scale = xx_multiplier * xx_sensitivity
    margin = multiplier * of_gram(design, relation) if calibration == "authors" else scale
    ridge = max(0.0, math.sqrt(d * math.log(2 * d**2 / failure)) * margin - lambda_min)
    # steps 4, 5
    xtx = perturb_symmetric(rng, ledger, xx, sensitivity=xx_sensitivity, multiplier=xx_multiplier)
    xty = gaussian(rng, ledger, xy, sensitivity=xy_sensitivity, multiplier=xy_multiplier, label="X'y")
    statistics = SufficientStatistics(xtx, xty, scale, xy_multiplier * xy_sensitivity, ridge)
    return Release(train.domain, budget, ledger, (statistics,), {"lambda_min": lambda_min, "ridge": ridge})


def _least_eigenvalue(matrix: Floats | OnGrid) -> float | OnGrid:
    """lambda_min of X'X, or 0 if it is less.

    For discrete noise of spacing s it is that of a sum whose terms are rounded to s / (8 d) or less, so that a row's
    moves by s / 16 at most in the spectral norm. This sum is exact. Its eigenvalue is found in double precision, with
    an error of about 2^-53 d n ||X||^2: less than s / 4 while d n is below 2^26 times the noise multiplier.
    """
    if not isinstance(matrix, OnGrid):
        return max(float(np.linalg.eigvalsh(matrix)[0]), 0.0)
    part = 2.0 ** -math.ceil(math.log2(8 * matrix.shape[0]))
    return single(lambda s: max(float(np.linalg.eigvalsh(matrix.multiples(part * s) * (part * s))[0]), 0.0))
