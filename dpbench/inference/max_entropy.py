"""The distributions of most entropy given some marginals: an exponential family, on a table over the whole domain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique
from .residuals import Residuals


@dataclass(frozen=True)
class MaxEntropy:
    """p(x) in proportion to exp(theta' b(x)), b the canonical queries of the marginals on `cliques`.

    b has, for each subset A of a clique, the products of the contrasts of A's attributes: for an attribute of m levels
    these are m - 1 orthonormal vectors that sum to 0 (`contrasts`). So b is of full rank: each p has one theta.

    A table over the domain is a matrix, its rows the levels of the first attributes and its columns those of the
    others: all marginals are two matrix products.

    **Shapes**: theta, b (k,); p (rows, columns).
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]

    @cached_property
    def subsets(self) -> tuple[Clique, ...]:
        """The subsets A whose contrasts are in b, smaller ones first."""
        every = {r for clique in self.cliques for k in range(len(clique)) for r in combinations(clique, k + 1)}
        place = list(self.sizes).index
        kept = [r for r in every if all(self.sizes[name] > 1 for name in r)]
        return tuple(sorted(kept, key=lambda r: (len(r), [place(name) for name in r])))

    @cached_property
    def starts(self) -> list[int]:
        """Where the parameters of each A start, and k at the end."""
        counts = [math.prod(self.sizes[name] - 1 for name in r) for r in self.subsets]
        return [0, *np.cumsum(counts, dtype=int).tolist()]

    @property
    def parameters(self) -> int:
        """k."""
        return self.starts[-1]

    @cached_property
    def halves(self) -> tuple[Clique, Clique]:
        """The attributes of the rows and of the columns, cut where the two have about as many levels."""
        names, sizes = tuple(self.sizes), list(self.sizes.values())
        cut = min(range(len(names) + 1), key=lambda i: max(math.prod(sizes[:i]), math.prod(sizes[i:])))
        return names[:cut], names[cut:]

    @cached_property
    def _features(self) -> tuple[tuple[Array, dict[Clique, slice]], ...]:
        """For rows and for columns: the parts of b that they have (levels, .), and where that of each subset is."""
        found = []
        for half in self.halves:
            parts = list(dict.fromkeys(tuple(name for name in r if name in half) for r in ((), *self.subsets)))
            blocks = [self._products(half, r) for r in parts]
            ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
            places = {r: slice(end - block.shape[1], end) for r, block, end in zip(parts, blocks, ends, strict=True)}
            found.append((np.concatenate(blocks, axis=1), places))
        return tuple(found)

    def _products(self, half: Clique, r: Clique) -> Array:
        """The products of r's contrasts at each combination of levels of these attributes."""
        factors = (contrasts(self.sizes[name]).T if name in r else np.ones((self.sizes[name], 1)) for name in half)
        return kronecker(factors)

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Where each parameter is in the flattened matrix of products of row and column features (k,)."""
        (left, rows), (right, columns) = self._features
        every = np.arange(left.shape[1] * right.shape[1]).reshape(left.shape[1], right.shape[1])
        split = [[tuple(name for name in r if name in half) for half in self.halves] for r in self.subsets]
        found = [every[rows[a], columns[b]].ravel() for a, b in split]
        return np.concatenate([np.zeros(0, dtype=np.intp), *found])

    def logits(self, theta: Array) -> Array:
        """theta' b(x) of each x."""
        (rows, _), (columns, _) = self._features
        weights = np.zeros(rows.shape[1] * columns.shape[1])
        weights[self._places] = theta
        table: Array = rows @ weights.reshape(rows.shape[1], -1) @ columns.T
        return table

    def distribution(self, theta: Array) -> Array:
        """p."""
        table = self.logits(theta)
        table -= table.max()
        np.exp(table, out=table)
        table /= table.sum()
        return table

    def mean(self, p: Array) -> Array:
        """The sum of p b (k,): E b of a distribution."""
        (rows, _), (columns, _) = self._features
        found: Array = (rows.T @ p @ columns).ravel()[self._places]
        return found

    def covariance(self, p: Array) -> Array:
        """Cov b (k, k), from the marginals of the unions of two A."""
        found, mean = np.empty((self.parameters,) * 2), self.mean(p)
        maps = [kronecker(contrasts(self.sizes[name]) for name in r) for r in self.subsets]
        own = [slice(*ends) for ends in zip(self.starts, self.starts[1:], strict=False)]
        table = p.reshape(tuple(self.sizes.values()))
        for (i, a), (j, b) in product(enumerate(self.subsets), repeat=2):
            if j <= i:
                found[own[i], own[j]] = maps[i] @ self._joint(table, a, b) @ maps[j].T
                found[own[j], own[i]] = found[own[i], own[j]].T
        covariance: Array = found - np.outer(mean, mean)
        return covariance

    def _joint(self, table: Array, a: Clique, b: Clique) -> Array:
        """P(x_a, x_b), (cells of a, cells of b)."""
        union = [name for name in self.sizes if name in a or name in b]
        shape = [self.sizes[name] for name in union]
        levels = dict(zip(union, np.indices(shape).reshape(len(shape), -1), strict=True))
        cells = [[self.sizes[name] for name in r] for r in (a, b)]
        found = np.zeros([math.prod(one) for one in cells])
        places = (np.ravel_multi_index([levels[x] for x in r], one) for r, one in zip((a, b), cells, strict=True))
        found[tuple(places)] = table.sum(axis=tuple(i for i, x in enumerate(self.sizes) if x not in union)).ravel()
        return found

    def statistics(self, residuals: Residuals) -> tuple[Array, Array]:
        """The noisy sums of b over the rows, and the variances of their independent noise, both (k,)."""
        values, variances = [np.zeros(0)], [np.zeros(0)]
        for r in self.subsets:
            table = residuals.values[r]
            for name in r:  # the first axis goes, and its contrasts become the last one
                table = np.tensordot(table, contrasts(self.sizes[name]), axes=(0, 1))
            values.append(table.ravel())
            variances.append(np.full(table.size, residuals.variances[r]))
        return np.concatenate(values), np.concatenate(variances)


def kronecker(factors: Iterable[Array]) -> Array:
    """The Kronecker product of these matrices; (1, 1) of none."""
    found: Array = np.ones((1, 1))
    for factor in factors:
        found = np.kron(found, factor).astype(np.float64, copy=False)
    return found


def contrasts(size: int) -> Array:
    """Orthonormal vectors that sum to 0 (size - 1, size): Helmert's.

    >>> (contrasts(3) * np.sqrt([[2], [6]])).round(9).tolist()
    [[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]
    """
    rows = np.tril(np.ones((size - 1, size)))
    rows[np.arange(size - 1), np.arange(1, size)] = -np.arange(1, size)
    found: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found
