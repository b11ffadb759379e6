"""Noisy counts and sums of the rows in bins."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Codes, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table

from .checks import check_array, check_plain
from .part import Part


@dataclass(frozen=True)
class BinSums(Part):
    """K bins of the box of a `Design`'s features, with noisy counts and sums of the rows in each (BinAgg, Alg. 1, 2).

    `lower`, `upper` (K, p): the edges. `counts` (K,) int64. `sums` (K, p) of x and `targets` (K,) of y, with the
    standard deviations of their noise given the counts, `sums_sd` (K, p) and `targets_sd`.
    """

    kind: ClassVar[str] = "bins"
    lower: Floats
    upper: Floats
    counts: Codes
    sums: Floats
    targets: Floats
    sums_sd: Floats
    targets_sd: float

    def check(self, domain: Domain) -> None:
        """All arrays are of K bins, and of p features where they belong to features."""
        K, p = np.shape(self.sums) if np.ndim(self.sums) == 2 else (0, 0)
        for name in ("lower", "upper", "sums", "sums_sd"):
            check_array(f"{name} of the bins", getattr(self, name), (K, p), finite=False)
        for name in ("counts", "targets"):
            check_array(f"{name} of the bins", getattr(self, name), (K,), finite=False)
        check_plain("targets_sd of the bins", self.targets_sd)

    def exact(self, train: Table, design: Design) -> BinSums:
        """The sums of the rows in the same bins, without those that are empty.

        A row is in the bin with lower <= x < upper, and in the last one at the top of the box.
        """
        X, y = design.encode(train)
        X, y = np.clip(X, *design.box, out=X), np.clip(y, *design.target_range)
        rows = self._rows_inside(X, design.box)
        kept = np.array([len(inside) > 0 for inside in rows], dtype=bool)
        rows, lower, upper = [inside for inside in rows if len(inside)], self.lower[kept], self.upper[kept]
        counts = np.array([len(inside) for inside in rows], dtype=np.int64)
        sums = np.array([X[inside].sum(axis=0) for inside in rows]).reshape(lower.shape)
        targets = np.array([y[inside].sum() for inside in rows], dtype=float)
        return BinSums(lower, upper, counts, sums, targets, np.zeros(lower.shape), 0.0)

    def _rows_inside(self, X: Floats, box: tuple[Floats, Floats]) -> list[Codes]:
        """The places of the rows in each bin. Bins are leaves of a tree: few features bound one, the same for many."""
        bounding = (self.lower > box[0]) | (self.upper < box[1])
        upper = np.where(self.upper < box[1], self.upper, np.inf)
        features = np.argsort(-bounding.sum(axis=0), kind="stable")

        @lru_cache(maxsize=128)
        def inside(bounds: tuple[tuple[int, float, float], ...]) -> Codes:
            if not bounds:
                return np.arange(len(X))
            rows, (j, low, high) = inside(bounds[:-1]), bounds[-1]
            x = X[rows, j]
            kept: Codes = rows[(low <= x) & (x < high)]
            return kept

        return [
            inside(tuple((j, self.lower[k, j], upper[k, j]) for j in features if bounding[k, j]))
            for k in range(len(bounding))
        ]

    @property
    def outline(self) -> Hashable:
        """The edges."""
        return self.lower.tobytes(), self.upper.tobytes()
