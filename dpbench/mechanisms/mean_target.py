"""The mean of the target by a noisy sum and a noisy count, as the coefficients of a fit without features."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.dpsgd import loss_for
from dpbench.mechanisms.fitting import rows_if_public
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Coefficients, Release

HALF = 0.5  # a count that is added to either class, so that the odds are finite (Haldane 1956)


def mean_target(
    train: Table, budget: Budget, rng: np.random.Generator, *, design: Design, loss: str | None = None
) -> Release:
    """The trivial answer of regression: every prediction is a private mean of the training target.

    Of two classes it is the more frequent one, with the logarithm of its odds.

    **Source** The baseline that R^2 compares with; a sum and a count by the Gaussian mechanism (Balle and Wang 2018).
    **Privacy** The target lies in [l, h]. A row of target y gives u = (y - l) / (h - l) to the upper end and 1 - u to
    the lower one; for two classes these are counts. Add/remove: both sums together change by ||(u, 1 - u)||_2 <= 1 in
    the l2 norm, and have noise of multiplier 1 / mu each, mu the largest Gaussian-DP parameter that (eps, delta)
    allows. Their sum is a noisy count, and the upper one's part of it the mean. Replace: n is public, and the sum of u,
    which changes by 1 at most, is all that is needed.
    **Shapes** y (n,) as `design` encodes it; theta (p,), 0 but for the intercept.
    **Departures** None: no paper states it. Noisy sums below 0 count as 0, and a table of which nothing is left has the
    middle of [l, h].

    `loss`: `squared` gives the mean, `logistic` the log odds of the upper end; None as in `dpsgd.loss_for`. Raises
    `UserError` for a design without an intercept, or a logistic loss of a target that is not -1 and +1.
    """
    loss = check_settings("mean_target", design, loss)
    ledger, n = Ledger(), rows_if_public("mean_target", train, budget, None)
    upper, lower = sums_at_ends(train, design)
    exact = [upper, lower] if n is None else [upper]
    multiplier = 1 / gaussian_mu(budget.epsilon, budget.delta)
    noisy = gaussian(rng, ledger, exact, sensitivity=1.0, multiplier=multiplier, label="sums at the target's ends")
    upper, lower = (noisy[0], noisy[1]) if n is None else (noisy[0], n - noisy[0])
    theta = without_features(design, max(float(upper), 0.0), max(float(lower), 0.0), loss)
    return Release(train.domain, budget, ledger, (Coefficients(theta),))


def check_settings(mechanism: str, design: Design, loss: str | None) -> str:
    """The loss. Raises `UserError` for one that does not fit, or a design without an intercept, which a mean needs."""
    if not design.intercept:
        raise UserError(f"{mechanism} is the intercept of a fit; set design.intercept=true, or leave it out")
    return loss_for(design, loss)


def without_features(design: Design, upper: float, lower: float, loss: str) -> Floats:
    """theta (p,) of a fit to the intercept alone, for the two sums of `sums_at_ends`."""
    theta = np.zeros(len(design.columns))
    low, high = design.target_range
    if loss == "logistic":
        theta[-1] = math.log((upper + HALF) / (lower + HALF))
    else:
        n = upper + lower
        theta[-1] = low + (high - low) * (upper / n if n > 0 else 0.5)
    return theta


def sums_at_ends(train: Table, design: Design) -> tuple[float, float]:
    """The sums of (y - l) / (h - l) and of (h - y) / (h - l): for two classes the counts of the upper and the lower."""
    low, high = design.target_range
    y = design.targets(train)
    parts = (y - low) / (high - low)
    return float(parts.sum()), float((1 - parts).sum())
