"""Rows in a parquet file: mechanisms that use only marginals can release tables that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from dpbench.data.coding import code_some
from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.data.table import counted
from dpbench.errors import UserError

BATCH = 2**18  # rows in memory at once


@dataclass(frozen=True)
class ParquetTable:
    """The rows of a parquet file over a domain, read in batches by pyarrow each time they are counted.

    `gaussian_marginals`, `residual_planner` and `aim_grem` take it in place of a `Table`. `outside`: see
    `code_counted`. Columns that the domain does not declare are not read.

    Raises `UserError` if the file cannot be read, or does not fit the domain; the rows named are those of a batch.
    """

    path: Path
    domain: Domain
    outside: str = "error"

    def __len__(self) -> int:
        """Rows, without those that `outside=drop` leaves out."""
        return self._rows

    @cached_property
    def _rows(self) -> int:
        return sum(len(codes) for codes in self._batches())

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """See `Table.marginals`: one pass over the file."""
        tables = {clique: np.zeros(self.domain.shape(clique)) for clique in cliques}
        for codes in self._batches():
            for clique, counts in counted(codes, self.domain.sizes, cliques).items():
                tables[clique] += counts
        return tables

    def _batches(self) -> Iterator[Codes]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                known = [name for name in self.domain.names if name in file.schema_arrow.names]
                for number, batch in enumerate(file.iter_batches(BATCH, columns=known)):
                    where = f"{self.path}, rows from {number * BATCH:,}"
                    yield code_some(batch.to_pandas(), self.domain, self.outside, where).table.codes
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{self.path} cannot be read as a parquet file: {error}") from error
