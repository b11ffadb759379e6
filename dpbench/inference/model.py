"""A fitted Markov random field: answers to marginal queries and synthetic rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .answers import pair_tables, table_of
from .measurements import Array, Clique, canonical
from .oracle import Oracle
from .sampling import sample_rows
from .trees import BYTES_PER_CELL, BYTES_PER_MB, bits, cells, mask_of


@dataclass(frozen=True)
class MarkovModel:
    """What `estimate` returns: a distribution that factorises over a junction tree, times a total.

    **Shapes**: `potentials[c]` and `pulls[c]` (weighted residuals, for a warm start) have the sizes of measured
    clique c's attributes; `cliques` are the maximal ones.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    total: float
    size_mb: float
    iterations: int
    loss: float
    potentials: Mapping[Clique, Array] = field(repr=False)
    pulls: Mapping[Clique, Array] = field(repr=False)
    oracle: Oracle = field(repr=False)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """Marginals, nonnegative, each summing to `total`; in a clique of the tree or across it.

        **Shapes**: one table per clique, of the sizes of its attributes in the order of the domain.
        """
        index = {name: i for i, name in enumerate(self.sizes)}
        masks = {tuple(c): mask_of(canonical(c, self.sizes), index) for c in cliques}
        tables = pair_tables(self.oracle, [m for m in masks.values() if 1 <= m.bit_count() <= 2], self.total)
        answers = {}
        for clique, mask in masks.items():
            table = tables[mask] if mask in tables else table_of(self.oracle, mask, self.total)
            answers[clique] = with_total(table, self.total)
        return answers

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows by randomised rounding of conditional counts.

        **Shapes**: (rows, d) codes, columns in the order of `sizes`.
        """
        tree = self.oracle.tree
        beliefs = [self.oracle.belief(k) for k in range(len(tree.cliques))]
        return sample_rows(self.oracle.shape, tree, beliefs, rows, rng)


def with_total(table: Array, total: float) -> Array:
    """A copy, free of rounding below zero, scaled to sum to `total`."""
    table = np.maximum(table, 0.0)
    amount = float(table.sum())
    return table * (total / amount) if amount > 0 else np.full(table.shape, total / table.size)


def clique_names(mask: int, sizes: Mapping[str, int]) -> Clique:
    """Names of the attributes in `mask`, in the order of the domain."""
    names = tuple(sizes)
    return tuple(names[i] for i in bits(mask))


def tree_mb(oracle: Oracle) -> float:
    """Size of the maximal cliques' tables in MB, as `model_mb` predicts it."""
    return sum(cells(c, oracle.shape) for c in oracle.tree.cliques) * BYTES_PER_CELL / BYTES_PER_MB
