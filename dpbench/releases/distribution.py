"""A fitted distribution that rows are sampled from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import ContractError
from dpbench.files import Json

from .checks import check_array, check_plain
from .offers import Arrays, Part

if TYPE_CHECKING:
    from dpbench.inference import Model, ModelData, State


@dataclass(frozen=True)
class Stored:
    """The state of a model as read. The model is built from it at the first use, which takes some time."""

    data: ModelData
    arrays: Arrays

    @cached_property
    def model(self) -> Model:
        """The model."""
        from dpbench.inference import load_model

        return load_model(self.data, self.arrays)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Attribute -> number of levels."""
        return self.model.sizes

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Codes (rows, d), with the bits of the model that was stored."""
        return self.model.sample(rows, rng)

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return self.model.total

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """Marginals, each summing to `total`."""
        return self.model.answer(cliques)

    def state(self) -> State:
        """The arrays that were read."""
        return self.data, self.arrays


@dataclass(frozen=True)
class Merge:
    """The compression of one attribute: `code` (m,) int64 has the new code of each level; merged levels share one."""

    code: Codes

    @cached_property
    def levels(self) -> Codes:
        """The levels (m,) in the order of their codes."""
        return np.argsort(self.code, kind="stable").astype(np.int64)

    @cached_property
    def count(self) -> Codes:
        """The number of levels (m',) behind each code."""
        return np.bincount(self.code).astype(np.int64)

    def undo(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Compressed codes (n,) as original ones: for a merged level, one of its levels, equally likely."""
        first = np.cumsum(self.count) - self.count
        original: Codes = self.levels[first[codes] + rng.integers(0, self.count[codes])]
        return original

    def spread(self, table: Floats, axis: int) -> Floats:
        """A marginal with this attribute compressed as one over its levels: equal parts for those of a merged one."""
        share = (1 / self.count).reshape([-1 if k == axis else 1 for k in range(table.ndim)])
        return np.take(table * share, self.code, axis=axis)


@dataclass(frozen=True)
class Distribution(Part):
    """A fitted model of the rows, stored by its parameters: potentials of measured cliques, or those of a mixture.

    It is over the domain of the release, or over a smaller one in which `merges` (by attribute) merged levels.
    """

    kind: ClassVar[str] = "distribution"
    model: Model | Stored
    merges: Mapping[str, Merge] = field(default_factory=dict)

    def sample(self, domain: Domain, rows: int, rng: np.random.Generator) -> Table:
        """This many rows over the domain of the release. A merged level becomes one of its levels, equally likely."""
        codes = self.model.sample(rows, rng)
        for j, name in enumerate(domain.names):
            if name in self.merges:
                codes[:, j] = self.merges[name].undo(codes[:, j], rng)
        return Table(domain, codes)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """The marginals of these cliques, each summing to `model.total`. Merged levels have equal parts of their mass.

        **Shapes** one table per clique, of the sizes of its attributes in the domain of the release.
        """
        return {clique: self._spread(clique, table) for clique, table in self.model.answer(cliques).items()}

    def _spread(self, clique: Clique, table: Floats) -> Floats:
        for axis, name in enumerate(clique):
            if name in self.merges:
                table = self.merges[name].spread(table, axis)
        return table

    def check(self, domain: Domain) -> None:
        """The model is over the domain, after the merges."""
        for name, merge in self.merges.items():
            check_array(f"the merged levels of {name}", merge.code, (domain.sizes.get(name, 0),))
        merged = {name: len(merge.count) for name, merge in self.merges.items()}
        if list(self.model.sizes.items()) != list({**domain.sizes, **merged}.items()):
            raise ContractError("the distribution must be over the domain of the release, but it is over another one")
        data, arrays = self.model.state()
        check_plain("the parameters of the distribution", data)
        for name, array in arrays.items():
            check_array(f"{name} of the distribution", array, np.shape(array))

    def to_parts(self) -> tuple[Json, Arrays]:
        """The state of the model, and the code of each level that was merged."""
        data, arrays = self.model.state()
        merges = {f"merge_{i}": merge.code for i, merge in enumerate(self.merges.values())}
        return {"model": data, "merges": list(self.merges)}, {**arrays, **merges}

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> Distribution:
        """The distribution that `to_parts` wrote."""
        merges = {name: Merge(arrays[f"merge_{i}"]) for i, name in enumerate(data["merges"])}
        own = {name: array for name, array in arrays.items() if not name.startswith("merge_")}
        return cls(Stored(data["model"], own), merges)
