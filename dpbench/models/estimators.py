"""Regressors of machine learning, trained on released rows (Paper 1, section 5.2.2 and Table 3).

The paper names four and prints no setting of any. The settings here are the defaults of xgboost and scikit-learn. All
four are post-processing. Their features are those of the design; `unit_box` brings the range that the domain declares
for each of them to [0, 1]. The mean and deviation of the released rows would do as well for real rows; of a generator
that puts out (nearly) one value they would send real rows far off. The target stays in the design's unit, also where
that is hard to learn (SVR's `C` and `tube` are in this unit): Table 3's column 'Original' needs it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.release import Release
from dpbench.models.fit import Fit
from dpbench.models.rows import training_rows


def xgboost(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    trees: int = 100,
    depth: int = 6,
    learning_rate: float = 0.3,
) -> Fit:
    """Gradient-boosted trees for the squared error (Chen and Guestrin 2016), by xgboost.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has no rows.
    """
    from xgboost import XGBRegressor

    _check_positive("xgboost", trees=trees, depth=depth, learning_rate=learning_rate)
    X, y = training_rows(release, design, rng)
    settings = {"n_estimators": trees, "max_depth": depth, "learning_rate": learning_rate}
    return _fit(XGBRegressor(**settings, n_jobs=1, random_state=_seed(rng)), X, y)


def random_forest(release: Release, *, design: Design, rng: np.random.Generator, trees: int = 100) -> Fit:
    """The mean of unpruned regression trees on bootstrap samples (Breiman 2001), each split over all features.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has no rows.
    """
    from sklearn.ensemble import RandomForestRegressor

    _check_positive("random_forest", trees=trees)
    X, y = training_rows(release, design, rng)
    return _fit(RandomForestRegressor(n_estimators=trees, n_jobs=1, random_state=_seed(rng)), X, y)


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

    _check_positive("svr", C=C, tube=tube)
    X, y = training_rows(release, design, rng)
    return _fit(SVR(C=C, epsilon=tube), X, y, design if unit_box else None)


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

    Training ends when ten epochs gain less than 1e-4, or after `epochs`; the notes record which. The paper leaves the
    network out below 500 samples; `least_rows` does so by the number of released rows, which is public.

    Raises `UserError` for a setting that is not positive, `NoEstimateError` if the release has fewer rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    _check_positive("mlp", hidden=hidden, epochs=epochs, least_rows=least_rows)
    X, y = training_rows(release, design, rng)
    if len(y) < least_rows:
        raise NoEstimateError(f"the release has {len(y)} rows, and mlp.least_rows={least_rows}")
    network = MLPRegressor(hidden_layer_sizes=(hidden,), max_iter=epochs, random_state=_seed(rng))
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the notes say it
        fit = _fit(network, X, y, design if unit_box else None)
    converged = network.n_iter_ < epochs
    return replace(fit, notes={**fit.notes, "epochs": int(network.n_iter_), "converged": converged})


@dataclass(frozen=True)
class Predictor:
    """A trained regressor of xgboost or scikit-learn, which takes the features (m, p) moved from a box to [0, 1]^p."""

    regressor: Any
    lower: Floats
    side: Floats

    def __call__(self, features: Floats) -> Floats:
        """The predicted targets (m,)."""
        return np.asarray(self.regressor.predict((features - self.lower) / self.side), dtype=float)


def _fit(regressor: Any, X: Floats, y: Floats, box_of: Design | None = None) -> Fit:
    """The regressor, trained on X (m, p), perhaps in a design's unit box, and y (m,)."""
    lower, upper = box_of.box if box_of is not None else (np.zeros(X.shape[1]), np.ones(X.shape[1]))
    side = np.where(upper > lower, upper - lower, 1.0)
    regressor.fit((X - lower) / side, y)
    return Fit(predictor=Predictor(regressor, lower, side), notes={"rows": len(y)})


def _seed(rng: np.random.Generator) -> int:
    """The seed of a library's own generator."""
    return int(rng.integers(2**31))


def _check_positive(model: str, **settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise UserError(f"{model}.{name} must be greater than 0, not {value:g}")
