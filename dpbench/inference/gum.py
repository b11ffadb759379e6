"""The gradual update method: rows whose marginals are brought to given ones, step by step (PrivSyn)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique
from .sampling import rounded_column

Codes = npt.NDArray[np.int64]
Columns = npt.NDArray[np.integer[Any]]
DECAY, EVERY = 0.84, 20  # alpha is 0.84^(t // 20) in round t (authors' code)


def gradual_update(
    sizes: Mapping[str, int],
    singles: Sequence[Array],
    targets: Mapping[Clique, Array],
    rows: int,
    rounds: int,
    rng: np.random.Generator,
) -> Codes:
    """Rows (rows, d) that begin with independent columns and in each round come nearer to each of the targets.

    **Source** Zhang et al. 2021, PrivSyn, section 5 (GUM): an update moves rows from cells with too many to cells with
    too few, at most the part alpha of those that are there; alpha falls. A moved row becomes a copy of a row of the new
    cell, or takes that cell's values in the marginal's attributes alone: half of them each in the first round, all
    copies in the second, and so on (authors' code). The marginal that is farthest off comes first.
    **Shapes** `singles`: a table (m,) for each attribute; `targets`: a table for each clique, of the shape of its
    attributes. All are non-negative; their sums do not matter.
    **Departures** How many rows leave each cell is rounded at random.
    """
    names = list(sizes)
    none = np.zeros(rows, dtype=np.int64)
    small = np.min_scalar_type(max(sizes.values()) - 1)  # so that the rows fit a processor's cache
    columns = np.stack([rounded_column(table[None], none, rng).astype(small) for table in singles])
    places = {clique: [names.index(name) for name in clique] for clique in targets}
    wanted = {clique: table.ravel() * (rows / max(float(table.sum()), 1e-300)) for clique, table in targets.items()}
    shapes = {clique: table.shape for clique, table in targets.items()}
    for t in range(rounds if rows else 0):

        def error(clique: Clique) -> float:
            counts = np.bincount(_cells(columns, places[clique], shapes[clique]), minlength=wanted[clique].size)
            return float(np.abs(counts - wanted[clique]).sum())

        copies = 0.5 if t % 2 == 0 else 1.0
        for clique in sorted(targets, key=error, reverse=True):
            _update(columns, places[clique], shapes[clique], wanted[clique], DECAY ** (t // EVERY), copies, rng)
    return np.ascontiguousarray(columns.T, dtype=np.int64)


def _cells(columns: Columns, places: Sequence[int], shape: Sequence[int]) -> Codes:
    """The cell (rows,) of each row in a marginal."""
    cells: Codes = columns[places[0]].astype(np.int64)
    for place, size in zip(places[1:], shape[1:], strict=True):
        cells *= size
        cells += columns[place]
    return cells


def _update(
    columns: Columns,
    places: Sequence[int],
    shape: tuple[int, ...],
    wanted: Array,
    alpha: float,
    copies: float,
    rng: np.random.Generator,
) -> None:
    """Move rows towards the counts `wanted` of one marginal; the part `copies` of them become copies of others."""
    cells = _cells(columns, places, shape)
    counts = np.bincount(cells, minlength=wanted.size)
    gap = wanted - counts
    more = np.where(gap > 0, np.where(counts > 0, np.minimum(gap, alpha * counts), alpha * wanted), 0.0)
    leaving = _leaving(counts, -gap, float(more.sum()))
    gone = np.flatnonzero(rng.random(len(cells), dtype=np.float32) < leaving[cells])
    if not len(gone):
        return
    steps = np.cumsum(more)
    new = np.searchsorted(steps, steps[-1] * (np.arange(len(gone)) + rng.random()) / len(gone), side="right")
    new = rng.permutation(np.minimum(new, np.flatnonzero(more)[-1]))
    copied = (rng.random(len(gone)) < copies) & (counts[new] > 0)
    if copied.any():
        to = np.sort(new[copied])
        rank = np.arange(len(to)) - np.searchsorted(to, to)  # different rows of a cell are copied
        held = np.where(np.bincount(to, minlength=len(counts)) > 0, counts, 0)
        among = np.flatnonzero(held[cells])
        order = among[np.argsort(cells[among].astype(np.min_scalar_type(wanted.size)), kind="stable")]
        place = (rank + (rng.random(len(counts)) * counts).astype(np.int64)[to]) % counts[to]
        source, target = order[(np.cumsum(held) - held)[to] + place], gone[copied]
        for column in columns:
            column[target] = column[source]
    values = np.unravel_index(new[~copied], shape)
    for place, value in zip(places, values, strict=True):
        columns[place, gone[~copied]] = value


def _leaving(counts: Codes, surplus: Array, moved: float) -> Array:
    """The part of each cell's rows that leaves: at most the surplus and at most the part beta of them, `moved` in all.

    The number that leaves is piecewise linear in beta, with corners where beta reaches a cell's surplus.
    """
    part = np.where(surplus > 0, surplus, 0.0) / np.maximum(counts, 1)
    order = np.argsort(part)
    sorted_part, sorted_counts = part[order], counts[order]
    full = np.cumsum(sorted_part * sorted_counts)
    total = full + sorted_part * (sorted_counts.sum() - np.cumsum(sorted_counts))
    beta = float(np.interp(moved, [0.0, *total], [0.0, *sorted_part]))
    leaving: Array = np.minimum(part, beta)
    return leaving
