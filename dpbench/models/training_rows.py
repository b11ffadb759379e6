"""The rows that a model is trained on: those of a release, or rows drawn from its bins."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError
from dpbench.releases import BinSums, Release, SyntheticRows


def training_rows(release: Release, design: Design, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """X (m, p) and y (m,) as `design` encodes them: the released rows, or one draw of `bin_rows`.

    Raises `NoEstimateError` if there are none.
    """
    rows = release.get(SyntheticRows)
    X, y = bin_rows(release[BinSums], rng) if rows is None else design.encode(rows.table)
    if not len(y):
        raise NoEstimateError("the release has no rows to train on")
    return X, y


def labelled_rows(
    release: Release, design: Design, rng: np.random.Generator, *, share: float = 1.0
) -> tuple[Floats, Floats]:
    """`training_rows` for a classifier, whose y has at least two levels. A random fraction `share` of the rows.

    A row of bins has a numeric y: it becomes +1 with probability (1 + y) / 2, clipped to [0, 1], so that labels have
    the mean of y in [-1, 1].

    Raises `UserError` for a share outside (0, 1], `NoEstimateError` if all rows have one level.
    """
    if not 0 < share <= 1:
        raise UserError(f"share, the fraction of the released rows to train on, must be in (0, 1], not {share:g}")
    X, y = training_rows(release, design, rng)
    if release.get(SyntheticRows) is None:
        y = np.where(2 * rng.random(len(y)) - 1 < y, 1.0, -1.0)
    if share < 1:
        kept = rng.permutation(len(y))[: max(round(share * len(y)), 1)]
        X, y = X[kept], y[kept]
    if (y == y[0]).all():
        raise NoEstimateError(f"all rows to train on ({len(y)}) have the same level of {design.target!r}")
    return X, y


def bin_rows(bins: BinSums, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rows X (m, p) and y (m,), as many in each bin as its count, whose sums by bin are the released ones exactly.

    **Source** BinAgg, Algorithm 3: c rows (s + xi_i) / c in a bin, xi_i ~ N(0, c sd^2), sd that of the noise of s, and
    y likewise.
    **Privacy** Post-processing: the rows are drawn given the released sums, at no further cost.
    **Shapes** X, y in the units of the design that the release was made with; rows are in the order of the bins, and
    may lie outside of them, as in the paper.
    ***Departures** The distribution is Algorithm 3's. There the rows of a bin are independent N(s / c, sd^2 / c). Their
    sum is N(s, sd^2), the distribution of the released s~ (Corollary 3.1); and of independent Gaussian rows of equal
    variance, the differences from their mean are independent of the mean and have a distribution free of s. So drawing
    s~ first, and then the rows as s~ / c plus independent N(0, sd^2 / c) minus their mean in the bin, gives Algorithm
    3's rows.
    """
    c = bins.counts
    start = np.cumsum(c) - c
    centre = np.column_stack([bins.sums, bins.targets]) / c[:, None]
    spread = np.column_stack([bins.sums_sd, np.full(len(c), bins.targets_sd)]) / np.sqrt(c)[:, None]
    rows = rng.normal(size=(int(c.sum()), centre.shape[1])) * np.repeat(spread, c, axis=0)
    rows += np.repeat(centre - np.add.reduceat(rows, start, axis=0) / c[:, None], c, axis=0)
    return rows[:, :-1], rows[:, -1]
