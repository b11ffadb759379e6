"""A distribution as a probability for each of some points: all cells of the domain, or given rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .engines import Model, ModelData, State, sizes_of
from .measurements import Array, Clique, InferenceError, canonical
from .model import with_total
from .query_workload import QueryWorkload
from .sampling import rounded_column
from .trees import BYTES_PER_CELL, BYTES_PER_MB

Codes = npt.NDArray[np.int64]


class Points(Model):
    """A model whose answers are sums of probabilities."""

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The whole domain alone: any of its attributes may depend on each other."""
        return (tuple(self.sizes),)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`."""
        names = canonical(cliques, self.sizes)
        tables = {clique: np.ones(()) for clique in names if not clique}
        wanted = tuple(dict.fromkeys(clique for clique in names if clique))
        if wanted:
            queries = QueryWorkload(self.sizes, wanted)
            tables |= queries.tables(self.sums(queries))
        return {clique: with_total(tables[clique], self.total) for clique in names}

    @abstractmethod
    def sums(self, queries: QueryWorkload) -> Array:
        """The answers (m,) to the queries, as parts of 1."""


@dataclass(frozen=True)
class HistogramModel(Points):
    """The probability of each cell of the domain, times a total.

    **Shapes**: `distribution` has the shape of all `sizes`, and sums to 1.
    """

    distribution: Array = field(repr=False)

    @classmethod
    def from_state(cls, data: ModelData, arrays: Mapping[str, Array]) -> HistogramModel:
        """The model that `state` described, which samples and answers to the same bits."""
        sizes, distribution = sizes_of(data), arrays["law"]
        if distribution.shape != tuple(sizes.values()):
            raise InferenceError(
                f"a table of the shape {distribution.shape} is not over levels of {tuple(sizes.values())}"
            )
        return cls(sizes, data["total"], data["iterations"], data["loss"], distribution)

    def state(self) -> State:
        """What `inference.load_model` needs: the table, and plain data."""
        return self.described("histogram"), {"law": self.distribution}

    @property
    def size_mb(self) -> float:
        """Size of the table in MB."""
        return histogram_mb(self.sizes)

    def sums(self, queries: QueryWorkload) -> Array:
        """See `Points.sums`."""
        return queries.of_histogram(self.distribution)

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Synthetic rows (rows, d), by randomised rounding: each cell as often as expected, up to rounding."""
        cells = rounded_column(self.distribution.reshape(1, -1), np.zeros(rows, dtype=np.int64), rng)
        return np.stack(np.unravel_index(cells, self.distribution.shape), axis=1).astype(np.int64, copy=False)


def histogram_mb(sizes: Mapping[str, int]) -> float:
    """Size in MB of a table over the whole domain.

    >>> histogram_mb({"a": 1024, "b": 128})
    1.0
    """
    return math.prod(sizes.values()) * BYTES_PER_CELL / BYTES_PER_MB


@dataclass(frozen=True)
class WeightedRows(Points):
    """The probability of each of u rows, times a total.

    **Shapes**: `codes` (u, d), in the order of `sizes`; `distribution` (u,), which sums to 1.
    """

    codes: Codes = field(repr=False)
    distribution: Array = field(repr=False)

    @classmethod
    def from_state(cls, data: ModelData, arrays: Mapping[str, Array]) -> WeightedRows:
        """The model that `state` described, which samples and answers to the same bits."""
        sizes, distribution = sizes_of(data), arrays["law"]
        if arrays["codes"].shape != (*distribution.shape, len(sizes)):
            raise InferenceError(
                f"codes of the shape {arrays['codes'].shape} are not {distribution.size} rows of {list(sizes)}"
            )
        codes = arrays["codes"].astype(np.int64)
        return cls(sizes, data["total"], data["iterations"], data["loss"], codes, distribution)

    def state(self) -> State:
        """What `inference.load_model` needs: the rows and their probabilities, and plain data."""
        return self.described("rows"), {"codes": self.codes.astype(float), "law": self.distribution}

    @property
    def size_mb(self) -> float:
        """Size of the rows and their probabilities in MB."""
        return (self.codes.nbytes + self.distribution.nbytes) / 2**20

    def sums(self, queries: QueryWorkload) -> Array:
        """See `Points.sums`."""
        return queries.of_rows(self.codes, self.distribution)

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Synthetic rows (rows, d), by randomised rounding: each row as often as expected, up to rounding."""
        return self.codes[rounded_column(self.distribution[None], np.zeros(rows, dtype=np.int64), rng)]
