"""Analyze Gauss: noise of one scale on all second moments of features and target (Dwork et al. 2014; Sheffet 2017)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.mechanisms.ssp import perturb_symmetric
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget, Ledger


def analyze_gauss(
    train: Table, budget: Budget, rng: np.random.Generator, *, design: Design, calibration: str = "tight"
) -> Release:
    """Gaussian noise on the upper triangle of A'A, A = [X, y]: what Paper 1, Figure 1, calls SSP.

    **Source** Dwork, Talwar, Thakurta and Zhang (2014), Algorithm 1, for A with y as its last column, as Sheffet
    (2017) uses it.
    **Privacy** Add/remove; ||(x, y)||_2 <= B = sqrt(||X||^2 + ||Y||^2). `paper`: sensitivity B^2, multiplier
    sqrt(2 log(1.25/delta)) / eps, the Gaussian mechanism of 2014. `tight`: multiplier 1 / mu, mu the largest
    Gaussian-DP parameter that (eps, delta) allows, and the sensitivity of the upper triangle, which is below B^2.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; A'A (p + 1, p + 1).
    """
    check_calibration(calibration)
    ledger, squared = Ledger(), design.x_bound**2 + design.y_bound**2  # B^2
    if calibration == "paper":
        multiplier, sensitivity = math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon, squared
    else:
        multiplier = 1 / gaussian_mu(budget.epsilon, budget.delta)
        fourth = 2 * design.triangle_sensitivity**2 - design.x_bound**4 + design.y_bound**4  # of all entries of (x, y)
        sensitivity = math.sqrt((squared**2 + fourth) / 2)
    A = np.column_stack(design.encode(train))
    moments = perturb_symmetric(rng, ledger, A.T @ A, sensitivity=sensitivity, multiplier=multiplier, of="A'A")
    sd = multiplier * sensitivity
    statistics = SufficientStatistics(moments[:-1, :-1], moments[:-1, -1], sd, sd, yty=float(moments[-1, -1]))
    return Release(train.domain, budget, ledger, statistics)
