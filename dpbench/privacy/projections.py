"""Random projections of the rows: their exact delta(eps), alone and among Gaussian steps, their Renyi divergence, also
where a record changes the Gram matrix in two directions, and the least regularisation for a budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpbench.privacy.events import Event, Gaussian, Laplace
from dpbench.privacy.root_finding import root

TAIL = 1e-40  # of a chi-square distribution, left out of an integral at either end
POINTS, MOST_POINTS = 1024, 2**16  # of the integral


@dataclass(frozen=True)
class Projection(Event):
    """`projections` Gaussian combinations of the rows of [A; w I], w = multiplier * sensitivity.

    `sensitivity` bounds the l2 norm of a row of A. `delta`: the probability with which the condition of
    `projection_delta` fails.
    """

    kind, norm, composes_with = "projection", "l2", (Laplace, Gaussian)
    sensitivity: float
    multiplier: float
    projections: int
    delta: float = 0.0


@dataclass(frozen=True)
class TwoSidedProjection(Projection):
    """Rows of N(0, M) of which a record may raise M in one direction and lower it in another.

    `sensitivity` bounds the root of the trace norm of what a record changes in M: see `two_sided_rdp`.
    """

    kind = "two_sided_projection"


def projection_delta(epsilon: float, multiplier: float, count: int, mu: float = 0.0) -> float:
    """The exact delta(eps) of `count` rows drawn from N(0, M), neighbours adding or removing one record, and of
    Gaussian steps of `mu`-Gaussian DP in all.

    M is the Gram matrix of a table, regularised or not, that of its neighbour is M + v v', ||v|| <= B, and both are at
    least w^2 I, w = multiplier B. With s = 1 + t, t = 1 / multiplier^2, r = count, and F_r the distribution function
    of the chi-square distribution with r degrees of freedom, delta is the larger of

        F_r(s q_-) - e^eps F_r(q_-)     q_- = (r log s - 2 eps) / t          (M against M + v v')
        1 - F_r(q_+) - e^eps (1 - F_r(s q_+))     q_+ = (r log s + 2 eps) / t     (M + v v' against M).

    Proof. M^(-1/2) maps the rows to N(0, I) and N(0, I + u u'), u = M^(-1/2) v, one to one. Only their part along u
    differs: N(0, 1)^r against N(0, 1 + t)^r, t = ||u||^2 = v' M^-1 v <= B^2 / w^2. The least favourable t is that
    bound: noise N(0, c) on each entry and division by sqrt(1 + c) turn the pair of t into that of t / (1 + c), and no
    processing raises delta. It is attained by a record of norm B added to an empty table, M = w^2 I. The densities'
    ratio depends on the sum of squares alone, which is chi-square, and s times chi-square for the neighbour: the two
    formulas are the hockey-stick divergences in either direction. (The second was the larger wherever we looked.)

    The Gaussian steps come before the rows, between them and after them, and each may depend on all that was drawn
    before, M too, as long as M >= w^2 I holds for both. With L the privacy loss of the rows, delta is then the mean of
    the Gaussian's delta(eps - L), in the direction in which it is larger.

    Proof. Whatever was drawn before, the pair of distributions of a Gaussian step is a post-processing of N(0, 1)
    against N(m, 1), m its sensitivity over its noise, and that of a row of N(0, 1) against N(0, 1 + t), as above. Such
    pairs compose adaptively (Zhu, Dong and Wang 2022, arXiv 2106.08567, Theorem 10): what is released is no easier to
    tell apart than their product. In it the Gaussians are one of mu^2 = sum m^2, independent of the rows, and given L
    the hockey-stick divergence of the product is theirs at eps - L. An empty table to which a record of the largest
    norm is added attains it where no step depends on another: it is exact.
    """
    from scipy.special import gammainc, gammaincc

    if multiplier == 0:
        return 1.0
    if mu > 0:
        return _delta_with_gaussian(epsilon, multiplier**-2, count, mu)
    t, half = multiplier**-2, count / 2
    middle, step = count * math.log1p(t) / t, 2 * epsilon / t
    low, high = max(middle - step, 0.0) / 2, (middle + step) / 2
    added = gammainc(half, (1 + t) * low) - _times_exp(epsilon, gammainc(half, low))
    removed = gammaincc(half, high) - _times_exp(epsilon, gammaincc(half, (1 + t) * high))
    return float(max(added, removed, 0.0))


def _delta_with_gaussian(epsilon: float, t: float, count: int, mu: float) -> float:
    """The larger of both means, by the trapezoidal rule in (q / r)^(1/3), q chi-square, which is near to normal.

    The rule converges exponentially where the integrand is smooth and ends at 0. It has so many points that L changes
    by a small part of `mu` between two, and rounds nothing off: the tails that it leaves out are added.
    """
    from scipy.special import gammainccinv, gammaincinv, gammaln, log_ndtr, ndtr

    half, log = count / 2, math.log1p(t)
    low, high = (math.cbrt(2 * q / count) for q in (gammaincinv(half, TAIL), gammainccinv(half, TAIL)))
    points = POINTS * math.ceil(1 + t * math.sqrt(half) / mu / 20)
    h = np.linspace(low, high, min(points, MOST_POINTS))
    q = count * h**3
    logs = (half - 1) * np.log(q) - q / 2 - half * math.log(2) - gammaln(half)
    weights = np.exp(logs) * 3 * count * h**2 * (h[1] - h[0])
    deltas = [2 * TAIL]
    for loss in (half * log - t / (1 + t) * q / 2, t * q / 2 - half * log):
        e = epsilon - loss
        of_gaussian = ndtr(mu / 2 - e / mu) - np.exp(np.minimum(e + log_ndtr(-mu / 2 - e / mu), 0.0))
        deltas.append(2 * TAIL + float(weights @ np.maximum(of_gaussian, 0.0)))
    return min(max(deltas), 1.0)


def projection_rdp(order: float, multiplier: float, count: int) -> float:
    """The Renyi divergence of this order between N(0, M + v v') and N(0, M), `count` rows each, for the worst v.

    With t as in `projection_delta`, -r/2 (log(1 + t) + log(1 - (order - 1) t) / (order - 1)), infinite from
    order = 1 + 1 / t on (Lev et al. 2025, arXiv 2505.24603). That of N(0, M) from N(0, M + v v'), r/2 (log(1 + t) -
    log((1 + order t) / (1 + t)) / (order - 1)), is less.
    """
    t = multiplier**-2
    if (order - 1) * t >= 1:
        return math.inf
    return -count / 2 * (math.log1p(t) + math.log1p(-(order - 1) * t) / (order - 1))


def two_sided_rdp(order: float, multiplier: float, count: int) -> float:
    """The Renyi divergence of this order between N(0, M) and N(0, M + E), `count` rows each, in either order, at most.

    E has at most one positive and one negative eigenvalue, and the sum of their sizes, its trace norm, is at most B^2.
    M and M + E are both at least w^2 I, w = multiplier B. With t = 1 / multiplier^2, g = t / (1 + t), and

        f(s) = -1/2 (log(1 + s) + log(1 - (order - 1) s) / (order - 1)),

    it is `count` times the larger of f(t) and f(t - g) + f(-g); infinite from order = 1 + 1 / t on.

    Proof. M^(-1/2) and a rotation map the rows to N(0, I) and N(0, I + diag(p, -q, 0, ...)), p, q >= 0, one to one:
    independent coordinates, whose divergence is f(p) + f(-q) a row. The trace norm of M^(-1/2) E M^(-1/2) is at most
    that of E over w^2, so p + q <= t. Seen from M + E, -q is an eigenvalue q / (1 - q) of -E, and at most t too: q <=
    g. f is convex, f'' being (1 + s)^-2 / 2 + (order - 1) (1 - (order - 1) s)^-2 / 2, and 0 at s = 0, where it is
    least. So the sum is largest at a corner of {p + q <= t, q <= g}: (t, 0) or (t - g, g). Exchanging M and M + E
    changes nothing that was used.
    """
    t = multiplier**-2
    if (order - 1) * t >= 1:
        return math.inf
    g = t / (1 + t)

    def f(s: float) -> float:
        return -(math.log1p(s) + math.log1p(-(order - 1) * s) / (order - 1)) / 2

    return count * max(f(t), f(t - g) + f(-g))


def two_sided_epsilon(multiplier: float, count: int, delta: float, mu: float = 0.0) -> float:
    """eps at delta of `count` rows as in `two_sided_rdp`, with Gaussian steps of `mu`-Gaussian DP in all, by the sum of
    their Renyi divergences (Canonne, Kamath and Steinke 2020, Proposition 12). Each may depend on those before.
    """
    from scipy.optimize import minimize_scalar

    def of_order(part: float) -> float:  # of the orders at which the divergence is finite
        a = 1 + part * multiplier**2
        rdp = two_sided_rdp(a, multiplier, count) + a * mu**2 / 2
        return rdp + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)

    found = minimize_scalar(of_order, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9})
    return max(float(found.fun), 0.0)


def projection_epsilon(multiplier: float, count: int, delta: float, mu: float = 0.0) -> float:
    """The least eps >= 0 at which `projection_delta` is at most delta."""
    if projection_delta(0.0, multiplier, count, mu) <= delta:
        return 0.0
    return root(lambda epsilon: projection_delta(epsilon, multiplier, count, mu) - delta, 0.0, 1.0, rising=False)


def projection_multiplier(epsilon: float, delta: float, count: int) -> float:
    """The least w / B at which `count` projections are (eps, delta)-DP."""
    return root(lambda multiplier: projection_delta(epsilon, multiplier, count) - delta, 0.0, 1.0, rising=False)


def _times_exp(epsilon: float, probability: float) -> float:
    """e^eps times a probability of at most e^-eps, without overflow."""
    return math.exp(min(epsilon + math.log(probability), 0.0)) if probability > 0 else 0.0
