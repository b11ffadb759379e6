"""Rows as arrays, for mechanisms that read a table through its design: simulated ones, and protocols of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbench.data.domain import Attribute, Domain, Floats


@dataclass(frozen=True)
class Arrays:
    """X (n, p) and y (n,), in place of a table and its design: ||x||_2 <= `x_bound` and |y| <= `y_bound`."""

    X: Floats
    y: Floats
    x_bound: float = 1.0
    y_bound: float = 1.0
    binary: bool = False  # y in {-1, 1}
    scaled = True

    def __len__(self) -> int:
        return len(self.y)

    @property
    def domain(self) -> Domain:
        """Of no attribute here: a release must have one."""
        return Domain((Attribute.categorical("none", ["0"]),))

    @property
    def columns(self) -> list[str]:
        """Names of the features."""
        return [f"x{j}" for j in range(self.X.shape[1])]

    @property
    def peaks(self) -> Floats:
        """Of a row of norm 1 for which sensitivities are largest: all of it is in one feature."""
        return np.eye(self.X.shape[1])[0]

    def encode(self, table: object) -> tuple[Floats, Floats]:
        """Both."""
        return self.X, self.y
