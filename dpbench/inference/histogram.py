"""A distribution kept as a table over the whole domain: a probability for each of its cells."""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class HistogramModel(Model):
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
    def cliques(self) -> tuple[Clique, ...]:
        """The whole domain alone: any of its attributes may depend on each other."""
        return (tuple(self.sizes),)

    @property
    def size_mb(self) -> float:
        """Size of the table in MB."""
        return histogram_mb(self.sizes)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`."""
        names = canonical(cliques, self.sizes)
        tables = {clique: np.ones(()) for clique in names if not clique}
        wanted = tuple(dict.fromkeys(clique for clique in names if clique))
        if wanted:
            queries = QueryWorkload(self.sizes, wanted)
            tables |= queries.tables(queries.of_histogram(self.distribution))
        return {clique: with_total(tables[clique], self.total) for clique in names}

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows (rows, d), by randomised rounding: each cell as often as expected, up to rounding."""
        cells = rounded_column(self.distribution.reshape(1, -1), np.zeros(rows, dtype=np.int64), rng)
        return np.stack(np.unravel_index(cells, self.distribution.shape), axis=1).astype(np.int64, copy=False)


def histogram_mb(sizes: Mapping[str, int]) -> float:
    """Size in MB of a table over the whole domain.

    >>> histogram_mb({"a": 1024, "b": 128})
    1.0
    """
    return math.prod(sizes.values()) * BYTES_PER_CELL / BYTES_PER_MB
