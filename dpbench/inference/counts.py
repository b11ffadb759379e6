"""How far a model is from the rows of a table, marginal by marginal, without the marginals' whole tables.

A marginal of n rows has at most n cells that are not zero, and with h the rows' and m the model's counts,
||h - m||_1 = n + the model's total - 2 sum over these cells of min(h, m): m is needed there alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique, canonical
from .trees import bits, cells, mask_of

Places = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Cells:
    """The cells of one marginal that rows are in; `mask` has its attributes as bits.

    **Shapes**: `flat` (z,), their places in the table; `rows` (z,), a row in each; `counts` (z,), how many rows.
    """

    mask: int
    flat: Places
    rows: Places
    counts: Array


class Counts:
    """The marginals of a table's rows on some cliques, by their non-zero cells.

    **Shapes**: `codes` (n, d), a column for each attribute of `sizes`.
    """

    def __init__(self, sizes: Mapping[str, int], codes: npt.NDArray[np.int64], cliques: Sequence[Clique]) -> None:
        self.shape = tuple(sizes.values())
        self._rows, self._columns = len(codes), np.ascontiguousarray(codes.T)
        self._places: dict[int, Places] = {}
        index = {name: i for i, name in enumerate(sizes)}
        self.cells = {clique: self._cells(mask_of(clique, index)) for clique in canonical(cliques, sizes)}

    def size(self, clique: Clique) -> int:
        """Cells of the clique's whole table."""
        return cells(self.cells[clique].mask, self.shape)

    def distance(self, at: Cells, values: Array, total: float) -> float:
        """||h - m||_1 for the rows' counts h, a model's `values` m at these cells, and its total."""
        return self._rows + total - 2.0 * float(np.add.reduce(np.minimum(at.counts, values)))

    def places(self, mask: int) -> Places:
        """For each row (n,), the place of its cell in the table over these attributes (bits)."""
        if mask not in self._places:
            self._places[mask] = self._flat(mask)
        return self._places[mask]

    def _flat(self, mask: int) -> Places:
        axes = bits(mask)
        flat: Places = np.ravel_multi_index(tuple(self._columns[i] for i in axes), [self.shape[i] for i in axes])
        return flat if cells(mask, self.shape) > np.iinfo(np.int32).max else flat.astype(np.int32)

    def _cells(self, mask: int) -> Cells:
        """The distinct cells in ascending order: by counting where the table is small, by sorting where it is not."""
        flat, size = self._flat(mask), cells(mask, self.shape)
        if size > 8 * self._rows:
            found, first, counts = np.unique(flat, return_index=True, return_counts=True)
            return Cells(mask, found, first.astype(np.int32), counts.astype(np.float64))
        table = np.bincount(flat, minlength=size)
        found = np.flatnonzero(table)
        one = np.empty(size, dtype=np.int32)
        one[flat] = np.arange(self._rows, dtype=np.int32)
        return Cells(mask, found.astype(np.int32), one[found], table[found].astype(np.float64))
