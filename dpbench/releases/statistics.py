"""Sufficient statistics of least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Domain, Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table

from .checks import check_array, check_plain
from .part import Part


@dataclass(frozen=True)
class SufficientStatistics(Part):
    """Noisy X'X (p, p), symmetric but perhaps indefinite, and X'y (p,), with the standard deviations of their noise.

    `ridge` is the multiple of the identity to be added to X'X (AdaSSP's lambda; else 0).
    `yty` is a noisy y'y, where it was released too.
    """

    kind: ClassVar[str] = "statistics"
    xtx: Floats
    xty: Floats
    xtx_sd: float
    xty_sd: float
    ridge: float = 0.0
    yty: float | None = None

    @property
    def covariance(self) -> Floats:
        """The covariance (q, q) of the noise of the q = p (p + 1) / 2 + p free entries, which are independent.

        Their order: the upper triangle of X'X row by row, as `numpy.triu_indices` has it, and then X'y.
        """
        p = len(self.xty)
        return np.diag(np.repeat([self.xtx_sd**2, self.xty_sd**2], [p * (p + 1) // 2, p]))

    def check(self, domain: Domain) -> None:
        """X'X is (p, p) and X'y (p,), both finite."""
        p = len(self.xty) if isinstance(self.xty, np.ndarray) and self.xty.ndim else 0
        check_array("X'y of the release", self.xty, (p,))
        check_array("X'X of the release", self.xtx, (p, p))
        check_plain("the noise of the statistics", [self.xtx_sd, self.xty_sd, self.ridge, self.yty])

    def exact(self, train: Table, design: Design) -> SufficientStatistics:
        """X'X, X'y and y'y of the rows, without a ridge."""
        X, y = design.encode(train)
        return SufficientStatistics(*second_moments(X, y), 0.0, 0.0, yty=None if self.yty is None else float(y @ y))
