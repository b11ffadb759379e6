"""The quality of synthetic rows in a grid: scores of `metrics.quality`, on the split of a trial."""

from __future__ import annotations

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.metrics.distinguish import auc_of_trees
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.metrics.marginals import marginal_distances
from dpbench.metrics.quality import conclusions, efficacy_of_trees
from dpbench.releases import SyntheticRows

SEED = 0  # of what a metric draws: the same for all methods on a split


def two_way(evaluation: Evaluation) -> Score:
    """Mean over all pairs of attributes of the total variation distance from the rows that the mechanism used."""
    return Score("two_way", _total_variation(evaluation, 2), "", "lower")


def three_way(evaluation: Evaluation) -> Score:
    """The same over all triples."""
    return Score("three_way", _total_variation(evaluation, 3), "", "lower")


def _total_variation(evaluation: Evaluation, degree: int) -> float:
    return float(marginal_distances(evaluation.reference.split.seen, _rows(evaluation), degree).mean()) / 2


def auc_trees(evaluation: Evaluation) -> Score:
    """The area under the ROC curve of boosted trees that distinguish the released rows from those that the mechanism
    used: 1/2 where they cannot. See `distinguish`; NaN where one side of the rows is of one table only.
    """
    real, made = evaluation.reference.split.seen, _rows(evaluation)
    return Score("auc_trees", auc_of_trees(real, made, np.random.default_rng(SEED)), "", "lower")


def efficacy_trees(evaluation: Evaluation) -> Score:
    """How well boosted trees that were trained on the released rows predict the test rows (`quality.efficacy`)."""
    test, rng = evaluation.reference.split.test, np.random.default_rng(SEED)
    return Score("efficacy_trees", efficacy_of_trees(_rows(evaluation), test, _design(evaluation), rng), "", "higher")


def findings(evaluation: Evaluation) -> Score:
    """The share of a regression's coefficients of which the released rows say what those say that the mechanism used:
    above 0, below 0, or neither (`quality.conclusions`). NaN for a target of several levels.
    """
    (found,) = conclusions(evaluation.reference.split.seen, [_rows(evaluation)], _design(evaluation))
    return Score("findings", found.get(("findings", ()), float("nan")), "", "higher")


def _rows(evaluation: Evaluation) -> Table:
    return evaluation.release[SyntheticRows].table


def _design(evaluation: Evaluation) -> Design:
    design = evaluation.reference.design
    return Design(design.domain, design.target, classes=True)
