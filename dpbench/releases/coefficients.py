"""Coefficients that a mechanism estimates itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Domain, Floats

from .checks import check_array
from .part import Part


@dataclass(frozen=True)
class Coefficients(Part):
    """theta (p,) in the order of `Design.columns`, with the covariance (p, p) of its noise, if known."""

    kind: ClassVar[str] = "coefficients"
    values: Floats
    covariance: Floats | None = None

    def check(self, domain: Domain) -> None:
        """theta is (p,), and its covariance, if there is one, (p, p)."""
        shape = np.shape(self.values)[:1]
        check_array("the coefficients of the release", self.values, shape)
        if self.covariance is not None:
            check_array("the covariance of the coefficients", self.covariance, shape * 2)
