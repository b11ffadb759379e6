"""`Fit`: the result of a model on a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import ContractError
from dpbench.files import Json
from dpbench.releases.checks import check_array, check_plain, kind_of, listed


@dataclass(frozen=True)
class Fit:
    """Coefficients (p,) in the order of `Design.columns`, and the X'X (p, p), X'y (p,) they were solved from, if any.

    A model without coefficients has a `predictor` instead: features (m, p) -> predictions (m,).
    `intervals` (p, 2): the lower and upper end of each coefficient's confidence interval, if the model gives them.
    `covariance` (p, p) of the coefficients, or `draws` (s, p) from their posterior, if it gives those.
    `notes` has details of the computation (JSON-ready).
    """

    coefficients: Floats = field(default_factory=lambda: np.empty(0))
    moments: tuple[Floats, Floats] | None = None
    notes: Json = field(default_factory=dict)
    intervals: Floats | None = None
    predictor: Callable[[Floats], Floats] | None = None
    covariance: Floats | None = None
    draws: Floats | None = None

    def predict(self, X: Floats) -> Floats:
        """The predicted targets (m,) of features X (m, p)."""
        return self.predictor(X) if self.predictor is not None else X @ self.coefficients


def check_fit(fit: object, columns: int | None = None) -> Fit:
    """The fit, if it has finite coefficients (p,), p = `columns` if given, or a predictor. Raises `ContractError`."""
    if type(fit) is not Fit:
        raise ContractError(f"a model must return a dpbench.models.fit.Fit, not {kind_of(fit)}")
    p = len(fit.coefficients) if isinstance(fit.coefficients, np.ndarray) and fit.coefficients.ndim else 0
    if fit.predictor is None:
        p = columns if columns is not None else p
        check_array("the coefficients of the fit", fit.coefficients, (p,))
        if not p:
            raise ContractError("the fit must have coefficients (p,) or a predictor; it has neither")
    elif not callable(fit.predictor):
        raise ContractError(f"the predictor of the fit must be a function, not {kind_of(fit.predictor)}")
    if fit.intervals is not None:
        check_array("the intervals of the fit", fit.intervals, (p, 2), finite=False)
    if fit.covariance is not None:
        check_array("the covariance of the fit", fit.covariance, (p, p), finite=False)
    if fit.draws is not None:
        check_array("the draws of the fit", fit.draws, (*np.shape(fit.draws)[:1], p))
    if fit.moments is not None:
        xtx, xty = listed("moments", fit.moments, 2)
        check_array("X'X of the fit", xtx, (p, p), finite=False)
        check_array("X'y of the fit", xty, (p,), finite=False)
    check_plain("the notes of the fit", fit.notes)
    return fit
