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
    targets: Sequence[tuple[Clique, Array]],
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

    **Shapes** `targets`: cliques with their tables, of the shape of their attributes. One with fewer cells along an
    axis, by a whole factor, counts runs of so many levels: intervals of a number. Only a table's shares matter.
    """
    cells = _Cells(sizes, [(clique, table.shape) for clique, table in targets])
    codes, rows = start.copy(), len(start)
    places = cells.of_rows(codes)
    wanted = [table.ravel() * (rows / max(float(table.sum()), 1e-300)) for _, table in targets]
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
        width = cells.widths[j]
        new_cells = old_cells + (new[:, None] // width - codes[i, j][:, None] // width) * cells.steps[j]
        moved = new_cells != old_cells
        change = np.where(moved, 2 * (error[new_cells] - error[old_cells]) + 2, 0.0).sum(axis=1)
        kept = _apart(change, np.concatenate([old_cells, new_cells], axis=1), np.tile(moved, 2), cells.count)
        np.subtract.at(error, old_cells[kept][moved[kept]], 1)
        np.add.at(error, new_cells[kept][moved[kept]], 1)
        codes[i[kept], j[kept]] = new[kept]
        places[i[kept, None], cells.of_attribute[j[kept]]] = new_cells[kept]
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
    marginals: Sequence[tuple[Clique, tuple[int, ...]]]

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
        return [math.prod(shape) for _, shape in self.marginals]

    @cached_property
    def _starts(self) -> Codes:
        return np.concatenate([[0], np.cumsum(self._lengths)])

    @cached_property
    def _axes(self) -> tuple[Codes, Codes]:
        """How many levels of each attribute are one cell in each marginal, and how far the next cell is; 0 where it is
        not in it. Both (d, marginals + 1).
        """
        widths = np.ones((len(self.sizes), len(self.marginals) + 1), dtype=np.int64)
        strides = np.zeros_like(widths)
        places = {name: j for j, name in enumerate(self.sizes)}
        for c, (clique, shape) in enumerate(self.marginals):
            for k, name in enumerate(clique):
                widths[places[name], c] = self.sizes[name] // shape[k]
                strides[places[name], c] = math.prod(shape[k + 1 :])
        return widths, strides

    def of_rows(self, codes: Codes) -> Codes:
        """The cell of each row in each marginal (rows, marginals + 1)."""
        widths, strides = self._axes
        found = np.tile(self._starts, (len(codes), 1))
        for j in range(len(self.sizes)):
            found += codes[:, j, None] // widths[j] * strides[j]
        return found

    @cached_property
    def of_attribute(self) -> Codes:
        """The marginals that each attribute is in (d, most of one), filled up with the last cell's."""
        own = [np.flatnonzero(row[:-1]) for row in self._axes[1]]
        found = np.full((len(own), max(map(len, own), default=0)), len(self.marginals), dtype=np.int64)
        for j, marginals in enumerate(own):
            found[j, : len(marginals)] = marginals
        return found

    @cached_property
    def widths(self) -> Codes:
        """Of each attribute in these marginals (d, most of one)."""
        return np.take_along_axis(self._axes[0], self.of_attribute, axis=1)

    @cached_property
    def steps(self) -> Codes:
        """The strides of each attribute in these marginals (d, most of one)."""
        return np.take_along_axis(self._axes[1], self.of_attribute, axis=1)


def independent_rows(singles: Sequence[Array], rows: int, rng: np.random.Generator) -> Codes:
    """Rows of independent columns with these marginals (m,) each, of positive or negative cells."""
    none = np.zeros(rows, dtype=np.int64)
    return np.stack([rounded_column(np.maximum(table, 0.0)[None], none, rng) for table in singles], axis=1)
