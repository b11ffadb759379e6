"""DP minibatch SGD with the published noise (Iyengar et al. 2019, Algorithm 2; the excess-risk paper, Algorithm 6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.dpsgd import logistic_slope
from dpbench.privacy.accounting import check_calibration
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import check_finite, least_multiplier, sampled_multiplier
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import batch_gaussian, sampled_gaussian
from dpbench.privacy.recording import Rows
from dpbench.releases import Coefficients, Release


def dpsgd_minibatch(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    batch_size: int,
    steps: int,
    learning_rate: float,
    expected_rows: int,
    decay: float = 0.1,
    clip: float = 1.0,
    replacement: bool = True,
    calibration: str = "tight",
) -> Release:
    """Logistic regression by T noisy steps from w = 0, each along the mean of the clipped gradients of a batch.

    **Source** "Bounding the Excess Risk for Linear Models" (Zhou et al. 2024), Algorithm 6 and Figure 4; Iyengar et al.
    (2019), Algorithm 2.
    **Privacy** Replace: n is public, and a batch holds B of n rows, uniformly drawn. Where another record stands in one
    place of it, the sum of the gradients, clipped to C = `clip`, changes by s = 2 C in the l2 norm. Add/remove: each
    row is in a batch with probability B / n, n = `expected_rows`, and changes the sum by s = C.
    The noise on the sum is N(0, (m s)^2). `paper`: N(0, sigma^2) on the mean, sigma = 4 C sqrt(T log(1/delta)) /
    (n eps), so that m = B sigma / s. It spends less than eps at the settings of the paper, but more where there are few
    batches that rarely hold a given record. `tight`: the least m with which T steps are (eps, delta)-DP. The account is
    that of the sampling which is done (`BatchGaussian`, `Gaussian`), by composition of privacy loss distributions.
    **Shapes** X (n, p), y (n,) as `design` encodes them, y = -1 or +1; w (p,). No bound on ||x||_2 is needed.
    **Departures** 1. The learning rate is that of the paper's code, `learning_rate` / (1 + `decay` t) at step t = 0, 1,
    ...; Algorithm 6 has a constant one, which `decay` 0 is. 2. `replacement` false draws a batch without replacement,
    as that code does. 3. Batches of a random size, of which B is expected, where n is private.

    Raises `UserError` for a target that is not -1 and +1, a setting out of range, a batch larger than the table, or a
    budget that no noise meets.
    """
    check_calibration(calibration)
    check_finite(budget.epsilon)
    fixed = budget.relation == "replace"
    n = len(train) if fixed else expected_rows
    _check_settings(n, batch_size=batch_size, steps=steps, learning_rate=learning_rate, decay=decay, clip=clip)
    if not design.binary:
        raise UserError(f"dpsgd_minibatch needs a target of two levels, -1 and +1; {design.target!r} has other values")
    X, y = design.encode(train)
    w, norms, ledger = np.zeros(X.shape[1]), np.sqrt(np.einsum("ij,ij->i", X, X)), Ledger()

    def clipped_gradients(rows: Rows) -> Floats:
        x = X[rows]
        slope = logistic_slope(x @ w, y[rows])  # the gradient is slope x
        total: Floats = x.T @ (slope / np.maximum(1, np.abs(slope) * norms[rows] / clip))
        return total

    sensitivity = 2 * clip if fixed else clip
    sigma = 4 * clip * math.sqrt(steps * math.log(1 / budget.delta)) / (n * budget.epsilon)
    noise: dict[str, Any] = {"sensitivity": sensitivity, "count": steps, "label": "clipped gradients"}
    noise["multiplier"] = batch_size * sigma / sensitivity
    if fixed:
        noise |= {"batch": batch_size, "replacement": replacement}
        if calibration == "tight":
            event = BatchGaussian("", sensitivity, 1.0, n, batch_size, replacement, steps)
            noise["multiplier"] = least_multiplier(budget.epsilon, budget.delta, event)
        answers = batch_gaussian(rng, ledger, n, clipped_gradients, **noise)
    else:
        noise["rate"] = batch_size / n
        if calibration == "tight":
            noise["multiplier"] = sampled_multiplier(budget.epsilon, budget.delta, noise["rate"], steps)
        answers = sampled_gaussian(rng, ledger, len(train), clipped_gradients, **noise)
    for t, noisy in enumerate(answers):
        w -= learning_rate / (1 + decay * t) * noisy / batch_size
    return Release(train.domain, budget, ledger, (Coefficients(w),))


def _check_settings(n: int, *, batch_size: int, steps: int, **others: float) -> None:
    """Raises `UserError` for a setting out of range."""
    if not 1 <= batch_size <= n:
        raise UserError(f"dpsgd_minibatch: batch_size must be at least 1 and at most n = {n} rows, not {batch_size}")
    if steps < 1:
        raise UserError(f"dpsgd_minibatch: steps must be at least 1, not {steps}")
    for name, value in others.items():
        if not (0 < value < math.inf or (name == "decay" and value == 0)):
            raise UserError(f"dpsgd_minibatch: {name} must be a finite number greater than 0, not {value!r}")
