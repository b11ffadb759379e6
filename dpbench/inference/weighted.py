"""A distribution over given rows: a probability for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .engines import Model, ModelData, State, sizes_of
from .measurements import Array, Clique, InferenceError, canonical
from .model import with_total
from .query_workload import QueryWorkload
from .sampling import rounded_column

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WeightedRows(Model):
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
    def cliques(self) -> tuple[Clique, ...]:
        """The whole domain alone: any of its attributes may depend on each other."""
        return (tuple(self.sizes),)

    @property
    def size_mb(self) -> float:
        """Size of the rows and their probabilities in MB."""
        return (self.codes.nbytes + self.distribution.nbytes) / 2**20

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`."""
        names = canonical(cliques, self.sizes)
        tables = {clique: np.ones(()) for clique in names if not clique}
        wanted = tuple(dict.fromkeys(clique for clique in names if clique))
        if wanted:
            queries = QueryWorkload(self.sizes, wanted)
            tables |= queries.tables(queries.of_rows(self.codes, self.distribution))
        return {clique: with_total(tables[clique], self.total) for clique in names}

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Synthetic rows (rows, d), by randomised rounding: each row as often as expected, up to rounding."""
        return self.codes[rounded_column(self.distribution[None], np.zeros(rows, dtype=np.int64), rng)]
