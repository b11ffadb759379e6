"""Rows that are brought to given marginals by mutations and crossovers of single cells (Private-GSD)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique
from .sampling import rounded_column

Codes = npt.NDArray[np.int64]
WINDOW = 200  # generations over which the loss is compared


@dataclass(frozen=True)
class Evolved:
    """The best rows (rows, d), the squared error of their marginals as parts of the rows, and the generations."""

    codes: Codes
    loss: float
    generations: int


def genetic(
    sizes: Mapping[str, int],
    targets: Mapping[Clique, Array],
    start: Codes,
    rng: np.random.Generator,
    *,
    population: int,
    generations: int,
    tolerance: float,
) -> Evolved:
    """Lower the squared error of the marginals of `start` (rows, d), a cell of a few rows a generation.

    A candidate is the best rows so far with one other cell: half of the `population` are mutations, whose cell has a
    random level, the others crossovers, whose cell is that of another row. What a candidate changes is known from the
    cells of the marginals that its row leaves and enters. All those are kept that lower the error and share none of
    these cells with a better one, so that what they lower adds up. It ends after `generations`, or where 200 of them
    have lowered the error by less than `tolerance` of it.

    **Shapes** `targets`: a table for each clique, of the shape of its attributes; only its shares matter.
    """
    cells = _Cells(sizes, tuple(targets))
    codes, rows = start.copy(), len(start)
    places = cells.of_rows(codes)
    total = [max(float(table.sum()), 1e-300) for table in targets.values()]
    wanted = [table.ravel() * (rows / one) for table, one in zip(targets.values(), total, strict=True)]
    error = np.bincount(places.ravel(), minlength=cells.count) - np.concatenate([*wanted, np.zeros(1)])
    error[-1] = 0.0  # the cell of no marginal
    loss = before = float(error @ error)
    done = 0
    for done in range(1, generations + 1):
        i, j = rng.integers(0, rows, population), rng.integers(0, len(cells.levels), population)
        new = rng.integers(0, cells.levels[j])
        half = population // 2
        new[:half] = codes[rng.integers(0, rows, half), j[:half]]
        old_cells = places[i[:, None], cells.of_attribute[j]]
        new_cells = old_cells + (new - codes[i, j])[:, None] * cells.steps[j]
        moved = new_cells != old_cells
        change = np.where(moved, 2 * (error[new_cells] - error[old_cells]) + 2, 0.0).sum(axis=1)
        kept = _apart(change, np.concatenate([old_cells, new_cells], axis=1), np.tile(moved, 2), cells.count)
        np.subtract.at(error, old_cells[kept][moved[kept]], 1)
        np.add.at(error, new_cells[kept][moved[kept]], 1)
        codes[i[kept], j[kept]] = new[kept]
        places[i[kept]] = cells.of_rows(codes[i[kept]])
        loss += float(change[kept].sum())
        if done % WINDOW == 0:
            if before - loss < tolerance * before:
                break
            before = loss
    return Evolved(codes, loss / rows**2, done)


def _apart(change: Array, cells: Codes, moved: npt.NDArray[np.bool_], count: int) -> Codes:
    """Candidates that lower the loss and touch no cell that a better one touches."""
    better = np.flatnonzero(change < 0)
    better = better[np.argsort(-change[better], kind="stable")]  # the best last: it overwrites the others
    touched = np.where(moved[better], cells[better], count)
    owner = np.empty(count + 1, dtype=np.int64)
    ranks = np.broadcast_to(np.arange(len(better))[:, None], touched.shape)
    owner[touched.ravel()] = ranks.ravel()
    alone: Codes = better[((owner[touched] == ranks) | (touched == count)).all(axis=1)]
    return alone


@dataclass(frozen=True)
class _Cells:
    """The cells of all marginals, one after the other, and a last one that no row leaves or enters."""

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]

    @cached_property
    def levels(self) -> Codes:
        """(d,)."""
        return np.array(list(self.sizes.values()), dtype=np.int64)

    @cached_property
    def count(self) -> int:
        """Of all cells."""
        return sum(self._lengths) + 1

    @cached_property
    def _lengths(self) -> list[int]:
        return [math.prod(self.sizes[name] for name in r) for r in self.cliques]

    @cached_property
    def _strides(self) -> Codes:
        """How far one level of each attribute moves in each marginal (d, cliques + 1); 0 where it is not in it."""
        found = np.zeros((len(self.sizes), len(self.cliques) + 1), dtype=np.int64)
        for c, r in enumerate(self.cliques):
            shape = [self.sizes[name] for name in r]
            for k, name in enumerate(r):
                found[list(self.sizes).index(name), c] = math.prod(shape[k + 1 :])
        return found

    def of_rows(self, codes: Codes) -> Codes:
        """The cell of each row in each marginal (rows, cliques + 1)."""
        starts = np.concatenate([[0], np.cumsum(self._lengths)])
        found: Codes = codes @ self._strides + starts
        return found

    @cached_property
    def of_attribute(self) -> Codes:
        """The marginals that each attribute is in (d, most of one), filled up with the last cell's."""
        own = [np.flatnonzero(row[:-1]) for row in self._strides]
        found = np.full((len(own), max(map(len, own), default=0)), len(self.cliques), dtype=np.int64)
        for j, marginals in enumerate(own):
            found[j, : len(marginals)] = marginals
        return found

    @cached_property
    def steps(self) -> Codes:
        """The strides of each attribute in these marginals (d, most of one)."""
        return np.take_along_axis(self._strides, self.of_attribute, axis=1)


def independent_rows(singles: Sequence[Array], rows: int, rng: np.random.Generator) -> Codes:
    """Rows of independent columns with these marginals (m,) each, of positive or negative cells."""
    none = np.zeros(rows, dtype=np.int64)
    return np.stack([rounded_column(np.maximum(table, 0.0)[None], none, rng) for table in singles], axis=1)
