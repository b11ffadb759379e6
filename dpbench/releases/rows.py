"""Synthetic rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError
from dpbench.files import Json

from .checks import kind_of
from .part import Arrays, Part


@dataclass(frozen=True)
class SyntheticRows(Part):
    """Rows over the domain of the release, as many as the mechanism chose to release."""

    kind: ClassVar[str] = "rows"
    table: Table

    def check(self, domain: Domain) -> None:
        """The rows are a table over the domain."""
        if type(self.table) is not Table:
            raise ContractError(f"rows of the release must be a Table, not {kind_of(self.table)}")
        if self.table.domain != domain:
            raise ContractError("the released rows must have the domain of the release, but they have another one")

    def to_parts(self) -> tuple[Json, Arrays]:
        """The codes in the smallest type that holds them, and the numbers of each attribute that has them."""
        widest = max(self.table.domain.sizes.values()) - 1
        numbers = {f"numbers_{i}": column for i, column in enumerate(self.table.numbers.values())}
        codes = self.table.codes.astype(np.min_scalar_type(widest))
        return {"numbers": list(self.table.numbers)}, {"codes": codes, **numbers}

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> SyntheticRows:
        """The rows that `to_parts` wrote."""
        numbers = {name: arrays[f"numbers_{i}"] for i, name in enumerate(data["numbers"])}
        return cls(Table(domain, arrays["codes"].astype(np.int64), numbers))

    def exact(self, train: Table, design: Design) -> SyntheticRows:
        """The training rows themselves."""
        return SyntheticRows(train)
