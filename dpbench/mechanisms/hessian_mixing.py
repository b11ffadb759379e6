"""Iterative Hessian Mixing: Newton steps with sketched Hessians and noisy, clipped gradients (Lev et al. 2026)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.sketches import FAILURE, PUBLISHED_FAILURE, published_gamma, sketch, tight_gamma
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Coefficients, Release


def iterative_hessian_mixing(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    iterations: int = 3,
    rows_per_column: float = 6.0,
) -> Release:
    """T steps theta += H_t^-1 g_t from theta = 0: H_t = S_t'S_t / k of a new sketch S_t of the rows, and g_t the
    gradient of the squared error with residuals clipped to [-C, C], and noise.

    The regularisation of a sketch makes a step shorter. Unlike a ridge it does not move the point to which steps lead.

    **Source** Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026, "Near-Optimal Private Linear Regression via Iterative
    Hessian Mixing", arXiv 2601.07545. T = `iterations` and k = `rows_per_column` max(p, log(40 T / delta)) are those of
    the authors' code: 3 and 6.
    **Privacy** Add/remove; ||x||_2 <= B = ||X||. One noisy least eigenvalue (`sketches`), T k rows of N(0, X'X +
    eta^2 I), and T gradients, of sensitivity B C. `sketches` has the proof that all steps compose as one, exactly, and
    the ledger's eps is that. `tight`: s = (gamma - 1) / sqrt k, the noise of the gradients has as large a mu^2 as the
    least eigenvalue and the sketches together, k t^2 (1 + T / 2), t = 1 / (gamma - 1), and gamma is the least that is
    (eps, delta)-DP. `paper`: the authors' basic composition, eps/2 and delta/4 for the gradients and eps/2 for the
    others, with three times delta/4 (`sketches.published_gamma`), which spends less than (eps, delta).
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||; C = ||Y||; theta (p,).
    **Departures** 1. Neighbours add or remove a record; the paper's put a row of zeros in its place, which is the same
    for all that is released here. 2. The T sketches are drawn at once, from their distribution given X. 3. The
    constants of `paper` are those of the public code; the text of the paper was not at hand.

    Raises `UserError` for a parameter out of range or an infinite eps.
    """
    check_calibration(calibration)
    check_settings("iterative_hessian_mixing", tolerance=None, iterations=iterations)
    check_positive("iterative_hessian_mixing", rows_per_column=rows_per_column)
    p, T, C, squared = len(design.columns), iterations, design.y_bound, design.x_bound**2
    k = max(math.ceil(rows_per_column * max(p, math.log(40 * T / budget.delta))), p + 2)
    ledger = Ledger()
    if calibration == "paper":
        gamma = published_gamma("iterative_hessian_mixing", budget.epsilon / 2, budget.delta / 4, k, T)
        multiplier = gamma / math.sqrt(k)
        step_multiplier = math.sqrt(T) / gaussian_mu(budget.epsilon / 2, budget.delta / 4)
        failure = PUBLISHED_FAILURE * budget.delta
    else:
        half = k * (1 + T / 2)  # of mu^2, in units of t^2
        gamma = tight_gamma("iterative_hessian_mixing", budget, T * k, k + half)
        multiplier = (gamma - 1) / math.sqrt(k)
        step_multiplier = (gamma - 1) / math.sqrt(half / T)
        failure = FAILURE * budget.delta

    X, y = design.encode(train)
    sketches, ridge = sketch(
        rng,
        ledger,
        X.T @ X,
        squared=squared,
        gamma=gamma,
        multiplier=multiplier,
        failure=failure,
        count=T * k,
    )
    theta = np.zeros(p)
    for S in np.split(sketches, T):
        gradient = X.T @ np.clip(y - X @ theta, -C, C)
        noisy = gaussian(
            rng, ledger, gradient, sensitivity=design.x_bound * C, multiplier=step_multiplier, label="gradient"
        )
        theta = theta + np.linalg.solve(S.T @ S / k, noisy)
    diagnostics = {"sketch_rows": k, "gamma": gamma, "ridge": ridge}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), diagnostics)
