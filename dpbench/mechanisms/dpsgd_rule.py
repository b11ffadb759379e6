"""Gradient descent with noise whose setting follows from n, eps and the bound of the rows."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.mechanisms.dpsgd import SLOPES, loss_for, sparse_of
from dpbench.mechanisms.fitting import check_settings
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import check_finite
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import sampled_gaussian
from dpbench.privacy.recording import Rows
from dpbench.releases import Coefficients, Release

CURVATURE = {"logistic": 0.25, "squared": 2.0}  # the largest of the loss in a score
LEAST_TIME, LEAST_STEPS = 2.0, 20
LEFT = 0.01  # of the first gradient, for a run that is called converged


def dpsgd_rule(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    expected_rows: int,
    time: float = 1.0,
    clip: float = 0.7,
    most_steps: int = 400,
    loss: str | None = None,
) -> Release:
    """T steps theta -= eta / n (sum of clipped gradients of all rows + noise) from 0, with T, eta and C by rule.

    With L = h ||X||^2 the largest curvature, h = 1/4 or 2, a step of 1 / L is stable. Noise of T steps of size tau / T
    moves a score by C ||X|| tau / (mu n), whatever T is, and the steps come nearer by exp(-lambda tau) in a direction
    of curvature lambda: what is to be chosen is tau L, here `time` mu n, from 2 to `most_steps`, in as many steps, and
    at least 20. C is `clip` of the largest gradient at 0, ||X|| / 2, or 2 ||X|| ||Y||.

    **Source** The algorithm is that of Abadi et al. 2016 on whole batches; the rule is our own. It was chosen on
    simulated rows with a logistic target (`python -m benchmarks.dpsgd_rule`); no real table was used.
    **Privacy** Add/remove. T sums of gradients of l2 norm C at most, with Gaussian noise, which compose exactly; mu is
    the largest Gaussian-DP parameter that (eps, delta) allows. n is the declared `expected_rows`.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||; theta (p,).

    `loss`: as for `dpsgd`. Diagnostics: `left`, the mean of the last tenth of the noisy gradients without what noise
    adds to its norm, over the first one, and `converged`, where that is below a hundredth. A run whose time is limited
    by noise is not meant to converge. Raises `UserError` for a parameter out of range or an infinite eps.
    """
    check_finite(budget.epsilon)
    check_positive("dpsgd_rule", expected_rows=expected_rows, time=time, clip=clip)
    check_settings("dpsgd_rule", tolerance=None, most_steps=most_steps)
    loss = loss_for(design, loss)
    mu, n, p = gaussian_mu(budget.epsilon, budget.delta), expected_rows, len(design.columns)
    tau = min(max(time * mu * n, LEAST_TIME), most_steps)  # in units of 1 / L
    T = max(math.ceil(tau), LEAST_STEPS)
    C = clip * design.x_bound * (0.5 if loss == "logistic" else 2 * design.y_bound)
    eta, multiplier = tau / T / (CURVATURE[loss] * design.x_bound**2), math.sqrt(T) / mu

    X, y = design.encode(train)
    norms, sparse = np.sqrt(np.einsum("ij,ij->i", X, X)), sparse_of(X)
    features, theta, ledger = X if sparse is None else sparse, np.zeros(p), Ledger()

    def gradient(rows: Rows) -> Floats:  # sum_i c_i x_i min(1, C / (|c_i| ||x_i||))
        c = SLOPES[loss](features @ theta, y)
        c *= C / np.maximum(C, np.abs(c) * norms)
        total: Floats = features.T @ c
        return total

    seen: list[Floats] = []
    for noisy in sampled_gaussian(
        *(rng, ledger, len(X), gradient),
        sensitivity=C,
        multiplier=multiplier,
        rate=1.0,
        count=T,
        label="clipped gradients",
    ):
        theta = theta - eta / n * noisy
        seen.append(noisy)
    sd, last = multiplier * C, seen[-max(T // 10, 1) :]
    first, end = _norm(seen[0], sd), _norm(np.mean(last, axis=0), sd / math.sqrt(len(last)))
    left = end / first if first else 1.0
    diagnostics = {"steps": T, "time": tau, "clip": C, "step": eta, "left": left, "converged": left < LEFT}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), diagnostics)


def _norm(noisy: Floats, sd: float) -> float:
    """The norm of what has noise of this standard deviation in each entry, without the noise's part of its square."""
    return math.sqrt(max(float(noisy @ noisy) - len(noisy) * sd**2, 0.0))
