"""Marginals of a Markov random field from its potentials: one sweep up and one down a junction tree.

**Source**: Hugin propagation (Lauritzen and Spiegelhalter 1988; Koller and Friedman 2009, section 10.3), with
logarithms of potentials and messages going up, and conditional tables times marginals going down.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from .blocks import MOST_FAILURES, Factor, Triple
from .layout import make_block
from .measurements import Array
from .trees import CliqueTree, bits


class Oracle:
    """Buffers and views for one tree and one list of factors; `calibrate` fills them.

    `blocks[k]` holds the marginal of maximal clique k at the last calibration.
    **Shapes**: `theta` and the marginals are flat, factor after factor, each in C order over its ascending
    axes; factor f occupies `spans[f]`.
    """

    def __init__(self, shape: tuple[int, ...], tree: CliqueTree, factors: Sequence[int]) -> None:
        self.shape, self.tree, self.factors = shape, tree, tuple(factors)
        dims = [tuple(shape[i] for i in bits(mask)) for mask in factors]
        counts = np.array([math.prod(d) for d in dims], dtype=np.intp)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.size = int(starts[-1])
        self.spans = [slice(int(s), int(e)) for s, e in itertools.pairwise(starts)]
        self._marginals = np.empty(self.size)
        self._theta = np.empty(self.size)
        self._now: tuple[float, float] | None = None  # log of the sum, and total, of the last calibration
        homes = [self._home(mask) for mask in factors]
        children: list[list[int]] = [[] for _ in tree.cliques]
        for k, parent in enumerate(tree.parents):
            if parent >= 0:
                children[parent].append(k)
        self.blocks = []
        for k, clique in enumerate(tree.cliques):
            masks = [factors[f] for f in range(len(factors)) if homes[f] == k]
            masks += [tree.separators[c] for c in (*children[k], k)]
            self.blocks.append(make_block(clique, shape, [m for m in masks if m]))
        for f, mask in enumerate(factors):
            self.blocks[homes[f]].attach(mask, Factor(self._theta[self.spans[f]].reshape(dims[f])))
            self.blocks[homes[f]].emit(mask, self._marginals[self.spans[f]].reshape(dims[f]))
        self._totals: list[Array] = []
        self._sums: list[Factor] = []
        for k, parent in enumerate(tree.parents):
            separator = tree.separators[k]
            logs, marginal = (np.empty([shape[i] for i in bits(separator)]) for _ in range(2))
            message = Factor(logs)
            self.blocks[k].link(separator, message, marginal)
            if parent >= 0:
                self.blocks[parent].attach(separator, message)
                self.blocks[parent].emit(separator, marginal)
            else:
                self._sums.append(message)
                self._totals.append(marginal)

    @property
    def filled(self) -> list[int]:
        """Places of the maximal cliques whose split table was filled after all, at the last calibration."""
        return [k for k, block in enumerate(self.blocks) if isinstance(block, Triple) and block.filled]

    def fill(self, places: Sequence[int]) -> None:
        """Fill the tables at these places from now on: with them, a calibration gives the same bits again."""
        self._now = None
        for k in places:
            block = self.blocks[k]
            if isinstance(block, Triple):
                block.fill(MOST_FAILURES)

    def _home(self, mask: int) -> int:
        fit = [k for k, c in enumerate(self.tree.cliques) if mask & ~c == 0]
        return min(fit, key=lambda k: (self.tree.cliques[k].bit_count(), k))

    def calibrate(self, theta: Array, total: float) -> tuple[float, Array]:
        """log of the sum of exp(theta) over the whole domain, and the marginals of the factors.

        **Shapes**: theta (size,), result (size,); every factor's marginal sums to `total`. The result is a
        buffer that the next call overwrites.
        """
        if self._now is not None and total == self._now[1] and np.array_equal(theta, self._theta):
            return self._now[0], self._marginals
        np.copyto(self._theta, theta)
        for place in self._totals:
            place[...] = total
        for block in self.blocks:
            block.reset()
        failed = self._sweep()
        while failed >= 0:
            self.blocks[failed].fill()
            failed = self._sweep()
        for message in self._sums:
            message.make_logs()
        self._now = float(sum(float(message.logs) for message in self._sums)), total
        return self._now[0], self._marginals

    def _sweep(self) -> int:
        """Up and down the tree; the place of a block that could not do it, or -1."""
        for k in self.tree.order:
            self.blocks[k].collect()
        for k in reversed(self.tree.order):
            if not self.blocks[k].distribute():
                return k
        return -1

    def split(self, flat: Array) -> list[Array]:
        """Views of a flat array of all factors' cells, one table per factor."""
        dims = [[self.shape[i] for i in bits(mask)] for mask in self.factors]
        return [flat[s].reshape(d) for s, d in zip(self.spans, dims, strict=True)]
