"""The queries of a workload of marginals: each is a product of indicators, one for each attribute of its marginal.

A query (Liu, Vietri and Wu 2021, Definition 1) is the part of the rows that have given levels in the attributes of one
marginal. All cells of a marginal are answered at once, so that no matrix of queries by cells of the domain is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbench.data.table import counted

from .measurements import Array, Clique, InferenceError, canonical
from .products import BLOCK

Places = npt.NDArray[np.intp]
Slab = tuple[int | slice, ...]
Step = tuple[int, int | None, int]  # depth: sum this axis out, one deeper; or write from this query on


@dataclass(frozen=True)
class QueryWorkload:
    """The cells of these marginals, one after the other, each marginal's in row-major order: m queries.

    **Shapes**: `sizes` has the levels of each of d attributes; answers are (m,), between 0 and 1, and those of one
    marginal sum to 1.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]

    def __post_init__(self) -> None:
        cliques = tuple(canonical(self.cliques, self.sizes))
        if not all(cliques) or len(set(cliques)) < len(cliques) or not cliques:
            raise InferenceError("a workload has one marginal or more, each of one attribute or more, and none twice")
        object.__setattr__(self, "cliques", cliques)

    @cached_property
    def starts(self) -> Places:
        """The first query of each marginal, and m at the end."""
        cells = [math.prod(self.sizes[name] for name in clique) for clique in self.cliques]
        return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(cells, dtype=np.intp)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def cell(self, query: int) -> dict[str, int]:
        """The level of each attribute of one query's marginal."""
        place = int(np.searchsorted(self.starts, query, side="right")) - 1
        clique = self.cliques[place]
        levels = np.unravel_index(query - int(self.starts[place]), [self.sizes[name] for name in clique])
        return {name: int(level) for name, level in zip(clique, levels, strict=True)}

    def columns(self, queries: Places) -> Places:
        """The levels of each query (t, k), as places among the W levels of all attributes.

        k is that of the largest marginal; the queries of a smaller one are filled up with W, where no level stands.
        """
        widths = list(self.sizes.values())
        first = dict(zip(self.sizes, np.cumsum([0, *widths[:-1]]), strict=True))
        found = np.full((len(queries), max(map(len, self.cliques))), sum(widths), dtype=np.intp)
        marginals = np.searchsorted(self.starts, queries, side="right") - 1
        for place in np.unique(marginals):
            clique, at = self.cliques[place], np.flatnonzero(marginals == place)
            levels = np.unravel_index(queries[at] - self.starts[place], [self.sizes[name] for name in clique])
            for k, name in enumerate(clique):
                found[at, k] = first[name] + levels[k]
        return found

    def overlap(self, query: int, other: int) -> Slab | None:
        """The index, into a table over the whole domain, of the cells of both queries; None if there are none."""
        one, two = self.cell(query), self.cell(other)
        if any(one.get(name, level) != level for name, level in two.items()):
            return None
        levels = one | two
        return tuple(levels.get(name, slice(None)) for name in self.sizes)

    def tables(self, answers: Array) -> dict[Clique, Array]:
        """The answers (m,) as one table per marginal, of the sizes of its attributes."""
        parts = np.split(answers, self.starts[1:-1])
        shapes = ([self.sizes[name] for name in clique] for clique in self.cliques)
        return {clique: part.reshape(shape) for clique, part, shape in zip(self.cliques, parts, shapes, strict=True)}

    def of_rows(self, codes: npt.NDArray[np.integer[Any]], distribution: Array | None = None) -> Array:
        """The answers of rows (n, d), n > 0: the exact counts of the cells divided by n, or sums of weights (n,)."""
        tables = counted(codes, self.sizes, self.cliques, distribution)
        answers = np.concatenate([np.zeros(0), *(tables[clique].ravel() for clique in self.cliques)])
        if distribution is None:
            answers /= len(codes)
        return answers

    def of_histogram(self, table: Array) -> Array:
        """The answers of a distribution over the whole domain, of the shape of all sizes: sums over the other axes.

        Marginals share the partial sums that they have in common.
        """
        answers, tables = np.empty(len(self)), [table]
        for depth, axis, start in self._sums:
            if axis is None:
                answers[start : start + tables[depth].size] = tables[depth].ravel()
            else:
                del tables[depth + 1 :]
                tables.append(tables[depth].sum(axis=axis))
        return answers

    @cached_property
    def _sums(self) -> list[Step]:
        """The steps of `of_histogram`."""
        place = {name: j for j, name in enumerate(self.sizes)}
        wanted = [
            (frozenset(place[name] for name in clique), int(start))
            for clique, start in zip(self.cliques, self.starts, strict=False)
        ]
        return list(_sum_out(0, dict(enumerate(self.sizes.values())), wanted))

    def of_products(self, probabilities: Array) -> Array:
        """The answers of a mixture of K product distributions of the same weight.

        **Shapes**: `probabilities` (K, W), the levels of each attribute in neighbouring columns, in the order of
        `sizes`. Marginals that differ in their first attribute alone are one matrix product; more, where that would
        take temporaries of over `BLOCK` numbers.
        """
        K, answers, distributions = len(probabilities), np.empty(len(self)), np.ascontiguousarray(probabilities.T)
        weight, ends = np.full((1, K), 1 / K, dtype=distributions.dtype), np.cumsum(list(self.sizes.values()))[:-1]
        distributions_of, weighted = (
            dict(zip(self.sizes, np.split(distribution, ends), strict=True))
            for distribution in (distributions, weight * distributions)
        )
        order = sorted(range(len(self.cliques)), key=lambda i: self.cliques[i][1:])
        for tail, group in groupby(order, key=lambda i: self.cliques[i][1:]):
            places, start = list(group), 0
            firsts = [distributions_of[self.cliques[i][0]] for i in places]
            sizes = [len(distribution) for distribution in firsts]
            others = [weighted[tail[0]], *(distributions_of[name] for name in tail[1:])] if tail else [weight]
            for parts in _blocks(others, BLOCK // max(K, sum(sizes))):
                distribution = parts[0]
                for one in parts[1:]:
                    distribution = (distribution[:, None] * one).reshape(-1, K)
                found = np.concatenate(firsts) @ distribution.T
                for i, part in zip(places, np.split(found, np.cumsum(sizes)[:-1]), strict=True):
                    table = answers[self.starts[i] : self.starts[i + 1]].reshape(len(part), -1)
                    table[:, start : start + len(distribution)] = part
                start += len(distribution)
        return answers


def _blocks(distributions: Sequence[Array], most: int) -> Iterator[Sequence[Array]]:
    """Parts of the distributions (levels, K), which together have all combinations of their levels, in row-major order.

    A part has `most` combinations, or one.
    """
    several = [j for j, distribution in enumerate(distributions) if len(distribution) > 1]
    if not several or math.prod(map(len, distributions)) <= most:
        yield distributions
    else:
        j = several[0]
        for half in np.array_split(distributions[j], 2):
            yield from _blocks([*distributions[:j], half, *distributions[j + 1 :]], most)


def _sum_out(depth: int, sizes: dict[int, int], wanted: Sequence[tuple[frozenset[int], int]]) -> Iterator[Step]:
    """The steps to the marginals that are wanted, by their axes and their first query, from a table of these axes.

    The longest axis that not all of them have divides them: those without it need its sum alone.
    """
    free = [axis for axis in sizes if not all(axis in kept for kept, _ in wanted)]
    if not free:
        yield from ((depth, None, start) for _, start in wanted)
        return
    axis = max(free, key=sizes.__getitem__)
    yield depth, list(sizes).index(axis), 0
    without = [one for one in wanted if axis not in one[0]]
    yield from _sum_out(depth + 1, {a: size for a, size in sizes.items() if a != axis}, without)
    if having := [one for one in wanted if axis in one[0]]:
        yield from _sum_out(depth, sizes, having)
