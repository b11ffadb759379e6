"""Marginals of many sets of attributes from one calibrated junction tree, by eliminating the others.

A `Forest` is a tree of marginals in which the attributes that two neighbours share make its two sides independent. An
attribute is eliminated by summing it out of the one table that holds it, or by multiplying the tables that share it.
Sets of attributes are worked on together: first what none of them has is eliminated, then they are divided by an
attribute that only some of them have. What is left for a single set is a forest over its own attributes, whose value
at a cell is a product of marginals over separators: the whole table of the set is never made.

**Source**: variable elimination on a calibrated tree (Koller and Friedman 2009, sections 9.3 and 10.3.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, or_

import numpy as np

from .blocks import spread, summed_axes
from .counts import Cells, Counts
from .measurements import Array
from .oracle import Oracle
from .sums import summed
from .trees import bits, cells

TINY = 1e-290  # a count: below it nothing is divided
MOST_CELLS = 2_000_000  # of a table that several sets share (16 MB): a larger one waits until less of it is needed


class Forest:
    """Marginals of one distribution: node k has `tables[k]` over the attributes `scopes[k]`, axes ascending.

    A set of attributes is the bits of an integer. `near[k]`: the neighbours of node k.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        total: float,
        scopes: dict[int, int],
        tables: dict[int, Array],
        near: dict[int, frozenset[int]],
    ) -> None:
        self.shape, self.total = shape, total
        self.scopes, self.tables, self.near = scopes, tables, near

    @classmethod
    def of(cls, oracle: Oracle, total: float) -> Forest:
        """The maximal cliques of a calibrated junction tree."""
        near: list[set[int]] = [set() for _ in oracle.tree.cliques]
        for k, parent in enumerate(oracle.tree.parents):
            if parent >= 0:
                near[k].add(parent)
                near[parent].add(k)
        nodes = dict(enumerate(oracle.tree.cliques))
        return cls(
            oracle.shape,
            total,
            nodes,
            {k: oracle.blocks[k].belief() for k in nodes},
            dict(enumerate(map(frozenset, near))),
        )

    def without(self, gone: int, most: float = math.inf) -> Forest:
        """The forest of the other attributes, and of those that only a table of more than `most` cells eliminates."""
        forest = Forest(self.shape, self.total, dict(self.scopes), dict(self.tables), dict(self.near))
        forest._sum_out(gone)
        while pair := forest._next_pair(gone):
            if forest._merged_cells(*pair, gone) > most:
                return forest
            forest._merge(*pair, gone)
            forest._sum_out(gone)
        return forest

    def values(self, counts: Counts, at: Cells) -> Array:
        """The counts (z,) at these cells of the marginal over all attributes of the forest."""
        if len(self.scopes) == 1:
            (table,) = self.tables.values()
            return table.take(at.flat)
        result, parts = np.full(len(at.rows), self.total), len(self.scopes)
        for k, scope in self.scopes.items():
            result *= self.tables[k].take(counts.places(scope)[at.rows])
            for j in self.near[k]:
                if j < k:
                    shared, parts = scope & self.scopes[j], parts - 1
                    below = self._onto(k, j, shared).take(counts.places(shared)[at.rows])
                    np.divide(result, below, out=result, where=below > 0)  # elsewhere the result is 0 already
        result *= self.total**-parts
        return result

    def _around(self, k: int) -> int:
        return reduce(or_, (self.scopes[j] for j in self.near[k]), 0)

    def _onto(self, k: int, j: int, shared: int) -> Array:
        """The marginal over what two neighbours share."""
        k = min(k, j, key=lambda n: self.tables[n].size)
        axes = summed_axes(self.scopes[k], shared)
        return summed(self.tables[k], axes) if axes else self.tables[k]

    def _sum_out(self, gone: int) -> None:
        """Eliminate what one node alone holds; a node within a neighbour is left to it."""
        changed = [k for k, scope in self.scopes.items() if scope & gone]
        while changed:
            k = changed.pop()
            alone = self.scopes[k] & gone & ~self._around(k)
            if not alone:
                continue
            kept = self.scopes[k] & ~alone
            near = self.near[k]
            homes = [j for j in near if kept & ~self.scopes[j] == 0]
            if kept and not homes:
                self.tables[k] = summed(self.tables[k], summed_axes(self.scopes[k], kept))
                self.scopes[k] = kept
                continue
            del self.scopes[k], self.tables[k], self.near[k]
            for j in near:  # one of the neighbours has all that is left, and takes the others over
                self.near[j] = (self.near[j] | (near if j == homes[0] else {homes[0]})) - {j, k}
                if self.scopes[j] & gone and j not in changed:
                    changed.append(j)

    def _next_pair(self, gone: int) -> tuple[int, int] | None:
        """The neighbours that share an attribute to be eliminated and make the smallest table together."""
        pairs = [
            (k, j) for k, near in self.near.items() for j in near if k < j and self.scopes[k] & self.scopes[j] & gone
        ]
        return min(pairs, key=lambda pair: self._merged_cells(pair[0], pair[1], gone), default=None)

    def _over(self, k: int, j: int, gone: int) -> int:
        """What is to be eliminated and only these two neighbours hold."""
        others = reduce(or_, (self.scopes[n] for n in self.near[k] | self.near[j] if n not in (k, j)), 0)
        return self.scopes[k] & self.scopes[j] & gone & ~others

    def _merged_cells(self, k: int, j: int, gone: int) -> int:
        return cells((self.scopes[k] | self.scopes[j]) & ~self._over(k, j, gone), self.shape)

    def _merge(self, k: int, j: int, gone: int) -> None:
        """One node of two neighbours, without what is to be eliminated and only they hold."""
        a, b, over = self.scopes[k], self.scopes[j], self._over(k, j, gone)
        kept, left, right = bits(a & b & ~over), bits(a & ~b), bits(b & ~a)
        below = np.maximum(self._onto(k, j, a & b), TINY)  # 0 / TINY is 0
        one, other = self.tables[k], self.tables[j]
        if one.size < other.size:
            one = one / spread(below, a & b, a)
        else:
            other = other / spread(below, a & b, b)
        table = self._matrix(one, a, kept, left, bits(over)) @ self._matrix(other, b, kept, bits(over), right)
        names = (*kept, *left, *right)
        self.scopes[k] = scope = (a | b) & ~over
        self.tables[k] = table.reshape([self.shape[i] for i in names]).transpose([names.index(i) for i in bits(scope)])
        for n in self.near[j] - {k}:
            self.near[n] = self.near[n] - {j} | {k}
        self.near[k] = (self.near[k] | self.near[j]) - {k, j}
        del self.scopes[j], self.tables[j], self.near[j]

    def _matrix(self, table: Array, scope: int, *groups: Sequence[int]) -> Array:
        """The table with one axis for each of three groups of its attributes."""
        axes = bits(scope)
        order = [axes.index(i) for group in groups for i in group]
        return table.transpose(order).reshape([cells(sum(1 << i for i in group), self.shape) for group in groups])


def forests(oracle: Oracle, total: float, masks: Sequence[int]) -> Iterator[tuple[int, Forest]]:
    """Each set of attributes (none empty) with the forest over it.

    The sets are divided by the attributes from the leaves of the tree to its roots, the largest of a clique first.
    """
    tree, shape = oracle.tree, oracle.shape
    order = [
        i for k in tree.order for i in sorted(bits(tree.cliques[k] & ~tree.separators[k]), key=lambda i: -shape[i])
    ]
    work = [(Forest.of(oracle, total), list(dict.fromkeys(masks)))] if masks else []
    while work:
        forest, asked = work.pop()
        union, common = reduce(or_, asked), reduce(and_, asked)
        held = reduce(or_, forest.scopes.values())
        if held != union:
            forest = forest.without(held & ~union, math.inf if union == common else MOST_CELLS)
        if union == common:
            yield union, forest
            continue
        split = next(1 << i for i in order if union & ~common & 1 << i)
        work += [(forest, [m for m in asked if m & split]), (forest, [m for m in asked if not m & split])]
