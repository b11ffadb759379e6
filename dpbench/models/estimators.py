"""Models of machine learning, trained on released rows (BinAgg, section 5.2.2 and Table 3; Zhou et al. 2024, D.3).

The papers state no settings. The settings here are the defaults of xgboost and scikit-learn. All four are
post-processing. They are regressors; for a target of two levels all but `svr` are classifiers, which predict the
log-odds of the second level, or the code of one of several levels. Their features are those of the design; `unit_box`
scales the declared range of each to [0, 1]. Standardising by the released rows would do as well for real rows, but if a
generator returns (nearly) one value, it would move real rows far away. The target stays in the design's unit, even
where that is hard to learn (SVR's `C` and `tube` are in this unit), as Table 3's column 'Original' requires.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, check_positive
from dpbench.models.fit import Fit
from dpbench.models.training_rows import labelled_rows, training_rows
from dpbench.releases import Release


def xgboost(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    trees: int = 100,
    depth: int = 6,
    learning_rate: float = 0.3,
) -> Fit:
    """Gradient-boosted trees for the squared error, or the log loss (Chen and Guestrin 2016), by xgboost.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has no rows, or rows of one
    of two levels only.
    """
    from xgboost import XGBClassifier, XGBRegressor

    check_positive("xgboost", trees=trees, depth=depth, learning_rate=learning_rate)
    X, y = _rows(release, design, rng)
    kind = XGBClassifier if _classes(design) else XGBRegressor
    settings = {"n_estimators": trees, "max_depth": depth, "learning_rate": learning_rate}
    return trained(kind(**settings, n_jobs=1, random_state=_seed(rng)), X, y, design)


def random_forest(release: Release, *, design: Design, rng: np.random.Generator, trees: int = 100) -> Fit:
    """The mean of unpruned trees on bootstrap samples (Breiman 2001), by scikit-learn.

    Each split is over all features for a numeric target, over sqrt(p) of them for one of two levels.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has no rows, or rows of one
    of two levels only.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    check_positive("random_forest", trees=trees)
    X, y = _rows(release, design, rng)
    kind = RandomForestClassifier if _classes(design) else RandomForestRegressor
    return trained(kind(n_estimators=trees, n_jobs=1, random_state=_seed(rng)), X, y, design)


def svr(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    C: float = 1.0,
    tube: float = 0.1,
    unit_box: bool = True,
) -> Fit:
    """Support vector regression: a radial kernel exp(-||x - x'||^2 / (p var)), var that of all entries of X (m, p).

    `C`: the price of an error beyond `tube`, both in the design's unit of the target. Time grows with the square of
    the rows, or faster.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has no rows.
    """
    from sklearn.svm import SVR

    check_positive("svr", C=C, tube=tube)
    X, y = training_rows(release, design, rng)
    return trained(SVR(C=C, epsilon=tube), X, y, design, unit_box=unit_box)


def mlp(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    hidden: int = 100,
    epochs: int = 200,
    unit_box: bool = True,
    least_rows: int = 500,
) -> Fit:
    """A network of one layer of `hidden` rectified linear units, trained by Adam in batches of 200 rows.

    Training ends when ten epochs gain less than 1e-4, or after `epochs`; the notes record which. The paper leaves out
    the network below 500 samples; `least_rows` does so by the number of released rows, which is public.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has fewer rows, or rows of
    one of two levels only.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    check_positive("mlp", hidden=hidden, epochs=epochs, least_rows=least_rows)
    X, y = _rows(release, design, rng)
    if len(y) < least_rows:
        raise NoEstimateError(f"the release has {len(y)} rows, fewer than mlp.least_rows={least_rows}")
    kind = MLPClassifier if _classes(design) else MLPRegressor
    network = kind(hidden_layer_sizes=(hidden,), max_iter=epochs, random_state=_seed(rng))
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # recorded in the notes
        fit = trained(network, X, y, design, unit_box=unit_box)
    converged = network.n_iter_ < epochs
    return replace(fit, notes={**fit.notes, "epochs": int(network.n_iter_), "converged": converged})


LEAST = np.finfo(float).eps  # of a probability, as in scikit-learn's log_loss: a forest's may be 0


@dataclass(frozen=True)
class Predictor:
    """A trained model of xgboost or scikit-learn, which takes the features (m, p) moved from a box to [0, 1]^p.

    `classes`: the y of each class of a classifier, none for a regressor. `odds`: whether they are -1 and +1.
    """

    model: Any
    lower: Floats
    side: Floats
    classes: Floats
    odds: bool

    def __call__(self, features: Floats) -> Floats:
        """The predicted targets (m,); of -1 and +1 the log-odds of +1, from a probability in [LEAST, 1 - LEAST]."""
        X = (features - self.lower) / self.side
        if not len(self.classes):
            return np.asarray(self.model.predict(X), dtype=float)
        probability = np.asarray(self.model.predict_proba(X), dtype=float)
        if not self.odds:
            return np.asarray(self.classes[probability.argmax(axis=1)])
        return np.asarray(logit(np.clip(probability[:, 1], LEAST, 1 - LEAST)))


def trained(model: Any, X: Floats, y: Floats, design: Design, *, unit_box: bool = False) -> Fit:
    """A model of xgboost or scikit-learn, trained on X (m, p), perhaps in the design's unit box, and y (m,)."""
    lower, upper = design.box if unit_box else (np.zeros(X.shape[1]), np.ones(X.shape[1]))
    side = np.where(upper > lower, upper - lower, 1.0)
    classes, codes = np.unique(y, return_inverse=True) if hasattr(model, "predict_proba") else (np.empty(0), y)
    model.fit((X - lower) / side, codes)
    return Fit(predictor=Predictor(model, lower, side, classes, design.binary), notes={"rows": len(y)})


def _classes(design: Design) -> bool:
    """Whether the target is a class."""
    return design.binary or design.several


def _rows(release: Release, design: Design, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The training data for a model of either kind of target."""
    return labelled_rows(release, design, rng) if _classes(design) else training_rows(release, design, rng)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))
