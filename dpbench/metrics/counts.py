"""Metrics of Poisson regression: the target is a count, and the mean of a row is exp(x'theta) (DD-SSP, F.2)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from dpbench.data.domain import Floats
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.models.poisson import counts_of


def poisson_deviance(evaluation: Evaluation) -> Score:
    """Mean of 2 (y log(y / mu) - y + mu) on the test rows, mu = exp(x'theta), 0 log 0 = 0.

    x'theta is not clipped: the deviance is infinite where a mu is above the largest float.
    """
    scores, mu, y = _predictions(evaluation, "poisson_deviance")
    return Score("poisson_deviance", float(2 * np.mean(xlogy(y, y) - y * scores - y + mu)), "", "lower")


def mse_count(evaluation: Evaluation) -> Score:
    """Mean squared error of exp(x'theta) on the test rows, in counts squared; infinite where it overflows."""
    design = evaluation.reference.design
    _, mu, y = _predictions(evaluation, "mse_count")
    with np.errstate(over="ignore"):
        error = float(np.mean((y - mu) ** 2))
    return Score("mse_count", error, f"{design.domain[design.target].unit or design.target}^2", "lower")


def _predictions(evaluation: Evaluation, metric: str) -> tuple[Floats, Floats, Floats]:
    """x'theta, exp(x'theta) and y of the test rows, for this metric."""
    scores = evaluation.reference.test[0] @ evaluation.coefficients(metric)
    with np.errstate(over="ignore"):
        mu = np.exp(scores)
    return scores, mu, counts_of(evaluation.reference.design, evaluation.reference.split.test)
