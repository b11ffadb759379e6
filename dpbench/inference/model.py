"""A fitted Markov random field: answers to marginal queries and synthetic rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .answers import pair_tables, table_of
from .counts import Counts
from .elimination import forests
from .engines import Model, ModelData, State, sizes_of
from .measurements import Array, Clique, InferenceError, canonical
from .oracle import Oracle
from .sampling import sample_rows
from .trees import BYTES_PER_CELL, BYTES_PER_MB, bits, cells, junction_tree, mask_of


@dataclass(frozen=True)
class MarkovModel(Model):
    """A distribution that factorises over a junction tree, times a total.

    **Shapes**: `potentials[c]` and `pulls[c]` (weighted residuals, for a warm start; none in a loaded model) have the
    sizes of measured clique c's attributes. `moves`: of the solver, for a warm start; flat over all potentials.
    """

    potentials: Mapping[Clique, Array] = field(repr=False)
    pulls: Mapping[Clique, Array] = field(repr=False)
    moves: Sequence[tuple[Array, Array]] = field(repr=False)
    oracle: Oracle = field(repr=False)

    @classmethod
    def calibrated(
        cls,
        sizes: Mapping[str, int],
        potentials: Mapping[Clique, Array],
        total: float,
        *,
        iterations: int,
        loss: float,
        filled: Sequence[int] = (),
    ) -> MarkovModel:
        """The model of these potentials. `filled`: see `Oracle.fill`."""
        oracle = oracle_of(sizes, list(potentials))
        oracle.fill(filled)
        oracle.calibrate(np.concatenate([np.zeros(0), *(table.ravel() for table in potentials.values())]), total)
        return cls(sizes, total, iterations, loss, potentials, {}, (), oracle)

    @classmethod
    def from_state(cls, data: ModelData, arrays: Mapping[str, Array]) -> MarkovModel:
        """The model that `state` described, which samples and answers to the same bits."""
        sizes, flat = sizes_of(data), arrays["potentials"]
        cliques = canonical(data["cliques"], sizes)
        shapes = [[sizes[name] for name in clique] for clique in cliques]
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes], dtype=int)
        if flat.shape != (int(ends[-1]) if len(ends) else 0,):
            raise InferenceError(f"the potentials of {len(cliques)} cliques do not have the shape {flat.shape}")
        tables = [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=False)]
        return cls.calibrated(
            sizes,
            dict(zip(cliques, tables, strict=True)),
            data["total"],
            iterations=data["iterations"],
            loss=data["loss"],
            filled=data["filled"],
        )

    def state(self) -> State:
        """What `inference.load_model` needs: the potentials, one after the other, and plain data."""
        data = self.described("markov")
        data["cliques"] = [list(clique) for clique in self.potentials]
        data["filled"] = self.oracle.filled
        return data, {"potentials": np.concatenate([np.zeros(0), *(p.ravel() for p in self.potentials.values())])}

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The maximal cliques of the junction tree."""
        names = tuple(self.sizes)
        return tuple(tuple(names[i] for i in bits(mask)) for mask in self.oracle.tree.cliques)

    @cached_property
    def size_mb(self) -> float:
        """Size of the maximal cliques' tables in MB, as `model_mb` predicts it."""
        tree, shape = self.oracle.tree, self.oracle.shape
        return sum(cells(c, shape) for c in tree.cliques) * BYTES_PER_CELL / BYTES_PER_MB

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`: in a clique of the tree or across it."""
        index = {name: i for i, name in enumerate(self.sizes)}
        masks = {clique: mask_of(clique, index) for clique in canonical(cliques, self.sizes)}
        tables = pair_tables(self.oracle, [m for m in masks.values() if 1 <= m.bit_count() <= 2], self.total)
        answers = {}
        for clique, mask in masks.items():
            table = tables[mask] if mask in tables else table_of(self.oracle, mask, self.total)
            answers[clique] = with_total(table, self.total)
        return answers

    def distances(self, counts: Counts, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """See `Model.distances`: no clique's table is made that spans several cliques of the tree."""
        names = {counts.cells[clique].mask: clique for clique in cliques}
        found = {}
        for mask, forest in forests(self.oracle, self.total, list(names)):
            at = counts.cells[names[mask]]
            found[names[mask]] = counts.distance(at, forest.values(counts, at), self.total)
        return {clique: found[clique] for clique in cliques}

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """See `Model.sample`: by randomised rounding of conditional counts."""
        tree = self.oracle.tree
        beliefs = [block.belief() for block in self.oracle.blocks]
        return sample_rows(self.oracle.shape, tree, beliefs, rows, rng)


def checked_start(warm_start: Model | None, sizes: Mapping[str, int]) -> MarkovModel | None:
    """The warm start, if any, once it is known to be a Markov model whose sizes fit. Raises `InferenceError`."""
    if warm_start is None:
        return None
    if not isinstance(warm_start, MarkovModel):
        raise InferenceError(f"the warm start must be a MarkovModel, not a {type(warm_start).__name__}")
    if any(sizes.get(name, size) != size for name, size in warm_start.sizes.items()):
        raise InferenceError(f"the warm start has sizes {dict(warm_start.sizes)}, this domain {dict(sizes)}")
    return warm_start


def oracle_of(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> Oracle:
    """The junction tree of these cliques, with a factor on each of them."""
    index, shape = {name: i for i, name in enumerate(sizes)}, tuple(sizes.values())
    masks = [mask_of(clique, index) for clique in cliques]
    return Oracle(shape, junction_tree(masks, shape), masks)


def with_total(table: Array, total: float) -> Array:
    """A copy, free of rounding below zero, scaled to sum to `total`."""
    table = np.maximum(table, 0.0)
    amount = float(table.sum())
    return table * (total / amount) if amount > 0 else np.full(table.shape, total / table.size)
