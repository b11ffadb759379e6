"""Noisy sums of the polynomial statistics of a generalised linear model (PASS-GLM)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.inference.glm_statistics import blocks, sum_statistics

from .checks import check_array, check_plain
from .part import Part

OUTSIDE = ("scale", "drop")


@dataclass(frozen=True)
class GlmStatistics(Part):
    """The statistics `values` (k,) of `inference.glm_statistics`, the `variances` (k,) of their noise, and their rows.

    The noise of the entries is independent and Gaussian. `rows`: n where it is public; else a noisy count, whose noise
    has the standard deviation `rows_sd`, else 0. `radius`, `largest_count`, `outside`: how rows were brought within the
    bounds (see `bounded_rows`); how many were outside is private.
    """

    kind: ClassVar[str] = "glm_statistics"
    family: str
    values: Floats
    variances: Floats
    rows: float
    rows_sd: float
    radius: float
    largest_count: float
    outside: str

    @property
    def features(self) -> int:
        """d, the number of features."""
        parts = len(blocks(self.family, 1)) // 2
        return round((math.sqrt(9 + 8 * len(self.values) / parts) - 3) / 2)  # of d + d (d + 1) / 2 entries

    @property
    def covariance(self) -> Floats:
        """The covariance (k, k) of the noise of `values`."""
        return np.diag(self.variances)

    def check(self, domain: Domain) -> None:
        """The numbers of values and variances are those of the family for some number of features."""
        k = blocks(self.family, self.features)[-1].stop
        check_array("the statistics of the release", self.values, (k,))
        check_array("the variances of the statistics", self.variances, (k,))
        check_plain("the rows of the statistics", [self.rows, self.rows_sd, self.radius, self.largest_count])

    def exact(self, train: Table, design: Design) -> GlmStatistics:
        """The statistics of the rows, brought within the bounds in the same way, without noise."""
        X, y = bounded_rows(train, design, self.family, self.radius, self.largest_count, self.outside)
        values = sum_statistics(X, y, self.family)
        kept = (self.radius, self.largest_count, self.outside)
        return GlmStatistics(self.family, values, np.zeros(len(values)), float(len(y)), 0.0, *kept)

    @property
    def outline(self) -> Hashable:
        """The values on which `exact` depends, apart from the rows and the design."""
        return self.family, self.radius, self.largest_count, self.outside


def bounded_rows(
    table: Table, design: Design, family: str, radius: float, largest_count: float, outside: str
) -> tuple[Floats, Floats]:
    """X (m, d) with ||x||_2 <= `radius` and y (m,) of the rows: labels -1 and +1, or counts of at most `largest_count`.

    Rows outside of the ball are scaled onto it (`outside`: "scale"), or left out ("drop"); greater counts are clipped.
    """
    X, y = design.encode(table)
    if family == "poisson":
        counts = np.array(design.domain[design.target].values)[table.column(design.target)]
        y = np.minimum(counts, largest_count)
    norms = np.linalg.norm(X, axis=1)
    if outside == "drop":
        kept = norms <= radius
        return X[kept], y[kept]
    return X * (radius / np.maximum(norms, radius))[:, None], y
