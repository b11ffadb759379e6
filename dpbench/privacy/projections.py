"""Random projections of the rows: their exact delta(eps), and the least regularisation for a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpbench.privacy.events import Event, Laplace
from dpbench.privacy.root_finding import root


@dataclass(frozen=True)
class Projection(Event):
    """`projections` Gaussian combinations of the rows of [A; w I], w = multiplier * sensitivity.

    `sensitivity` bounds the l2 norm of a row of A. `delta`: the probability with which the condition of
    `projection_delta` fails.
    """

    kind, norm, composes_with = "projection", "l2", (Laplace,)
    sensitivity: float
    multiplier: float
    projections: int
    delta: float = 0.0


def projection_delta(epsilon: float, multiplier: float, count: int) -> float:
    """The exact delta(eps) of `count` rows drawn from N(0, M), neighbours adding or removing one record.

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
    """
    from scipy.special import gammainc, gammaincc

    if multiplier == 0:
        return 1.0
    t, half = multiplier**-2, count / 2
    middle, step = count * math.log1p(t) / t, 2 * epsilon / t
    low, high = max(middle - step, 0.0) / 2, (middle + step) / 2
    added = gammainc(half, (1 + t) * low) - _times_exp(epsilon, gammainc(half, low))
    removed = gammaincc(half, high) - _times_exp(epsilon, gammaincc(half, (1 + t) * high))
    return float(max(added, removed, 0.0))


def projection_epsilon(multiplier: float, count: int, delta: float) -> float:
    """The least eps >= 0 at which `projection_delta` is at most delta."""
    if projection_delta(0.0, multiplier, count) <= delta:
        return 0.0
    return root(lambda epsilon: projection_delta(epsilon, multiplier, count) - delta, 0.0, 1.0, rising=False)


def projection_multiplier(epsilon: float, delta: float, count: int) -> float:
    """The least w / B at which `count` projections are (eps, delta)-DP."""
    return root(lambda multiplier: projection_delta(epsilon, multiplier, count) - delta, 0.0, 1.0, rising=False)


def _times_exp(epsilon: float, probability: float) -> float:
    """e^eps times a probability of at most e^-eps, without overflow."""
    return math.exp(min(epsilon + math.log(probability), 0.0)) if probability > 0 else 0.0
