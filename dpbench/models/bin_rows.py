"""Synthetic rows of a release of bins (Paper 1, Algorithm 3)."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.mechanisms.release import BinSums


def bin_rows(bins: BinSums, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rows X (m, p) and y (m,), as many in each bin as its count, whose sums by bin are the released ones exactly.

    **Source** Paper 1, Algorithm 3: c rows (s + xi_i) / c in a bin, xi_i ~ N(0, c sd^2), sd that of the noise of s, and
    y likewise.
    **Privacy** Post-processing: the rows are drawn given the released sums, and no noise is paid for again.
    **Shapes** X, y in the units of the design that the release was made with; rows are in the order of the bins, and
    may lie outside of them, as in the paper.
    **Departures** The law is Algorithm 3's. There the rows of a bin are independent N(s / c, sd^2 / c). Their sum is
    N(s, sd^2), the law of the released s~ (Corollary 3.1); and of independent Gaussian rows of equal variance, the
    differences from their mean are independent of the mean and have a law free of s. So to draw s~ first, and then the
    rows as s~ / c plus independent N(0, sd^2 / c) less their mean in the bin, is to draw Algorithm 3's rows.
    """
    c = bins.counts
    start = np.cumsum(c) - c
    centre = np.column_stack([bins.sums, bins.targets]) / c[:, None]
    spread = np.column_stack([bins.sums_sd, np.full(len(c), bins.targets_sd)]) / np.sqrt(c)[:, None]
    rows = rng.normal(size=(int(c.sum()), centre.shape[1])) * np.repeat(spread, c, axis=0)
    rows += np.repeat(centre - np.add.reduceat(rows, start, axis=0) / c[:, None], c, axis=0)
    return rows[:, :-1], rows[:, -1]
