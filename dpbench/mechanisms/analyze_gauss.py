"""Analyze Gauss: noise of one scale on all second moments of features and target (Dwork et al. 2014; Sheffet 2017)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.mechanisms.ssp import perturb_symmetric
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.sensitivity import of_gram, of_triangle
from dpbench.releases import Release, SufficientStatistics


def analyze_gauss(
    train: Table, budget: Budget, rng: np.random.Generator, *, design: Design, calibration: str = "tight"
) -> Release:
    """Gaussian noise on the upper triangle of A'A, A = [X, y]: what BinAgg, Figure 1, calls SSP.

    **Source** Dwork, Talwar, Thakurta and Zhang (2014), Algorithm 1, for A with y as its last column, as Sheffet
    (2017) uses it.
    **Privacy** Add/remove, or replace one; what is released is the upper triangle of A'A, whose sensitivity is
    `of_triangle`. `paper`: the published noise, sqrt(2 log(1.25/delta)) / eps (the Gaussian mechanism of 2014) times
    the sensitivity of all of A'A (`of_gram`: B^2 = ||X||^2 + ||Y||^2). `tight`: multiplier 1 / mu, mu the largest
    Gaussian-DP parameter that (eps, delta) allows.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; A'A (p + 1, p + 1).
    """
    check_calibration(calibration)
    ledger, sensitivity = Ledger(), of_triangle(design, budget.relation, target=True)
    if calibration == "paper":
        multiplier = math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon
        multiplier *= of_gram(design, budget.relation, target=True) / sensitivity
    else:
        multiplier = 1 / gaussian_mu(budget.epsilon, budget.delta)
    A = np.column_stack(design.encode(train))
    moments = perturb_symmetric(rng, ledger, A.T @ A, sensitivity=sensitivity, multiplier=multiplier, of="A'A")
    sd = multiplier * sensitivity
    statistics = SufficientStatistics(moments[:-1, :-1], moments[:-1, -1], sd, sd, yty=float(moments[-1, -1]))
    return Release(train.domain, budget, ledger, (statistics,))
