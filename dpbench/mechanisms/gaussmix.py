"""GaussMix: least squares on one Gaussian sketch of the rows and targets (Lev et al. 2025)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.mechanisms.sketches import FAILURE, PUBLISHED_FAILURE, published_gamma, sketch, statistics_of, tight_gamma
from dpbench.privacy.accounting import check_calibration
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release


def gaussmix(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    rows_per_column: float = 2.5,
) -> Release:
    """k random Gaussian combinations of the rows of A = [X, y], regularised by what a private least eigenvalue lacks.

    What is released is their second moments over k, as `jlt` does; eta^2 is taken off X'X and y'y, and is the `ridge`
    that the mechanism asks to be added.

    **Source** Lev, Srinivasan, Shenfeld, Ligett, Sekhari and Wilson 2025, "The Gaussian Mixing Mechanism", arXiv
    2505.24603, the linear mixing of its section on regression. k = `rows_per_column` max(p, log(20 / delta)) is that of
    the authors' code (omrilev1/HessianMix, 2026): 2.5, few rows and little regularisation. `jlt` (Sheffet 2017) has
    many rows, and no eigenvalue.
    **Privacy** Add/remove; ||(x, y)||_2 <= B = sqrt(||X||^2 + ||Y||^2). One noisy least eigenvalue and k rows of
    N(0, A'A + eta^2 I), which compose as one (proof: `sketches`). `tight`: s = (gamma - 1) / sqrt k, and gamma the
    least that is (eps, delta)-DP. `paper`: basic composition, as in the authors' code (`sketches.published_gamma` at
    delta/3), which spends less than (eps, delta).
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; k rows of length p + 1.
    **Departures** 1. The sketch is drawn from its distribution given A. 2. `xtx_sd` and `xty_sd` are a lower bound, as
    in `jlt`: gamma B^2 / sqrt k. 3. The constants of `paper` are those of the public code, in units of B, and s is
    gamma / sqrt k, with which its eps is computed; the text of the paper was not at hand.

    Raises `UserError` for a parameter out of range or an infinite eps.
    """
    check_calibration(calibration)
    check_positive("gaussmix", rows_per_column=rows_per_column)
    p = len(design.columns)
    k = max(math.ceil(rows_per_column * max(p, math.log(20 / budget.delta))), p + 2)
    squared, ledger = design.x_bound**2 + design.y_bound**2, Ledger()
    if calibration == "paper":
        gamma = published_gamma("gaussmix", budget.epsilon, budget.delta / 3, k, 1)
        multiplier, failure = gamma / math.sqrt(k), PUBLISHED_FAILURE * budget.delta
    else:
        gamma = tight_gamma("gaussmix", budget, k, k)
        multiplier, failure = (gamma - 1) / math.sqrt(k), FAILURE * budget.delta
    A = np.column_stack(design.encode(train))
    mixed, ridge = sketch(
        rng,
        ledger,
        A.T @ A,
        squared=squared,
        gamma=gamma,
        multiplier=multiplier,
        failure=failure,
        count=k,
    )
    statistics = statistics_of(mixed, ridge, gamma * squared / math.sqrt(k))
    return Release(train.domain, budget, ledger, (statistics,), {"sketch_rows": k, "gamma": gamma, "ridge": ridge})
