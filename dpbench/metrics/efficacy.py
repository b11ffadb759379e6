"""What an analyst of synthetic rows would find: how well models predict real rows, and what a regression concludes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError
from dpbench.metrics.classification import auc_of
from dpbench.metrics.distinguish import TREES
from dpbench.metrics.similarity import Values
from dpbench.models.estimators import xgboost
from dpbench.models.fit import Fit
from dpbench.models.linear import RELATIVE_RANK_TOLERANCE, linear_rows, solve
from dpbench.models.logistic import logistic_lbfgs
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows

LEVEL = 0.95  # of the intervals that say what is significant
ALIASED = 1e-9  # at most this part of a square is left of what others determine
STEPS = 100  # of logistic regression: the default of scikit-learn


def efficacy(train: Table, test: Table, design: Design, rng: np.random.Generator) -> Values:
    """How well a linear model and boosted trees that were trained on `train` predict the real rows `test`.

    The score is the area under the ROC curve for a target of two levels, R^2 for a numeric one, else the share of rows
    whose level is predicted. NaN where the rows do not allow it, such as those of one level.

    **Source** Esteban, Hyland and Rätsch 2017 (train on synthetic, test on real, arXiv 1706.02633); synthcity's
    performance.linear_model and performance.xgb.
    """
    linear = partial(logistic_lbfgs, iterations=STEPS) if design.binary or design.several else linear_rows
    codes = replace(design, categorical="ordinal")  # for trees: a few splits make up for the order of levels
    models: dict[str, tuple[Callable[..., Fit], Design]]
    models = {"efficacy_linear": (linear, design), "efficacy_trees": (partial(xgboost, trees=TREES), codes)}
    found: Values = {}
    for name, (model, features) in models.items():
        X, y = features.encode(test)
        try:
            predicted = model(_released(train), design=features, rng=rng).predict(X)
        except NoEstimateError:
            found[name, ()] = math.nan
            continue
        found[name, ()] = _performance(predicted, y, design)
    return found


def _performance(predicted: Floats, y: Floats, design: Design) -> float:
    if design.binary:
        return auc_of(predicted, y)
    if design.several:
        return float(np.mean(predicted == y))
    spread = float(np.mean((y - y.mean()) ** 2))
    return 1 - float(np.mean((y - predicted) ** 2)) / spread if spread else math.nan


def _released(table: Table) -> Release:
    return Release(table.domain, Budget(math.inf), Ledger(), (SyntheticRows(table),))


# --- conclusions ---------------------------------------------------------------------------------------------------


def conclusions(real: Table, others: Sequence[Table], design: Design) -> list[Values]:
    """The share of a regression's conclusions on the real rows that each of the other tables gives too.

    The regression is least squares on the target (-1 and +1 for two levels). Of each coefficient but the intercept it
    concludes that it is above 0, below 0 or not known to differ from 0, by the usual interval. Columns that are, in the
    real rows, combinations of those before them are left out. `findings`: of all coefficients; `findings_significant`:
    of those that are significant on the real rows. Empty for a target of more than two levels, and for one that the
    other attributes determine.

    **Source** After SynRD (Rosenblatt et al. 2023, "Epistemic parity: reproducibility as an evaluation metric for
    differential privacy", arXiv 2208.12700), which repeats the findings of eight papers.
    """
    if design.several:
        return [{} for _ in others]
    X, y = design.encode(real)
    kept = _identified(X.T @ X)
    true = _signs(X[:, kept], y)
    if true is None or not len(true):
        return [{} for _ in others]
    found = []
    for other in others:
        X, y = design.encode(other)
        signs = _signs(X[:, kept], y)
        same = np.zeros(len(true)) if signs is None else signs == true
        values: Values = {("findings", ()): float(same.mean())}
        if true.any():
            values["findings_significant", ()] = float(same[true != 0].mean())
        found.append(values)
    return found


def _identified(gram: Floats) -> NDArray[np.intp]:
    """The columns of X that are no combinations of the intercept, the last one, and those before them."""
    left, kept = gram.copy(), []
    for j in (len(gram) - 1, *range(len(gram) - 1)):
        if left[j, j] > ALIASED * gram[j, j]:
            kept.append(j)
            left -= np.outer(left[j], left[j]) / left[j, j]
    return np.sort(kept)


def _signs(X: Floats, y: Floats) -> Floats | None:
    """-1, 0 or +1 for each column but the last, the intercept; None if nothing of y is left unexplained."""
    xtx, xty = second_moments(X, y)
    theta = solve(xtx, xty).coefficients
    unexplained, spread = float(((y - X @ theta) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    if len(y) <= len(theta) or unexplained <= ALIASED * spread:
        return None
    inverse = np.linalg.pinv(xtx, rcond=RELATIVE_RANK_TOLERANCE, hermitian=True)
    se = np.sqrt(unexplained / (len(y) - len(theta)) * np.maximum(np.diag(inverse), 0.0))
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * se
    signs: Floats = np.where((np.abs(theta) > reach) & (se > 0), np.sign(theta), 0.0)[:-1]
    return signs
