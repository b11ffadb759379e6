"""Metrics of classification: the target's two levels are -1 and +1, the score of a row is x'theta (DD-SSP, 3.3).

For a model without coefficients the score is its prediction, the log-odds of +1.
"""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.metrics.evaluation import Evaluation, Score


def auc(evaluation: Evaluation) -> Score:
    """Area under the ROC curve on the test rows (DD-SSP, Figure 3b); NaN if they are all of one class.

    The share of the pairs of a +1 and a -1 in which the +1 has the larger score, a tie counting as half a pair
    (Mann and Whitney): from the ranks of the +1s, tied scores having their mean rank. It does not depend on the scale
    of theta.
    """
    return Score("auc", auc_of(*scores_of(evaluation)), "", "higher")


def auc_of(scores: Floats, y: Floats) -> float:
    """The area under the ROC curve of scores (m,) of rows with y = -1 or +1 (m,)."""
    from scipy.stats import rankdata  # takes half a second to import

    positive = int((y > 0).sum())
    negative = len(y) - positive
    if not (positive and negative):
        return float("nan")
    larger = rankdata(scores)[y > 0].sum() - positive * (positive + 1) / 2
    return float(larger / (positive * negative))


def log_loss(evaluation: Evaluation) -> Score:
    """Mean of log(1 + exp(-y x'theta)) on the test rows, natural logarithm; theta = 0 has log 2 = 0.693.

    Unlike the AUC it depends on the scale of theta: a fit of the right direction can score badly.
    """
    scores, y = scores_of(evaluation)
    return Score("log_loss", float(np.logaddexp(0.0, -y * scores).mean()), "nats", "lower")


def accuracy(evaluation: Evaluation) -> Score:
    """Share of the test rows whose label is the sign of their score; a score of 0 counts as half a row.

    With several levels, the share whose level is predicted correctly.
    """
    if evaluation.reference.design.several:
        X, y = evaluation.reference.test
        return Score("accuracy", float(np.mean(evaluation.fit.predict(X) == y)), "", "higher")
    scores, y = scores_of(evaluation)
    return Score("accuracy", float(np.mean(1 + y * np.sign(scores)) / 2), "", "higher")


def likelihood_distance(evaluation: Evaluation) -> Score:
    """||theta - theta_ML||_2 / ||theta_ML||_2, theta_ML maximum likelihood on the rows that the mechanism used."""
    if not evaluation.reference.design.binary:
        raise ValueError("likelihood_distance needs a target of two levels; coefficient_distance is for the others")
    exact = evaluation.reference.likelihood
    distance = np.linalg.norm(evaluation.coefficients("likelihood_distance") - exact) / np.linalg.norm(exact)
    return Score("likelihood_distance", float(distance), "", "lower")


def scores_of(evaluation: Evaluation) -> tuple[Floats, Floats]:
    """The scores and y of the test rows. Raises `ValueError` for a target that is not -1 and +1."""
    design = evaluation.reference.design
    if not design.binary:
        raise ValueError(f"the target {design.target!r} does not have two levels; leave out metrics of classification")
    X, y = evaluation.reference.test
    return evaluation.fit.predict(X), y
