"""`Fit`: what a model makes of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpbench.data.domain import Floats


@dataclass(frozen=True)
class Fit:
    """Coefficients (p,) in the order of `Design.columns`, and the X'X (p, p), X'y (p,) they were solved from, if any.

    `intervals` (p, 2): the lower and upper end of each coefficient's confidence interval, if the model gives them.
    `notes` says how all was found (JSON-ready).
    """

    coefficients: Floats
    moments: tuple[Floats, Floats] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    intervals: Floats | None = None
