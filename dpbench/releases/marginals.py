"""Marginals: tables of counts over cliques of attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpbench.data.domain import Clique, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError, shown
from dpbench.files import Json

from .checks import check_array, check_plain
from .part import Arrays, Part


@dataclass(frozen=True)
class Marginals(Part):
    """Clique -> counts of the shape of the clique, as they were measured or as a fitted model answers them.

    `noise`: the cliques that were measured, in this order, each with the standard deviation of its cells' independent
    Gaussian noise; empty if there was none. `of_residuals`: the measurements were not the marginals of these cliques
    but their residuals (`inference.residuals`), whose noise was centred with them.
    """

    kind: ClassVar[str] = "marginals"
    tables: Mapping[Clique, Floats]
    noise: tuple[tuple[Clique, float], ...] = ()
    of_residuals: bool = False

    def check(self, domain: Domain) -> None:
        """Each table has the shape of its clique; the measured cliques are cliques of the domain."""
        for clique in (*self.tables, *(clique for clique, _ in self.noise)):
            if type(clique) is not tuple or not set(clique) <= set(domain.names):
                raise ContractError(f"a marginal must be of a tuple of attributes, not of {shown(clique)}")
        for clique, counts in self.tables.items():
            check_array(f"the marginal {','.join(clique)}", counts, domain.shape(clique))
        for clique, sd in self.noise:  # one by one, since a large workload exceeds the limit for plain data
            check_plain(f"the noise of the marginals, of {','.join(clique)}", sd)
        check_plain("of_residuals of the marginals", self.of_residuals)

    def to_parts(self) -> tuple[Json, Arrays]:
        """The tables as arrays, in the order of their cliques."""
        data: Json = {
            "cliques": [list(clique) for clique in self.tables],
            "noise": [[list(r), sd] for r, sd in self.noise],
        }
        if self.of_residuals:
            data["of_residuals"] = True
        return data, {str(i): table for i, table in enumerate(self.tables.values())}

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> Marginals:
        """The marginals that `to_parts` wrote."""
        tables = {tuple(clique): arrays[str(i)] for i, clique in enumerate(data["cliques"])}
        noise = tuple((tuple(clique), sd) for clique, sd in data["noise"])
        return cls(tables, noise, data.get("of_residuals", False))

    def exact(self, train: Table, design: Design) -> Marginals:
        """The marginals of the rows on the same cliques."""
        return Marginals(train.marginals(list(self.tables)))

    @property
    def outline(self) -> Hashable:
        """The cliques."""
        return tuple(self.tables)
