"""`Fit`: what a model makes of a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbench.data.domain import Floats


@dataclass(frozen=True)
class Fit:
    """Coefficients (p,) in the order of `Design.columns`, and the X'X (p, p), X'y (p,) they were solved from, if any.

    A model without coefficients has a `predictor` instead: features (m, p) -> predictions (m,).
    `intervals` (p, 2): the lower and upper end of each coefficient's confidence interval, if the model gives them.
    `notes` says how all was found (JSON-ready).
    """

    coefficients: Floats = field(default_factory=lambda: np.empty(0))
    moments: tuple[Floats, Floats] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    intervals: Floats | None = None
    predictor: Callable[[Floats], Floats] | None = None

    def predict(self, X: Floats) -> Floats:
        """The predicted targets (m,) of features X (m, p)."""
        return self.predictor(X) if self.predictor is not None else X @ self.coefficients
