"""Gaussian sketches of the rows, regularised by what a private least eigenvalue says that they lack.

A sketch of A, whose rows have norm B at most, is k rows of N(0, M), M = A'A + eta^2 I. It is private where M is large.
With lambda the least eigenvalue of A'A, z = lambda + s B^2 N(0, 1) is released first, and

    eta^2 = max(gamma B^2 - max(z - tau s B^2, 0), 0),     so that M >= gamma B^2 I unless N(0, 1) > tau.

**Theorem.** Neighbours add or remove a record. z, `count` rows of N(0, M), drawn at once or in parts, and Gaussian
steps of sensitivity Delta_i and noise m_i Delta_i, each of which may depend on all that was drawn before, are together
(eps, delta)-DP for every eps, with mu^2 = 1 / s^2 + sum_i 1 / m_i^2 and

    delta = P(N(0, 1) > tau) + `projection_delta`(eps, sqrt(gamma - 1), count, mu).

Proof. Let D' have one record v more than D, so that lambda(D) <= lambda(D') <= lambda(D) + B^2, and z is a Gaussian
step of sensitivity B^2. Let E be the event that z <= lambda(D') + tau s B^2: one set of values of z for the pair. Its
complement has probability P(N(0, 1) > tau) on D', and no more on D. Given z in E, M(D') = A'A + vv' + eta^2 I has all
eigenvalues at gamma B^2 or above: where eta^2 > 0, lambda(D') + eta^2 >= gamma B^2 by the choice of eta, and where it
is 0, lambda(D') >= z - tau s B^2 >= gamma B^2. M(D) = M(D') - vv' has them at (gamma - 1) B^2 or above. So for z in E
every row, given what was drawn before, is one of a projection with w^2 = (gamma - 1) B^2. Replace what is drawn after a
z outside of E by nothing, on both tables. What results is an adaptive composition to which `projection_delta` applies,
and it agrees with the mechanism on E. Hence for P and Q of D and D', in either order, and every set S of outcomes,

    P(S) <= P(not E) + P(S and E) <= P(not E) + e^eps Q(S and E) + projection_delta <= e^eps Q(S) + delta.

So all steps compose as one, and the probability that the condition fails is paid once, without a factor e^eps. The same
holds by Renyi divergence: the integral of p^a q^(1-a) over E is at most exp((a - 1) times the sum of the steps'
divergences), as the integrand is positive, and (p - e^eps q)_+ has a pointwise bound by p^a q^(1-a). Basic composition
of the steps, as published, is never needed.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, projection
from dpbench.privacy.projections import projection_delta, projection_rdp
from dpbench.privacy.root_finding import root
from dpbench.releases import SufficientStatistics

FAILURE = 0.1  # of delta, for the probability that the least eigenvalue is overestimated
PUBLISHED_FAILURE = 1 / 40  # the authors take tau^2 = 2 log(40 / delta)
LEAST = 1e-6  # w / B that is tried


def check_finite(epsilon: float, mechanism: str) -> None:
    """Raises `UserError` for an infinite eps."""
    if math.isinf(epsilon):
        raise UserError(f"{mechanism} needs a finite epsilon; use a large one, such as 1e3, to see its limit")


def sketch(
    rng: np.random.Generator,
    ledger: Ledger,
    gram: Floats,
    *,
    squared: float,
    gamma: float,
    multiplier: float,
    failure: float,
    count: int,
    paid: float = 0.0,
    two_sided: bool = False,
) -> tuple[Floats, float]:
    """`count` rows (count, p) of N(0, A'A + eta^2 I), and eta^2, for A'A = `gram` (p, p) and B^2 = `squared`.

    `multiplier` is s, and `failure` the probability P(N(0, 1) > tau). `paid`: that of other conditions that are to
    hold. `two_sided`: as of `noise.projection`.
    """
    from scipy.special import ndtri

    least = max(float(np.linalg.eigvalsh(gram)[0]), 0.0)
    noisy = gaussian(rng, ledger, least, sensitivity=squared, multiplier=multiplier, label="least eigenvalue")
    found = float(noisy) + float(ndtri(failure)) * multiplier * squared  # z - tau s B^2
    ridge = max(gamma * squared - max(found, 0.0), 0.0)
    rows = projection(
        rng,
        ledger,
        gram + ridge * np.eye(len(gram)),
        sensitivity=math.sqrt(squared),
        multiplier=math.sqrt(gamma - 1),
        count=count,
        failure=failure + paid,
        two_sided=two_sided,
        label="sketch",
    )
    return rows, ridge


@lru_cache(maxsize=256)
def tight_gamma(mechanism: str, budget: Budget, count: int, steps: float) -> float:
    """The least gamma with which the theorem gives the budget, P(N(0, 1) > tau) being `FAILURE` of delta.

    `steps`: mu^2 of all Gaussian steps, the least eigenvalue's too, in units of 1 / (gamma - 1)^2. Raises `UserError`
    for an infinite eps.
    """
    check_finite(budget.epsilon, mechanism)
    part = (1 - FAILURE) * budget.delta

    def excess(multiplier: float) -> float:
        return projection_delta(budget.epsilon, multiplier, count, math.sqrt(steps) / multiplier**2) - part

    return 1 + root(excess, LEAST, 1.0, rising=False) ** 2


def published_gamma(mechanism: str, epsilon: float, delta: float, count: int, sketches: int) -> float:
    """The gamma of the authors' code: the eps of `sketches` of `count` rows by Renyi divergence and that of the least
    eigenvalue by the classical Gaussian mechanism, s = gamma / sqrt(count), both at `delta`, are `epsilon` together.

    Raises `UserError` for an infinite eps.
    """
    from scipy.optimize import minimize_scalar

    check_finite(epsilon, mechanism)

    def excess(multiplier: float) -> float:
        gamma = 1 + multiplier**2

        def of_order(part: float) -> float:  # of the orders at which the divergence is finite, from 1 to gamma
            a = 1 + part * (gamma - 1)
            rdp = sketches * projection_rdp(a, multiplier, count)
            return rdp + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)

        found = minimize_scalar(of_order, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9})
        return float(found.fun) + math.sqrt(2 * math.log(1.25 / delta) * count) / gamma - epsilon

    return 1 + root(excess, LEAST, 1.0, rising=False) ** 2


def statistics_of(rows: Floats, ridge: float, sd: float) -> SufficientStatistics:
    """Second moments of k sketched `rows` (k, p + 1) of [X, y] over k, less the `ridge`, each with noise of `sd`."""
    moments = rows.T @ rows / len(rows) - ridge * np.eye(rows.shape[1])
    return SufficientStatistics(moments[:-1, :-1], moments[:-1, -1], sd, sd, ridge, float(moments[-1, -1]))
