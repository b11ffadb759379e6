"""`Part`: the base of each kind of release, and how one of arrays and plain values is stored."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dpbench.data.domain import Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.files import Json

Arrays = dict[str, np.ndarray[Any, Any]]


class Part(Protocol):
    """One kind of output in a release: a frozen dataclass of values, and of the distribution of their noise if it has
    one.

    `kind`: its name in configs, under `_offers_` and `_needs_`.
    """

    kind: ClassVar[str]

    def check(self, domain: Domain) -> None:
        """Check types and shapes against the domain of the release. Raises `ContractError`."""

    def to_parts(self) -> tuple[Json, Arrays]:
        """The part as JSON-ready data and arrays; `from_parts` reads them back."""
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return {name: value for name, value in vars(self).items() if name not in arrays}, arrays

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> Self:
        """The part that `to_parts` wrote."""
        return cls(**data, **arrays)

    def exact(self, train: Table, design: Design) -> Self | None:
        """The same of these rows without noise; None for a kind that has no such form."""
        return None

    @property
    def outline(self) -> Hashable:
        """The values on which `exact` depends, apart from the rows and the design."""
        return ()
