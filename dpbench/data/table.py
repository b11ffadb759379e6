"""`Table` (rows over a declared domain) and `Split` (its train and test parts)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.errors import UserError


@dataclass(frozen=True)
class Table:
    """n rows: `codes` (n, d) int64, one column an attribute of `domain`, each in [0, size).

    `numbers` holds the undiscretised values (n,) of numeric attributes where they are known; synthetic rows have none.
    """

    domain: Domain
    codes: Codes
    numbers: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, d = self.codes.shape
        if d != len(self.domain.names):
            raise ValueError(f"{d} columns for a domain of {len(self.domain.names)} attributes")
        if n and (self.codes.min() < 0 or np.any(self.codes.max(axis=0) >= list(self.domain.sizes.values()))):
            raise ValueError("a code lies outside its attribute's domain")
        if any(len(column) != n for column in self.numbers.values()):
            raise ValueError(f"a column of numbers does not have {n} rows")

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, name: str) -> Codes:
        """The codes (n,) of one attribute."""
        return self.codes[:, self.domain.index(name)]

    def take(self, rows: NDArray[np.int64]) -> Table:
        """These rows, in this order."""
        return Table(self.domain, self.codes[rows], {name: column[rows] for name, column in self.numbers.items()})

    def project(self, names: Sequence[str]) -> Table:
        """These attributes only, in the domain's order."""
        domain = self.domain.project(names)
        columns = [self.domain.index(name) for name in domain.names]
        kept = {name: column for name, column in self.numbers.items() if name in domain.names}
        return Table(domain, np.ascontiguousarray(self.codes[:, columns]), kept)

    def marginal(self, clique: Clique) -> Floats:
        """mu_r (Paper 0, Definition 2.9): the counts of the clique's cells, of shape `domain.shape(clique)`."""
        shape = self.domain.shape(clique)
        if not clique:
            return np.array(float(len(self)))
        cell = np.ravel_multi_index([self.column(name) for name in clique], shape)
        return np.bincount(cell, minlength=int(np.prod(shape))).astype(float).reshape(shape)


@dataclass(frozen=True)
class Split:
    """A train and a test part of one table; no row is in both.

    `truth`: the coefficient of each attribute, in its unit, that simulated rows were drawn with; empty for real ones.
    """

    train: Table
    test: Table
    truth: Mapping[str, float] = field(default_factory=dict)


def split(table: Table, rng: np.random.Generator, *, train_rows: int, test_rows: float) -> Split:
    """Shuffle, take `test_rows` for testing and up to `train_rows` of the others for training (Paper 0, G.1).

    `test_rows` below 1 is a part of the rows, rounded up; 0 leaves no test rows. For one `rng` state the order of the
    rows does not depend on the sizes asked for.

    Raises `UserError` if either part would be smaller than asked for, or there would be no training row.
    """
    order = rng.permutation(len(table))
    wanted = int(test_rows) if test_rows >= 1 else math.ceil(test_rows * len(table))
    test, train = order[:wanted], order[wanted : wanted + train_rows]
    if len(test) < wanted or not len(train):
        raise UserError(
            f"{len(table)} rows cannot be split into {wanted} test rows and at least one training row; "
            "set limits.test_rows and limits.train_rows to fit the table"
        )
    return Split(table.take(train), table.take(test))
