"""Some queries of a workload, asked of a mixture of product distributions: their answers, and the derivatives.

**Shapes**: K components over attributes of W levels in all; `distributions` (W, K) and `logits` (W, K) have the levels
of an attribute in neighbouring rows. They may be float32, in which a step of K = 1,000 takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from .measurements import Array
from .products import BLOCK, Distributions
from .query_workload import Places


@dataclass(frozen=True)
class ProductQueries:
    """f(p) = the product of p's entries at some levels (Liu, Vietri and Wu 2021, Definition 4), for t queries.

    **Shapes**: `columns` (t, k) as `QueryWorkload.columns` gives them: places among the W levels, or W for none.
    """

    columns: Places
    levels: int

    def entries(self, distributions: Distributions) -> Distributions:
        """The entries (k, t, K) whose products the answers are, 1 for none."""
        entries: Distributions = np.concatenate([distributions, np.ones_like(distributions[:1])])[self.columns.T]
        return entries

    def answers(self, entries: Distributions) -> Array:
        """The mean of the products over the components (t,)."""
        return np.asarray(np.prod(entries, axis=0).mean(axis=1), dtype=float)

    def slope(self, entries: Distributions, slopes: Array) -> Distributions:
        """The derivative by the distributions (W, K) of what has the derivatives `slopes` (t,) by the answers."""
        weights = (slopes / entries.shape[2]).astype(entries.dtype)[:, None]
        others = np.empty_like(entries)
        for j, other in enumerate(others):
            rest = [entry for i, entry in enumerate(entries) if i != j]
            np.multiply(reduce(np.multiply, rest) if rest else 1, weights, out=other)
        found: Distributions = self._places @ others.reshape(-1, entries.shape[2])
        return found[:-1]

    def slope_at(self, distributions: Distributions, slopes: Array) -> Distributions:
        """`slope` by entries of these distributions, some queries at a time where all have over `BLOCK` entries."""
        most = max(BLOCK // (self.columns.shape[1] * distributions.shape[1]), 1)
        found = np.zeros_like(distributions)
        for i in range(0, len(slopes), most):
            some = ProductQueries(self.columns[i : i + most], self.levels)
            found += some.slope(some.entries(distributions), slopes[i : i + most])
        return found

    @cached_property
    def _places(self) -> Any:
        """Which of the entries (k t) are of each level, and of none: (W + 1, k t), ones and zeros."""
        from scipy import sparse  # a sixth of a second, which a command that reads results alone need not wait for

        levels = self.columns.T.ravel()
        ones = np.ones(levels.size, dtype=np.float32)
        return sparse.csr_array((ones, (levels, np.arange(levels.size))), (self.levels + 1, levels.size))


def softmax(logits: Distributions, sizes: Sequence[int]) -> Distributions:
    """The distributions of the logits: those of one attribute in one component sum to 1."""
    distributions = np.empty_like(logits)
    for levels in _attributes(sizes):
        part = distributions[levels]
        np.subtract(logits[levels], logits[levels].max(axis=0), out=part)
        np.exp(part, out=part)
        part /= part.sum(axis=0)
    return distributions


def softmax_slope(distributions: Distributions, slope: Distributions, sizes: Sequence[int]) -> Distributions:
    """The derivative by the logits of what has the derivative `slope` by the distributions."""
    found: Distributions = distributions * slope
    for levels in _attributes(sizes):
        found[levels] -= distributions[levels] * found[levels].sum(axis=0)
    return found


def _attributes(sizes: Sequence[int]) -> Iterator[slice]:
    """The rows of each attribute's levels."""
    return (slice(start, end) for start, end in pairwise(accumulate(sizes, initial=0)))
