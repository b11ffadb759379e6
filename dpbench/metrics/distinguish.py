"""Whether a classifier can tell synthetic rows from real ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpbench.data.domain import Codes, Floats
from dpbench.data.encode import number
from dpbench.data.table import Table
from dpbench.metrics.classification import auc_of
from dpbench.metrics.similarity import Values

TREES, DEPTH = 50, 6  # of the boosted trees


def distinguish(real: Table, other: Table, rng: np.random.Generator) -> Values:
    """The area under the ROC curve of two classifiers on rows that they were not trained on, and the pMSE.

    Rows that are alike in all attributes are on one side, all for training or all for testing: else a classifier would
    know the copies of a row that it has seen. An area is NaN where one side has rows of one table only.

    **Source** `auc_logistic`: SDMetrics' LogisticDetection, whose score is 2 - 2 max(AUC, 1/2), and synthcity's
    detection_linear. `auc_trees`: synthcity's detection_xgb. Both average over folds; here half of the rows are for
    training. `pmse`: Snoke, Raab, Nowok, Dibben and Slavković 2018 (arXiv 1604.06651): the mean of (p_i - c)^2 over all
    rows, c the share of synthetic ones and p_i their probability by logistic regression without interactions.
    """
    codes = np.concatenate([real.codes, other.codes])
    made = np.repeat([0, 1], [len(real), len(other)])
    features = _features(Table(real.domain, codes))
    probability = _logistic(features, made, features)
    found: Values = {("pmse", ()): float(np.mean((probability - made.mean()) ** 2))}
    train = _half(codes, rng)
    found["auc_logistic", ()] = _auc(_logistic, features, made, train)
    found["auc_trees", ()] = _auc(_trees, codes, made, train)
    return found


def auc_of_trees(real: Table, other: Table, rng: np.random.Generator) -> float:
    """`distinguish`'s `auc_trees` alone."""
    codes = np.concatenate([real.codes, other.codes])
    return _auc(_trees, codes, np.repeat([0, 1], [len(real), len(other)]), _half(codes, rng))


def _auc(classifier: Callable[..., Floats], X: Any, made: NDArray[np.int64], train: NDArray[np.bool_]) -> float:
    test = ~train
    if not all(0 < made[rows].sum() < rows.sum() for rows in (train, test)):
        return float("nan")
    return auc_of(classifier(X[train], made[train], X[test]), np.where(made[test] == 1, 1.0, -1.0))


def _half(codes: Codes, rng: np.random.Generator) -> NDArray[np.bool_]:
    """About half of the rows (n,), by a random hash: equal rows go together."""
    odd = rng.integers(2**63, size=codes.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    half: NDArray[np.bool_] = (codes.astype(np.uint64) + np.uint64(1)) @ odd >= np.uint64(2**63)
    return half


def _features(table: Table) -> Any:
    """Standardised numbers, which of them are missing, and one-hot levels (n, p), sparse."""
    columns = []
    for attribute in table.domain.attributes:
        code = table.column(attribute.name)
        if attribute.numeric:
            numbers = number(attribute)[:, code].T
            spread = numbers.std(axis=0)
            columns.append(sparse.csr_array((numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)))
        else:
            places = (np.ones(len(code)), code, np.arange(len(code) + 1))
            columns.append(sparse.csr_array(places, shape=(len(code), attribute.size)))
    return sparse.hstack(columns, format="csr")


def _logistic(X: Any, y: NDArray[np.int64], other: Any) -> Floats:
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings(action="ignore"):  # of steps that do not suffice: it is near enough
        fitted = LogisticRegression(solver="newton-cholesky").fit(X, y)
    found: Floats = fitted.predict_proba(other)[:, 1]
    return found


def _trees(X: Codes, y: NDArray[np.int64], other: Codes) -> Floats:
    """Boosted trees of the codes, whose order means nothing for levels; a few splits make up for it."""
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=TREES, max_depth=DEPTH, n_jobs=1, random_state=0)
    found: Floats = model.fit(X.astype(np.float32), y).predict_proba(other.astype(np.float32))[:, 1].astype(float)
    return found
