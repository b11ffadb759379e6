"""Gaussian graphical models: second moments of the largest entropy that fit noisy entries (Dempster 1972)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from .measurements import Array
from .solver import Problem, Solution, solve

Entry = tuple[int, int]  # (i, j), i <= j
Measured = tuple[float, float]  # what was measured of an entry, and its standard deviation


@dataclass(frozen=True)
class GaussianModel:
    """A Gaussian distribution N(0, S / total) times `total`: its second moments S (d, d), and how they were found."""

    moments: Array
    total: float
    entries: tuple[Entry, ...]
    solution: Solution


def gaussian_model(
    d: int,
    entries: Mapping[Entry, Measured],
    total: float,
    start: GaussianModel | None = None,
    *,
    tolerance: float,
    iterations: int = 1000,
) -> GaussianModel:
    """The second moments that fit these entries, all of the diagonal (d) among them, and have the largest entropy.

    It minimises sum_e (S_e - y_e)^2 / (2 sd_e^2) as Private-PGM does for tables, with the same solver: the Gaussians
    whose inverse of S is 0 outside of the entries are the exponential family of these statistics, so that the proximal
    steps of `solve` lead to the fit of largest entropy, which is among them. S is positive definite whatever the noise.

    `start`: a model of some of the entries. `tolerance`: see `solve`.
    """
    places = tuple(entries)
    i, j = np.array(places).T
    y, sd = np.array([entries[place] for place in places]).T
    variances = np.full(d, np.nan)
    variances[i[i == j]] = np.maximum(y, sd)[i == j]  # to start from, and for the scale of the rest
    own = np.where(i == j, 0.5, 1.0)  # the statistic of (i, i) is x_i^2, its potential half of an entry of the inverse
    diagonal = {int(a): place for place, (a, b) in enumerate(places) if a == b}
    of_i, of_j = (np.array([diagonal[int(a)] for a in side]) for side in (i, j))

    def inverse_of(theta: Array) -> Array:
        inverse = np.zeros((d, d))
        inverse[i, j] = inverse[j, i] = -theta / own
        return inverse

    def calibrate(theta: Array, total: float) -> tuple[float, Array]:
        factor, failed = lapack.dpotrf(inverse_of(theta), lower=True)
        if failed:
            return np.inf, np.zeros(len(theta))
        moments, _ = lapack.dpotri(factor, lower=True)
        return -float(np.log(np.diag(factor)).sum()), total * moments[j, i]  # the lower triangle

    def curvature(mu: Array) -> Array:  # total times the variance of x_i x_j
        variances: Array = (mu[of_i] * mu[of_j] + mu**2) / total
        return variances

    problem = Problem(calibrate, y, sd**-2.0, total, np.arange(len(y)), curvature)
    theta, pull, moves = np.where(i == j, -0.5 * total / variances[i], 0.0), np.zeros(len(y)), []
    if start is not None:
        known = {place: k for k, place in enumerate(start.entries)}
        at = np.array([known.get(place, -1) for place in places])
        theta, pull = (np.where(at >= 0, found[at], 0.0) for found in (start.solution.theta, start.solution.pull))
        moves = [(np.where(at >= 0, a[at], 0.0), np.where(at >= 0, b[at], 0.0)) for a, b in start.solution.moves]
    correlations = y**2 / (variances[i] * variances[j])
    guess = max(1.0, 0.5 * total * float(np.minimum(correlations[i != j], 1.0).sum()))
    solution = solve(problem, theta, pull, moves, iterations, tolerance, guess)
    moments = np.asarray(total * np.linalg.inv(inverse_of(solution.theta)), dtype=float)
    return GaussianModel(moments, total, places, solution)
