"""Results released by the mechanism itself: coefficients (objective perturbation, DP-SGD), or answers to queries."""

from __future__ import annotations

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError
from dpbench.models.fit import Fit
from dpbench.releases import Coefficients, Release


def released_coefficients(release: Release, *, design: Design) -> Fit:
    """The identity: the released coefficients (p,), for the design of the release."""
    return Fit(release[Coefficients].values)


def released_answers(release: Release, *, design: Design) -> Fit:
    """No model: the release answers queries itself, and only metrics of the release can score it."""
    return Fit(predictor=_predict_nothing)


def _predict_nothing(X: Floats) -> Floats:
    raise NoEstimateError(
        "model=released_answers predicts nothing: it is for metrics of the release itself, such as query_error_max; "
        "give another model for metrics of predictions"
    )
