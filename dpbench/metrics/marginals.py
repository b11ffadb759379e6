"""Distances of the marginals of two tables, without the memory for an entire workload."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Codes, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError

DENSE = 16  # cells a row up to which counting them all is faster than sorting the rows' own


def marginal_distances(real: Table, synthetic: Table, degree: int, *, max_cells: int | None = None) -> Floats:
    """||h_r / n_r - h_s / n_s||_1, between 0 and 2, of each marginal of `degree` attributes.

    They are in the order of `combinations(names, degree)`, without those of more than `max_cells` cells. No marginal of
    fewer attributes is farther apart: its cells are sums of such cells. A marginal has at most n_r + n_s cells that are
    not empty, and one is held at a time.

    Raises `UserError` for a degree outside [1, number of attributes] or a table without rows.
    """
    d = len(real.domain.names)
    if not 1 <= degree <= d:
        raise UserError(f"degree={degree}: the degree of marginals must be between 1 and {d}, the number of attributes")
    if not (len(real) and len(synthetic)):
        raise UserError("the marginals of a table without rows have no distance from others")
    codes = np.concatenate([real.codes, synthetic.codes]).T.copy()
    weights = np.repeat([float(len(synthetic)), -float(len(real))], [len(real), len(synthetic)])  # whole numbers: exact
    sizes = list(real.domain.sizes.values())
    limit = math.prod(sizes) if max_cells is None else max_cells
    found = _distances(codes, weights, sizes, np.zeros(len(weights), dtype=np.int64), 1, 0, degree, limit)
    return np.array(list(found), dtype=float) / (len(real) * len(synthetic))


def _distances(
    codes: Codes,
    weights: Floats,
    sizes: list[int],
    cell: NDArray[np.int64],
    cells: int,
    start: int,
    left: int,
    limit: int,
) -> Iterator[float]:
    """The distances of the marginals that add `left` attributes, from `start` on, to those of `cell` (n,).

    These attributes may multiply the cells by `limit` at most.
    """
    if not left:
        yield float(np.abs(np.bincount(cell, weights=weights, minlength=1)).sum())
        return
    for j in range(start, len(sizes) - left + 1):
        if sizes[j] <= limit:
            refined = _refined(cell, cells, codes[j], sizes[j])
            yield from _distances(codes, weights, sizes, *refined, j + 1, left - 1, limit // sizes[j])


def _refined(cell: NDArray[np.int64], cells: int, code: Codes, size: int) -> tuple[NDArray[np.int64], int]:
    """The cells with one more attribute, numbered anew if most are empty, and their number."""
    cell, cells = cell * size + code, cells * size
    if cells <= DENSE * len(cell):
        return cell, cells
    kept, cell = np.unique(cell, return_inverse=True)
    return cell.astype(np.int64, copy=False), len(kept)
