"""What a metric sees: a fit, the release behind it, and the real rows. Only metrics see real rows again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Split
from dpbench.errors import UserError
from dpbench.mechanisms.release import Release
from dpbench.models.fit import Fit
from dpbench.models.linear import solve

Arrays = TypeVar("Arrays", bound=tuple[Floats, ...])


@dataclass(frozen=True)
class Score:
    """One number: its name, unit, and which direction is better (`lower`, `higher` or `none`).

    `detail` is plain data that goes with the number (JSON-ready), such as the histogram that it sums up.
    """

    name: str
    value: float
    unit: str
    direction: str
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Reference:
    """The real rows of one split under one design, and what follows from them without noise; computed once."""

    split: Split
    design: Design

    @cached_property
    def train_moments(self) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) of the training rows."""
        return _read_only(second_moments(*self.train))

    @cached_property
    def coefficients(self) -> Floats:
        """The least-squares solution of least norm on the training rows (p,)."""
        return _read_only((solve(*self.train_moments, scaled=self.design.scaled).coefficients,))[0]

    @cached_property
    def all_moments(self) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) of the training and the test rows together."""
        (xtx, xty), (more_xtx, more_xty) = self.train_moments, second_moments(*self.design.encode(self.split.test))
        return _read_only((xtx + more_xtx, xty + more_xty))

    @cached_property
    def train(self) -> tuple[Floats, Floats]:
        """X (n, p) and y (n,) of the training rows."""
        return _read_only(self.design.encode(self.split.train))

    @cached_property
    def test(self) -> tuple[Floats, Floats]:
        """X (m, p) and y (m,) of the test rows. Raises `UserError` if there are none."""
        if not len(self.split.test):
            raise UserError("this metric needs test rows: set limits.test_rows, or choose rel_mse_train")
        return _read_only(self.design.encode(self.split.test))

    @cached_property
    def truth(self) -> Floats | None:
        """The coefficients (p,) that simulated rows were drawn with; None for real rows.

        Raises `UserError` if the design has other features than the simulation.
        """
        if not self.split.truth:
            return None
        if self.design.scaled or set(self.design.columns) != set(self.split.truth):
            raise UserError(
                "the simulation's coefficients belong to its features as they are: set +design.scaled=false, "
                "+design.exact=true and design.intercept=false"
            )
        return _read_only((np.array([self.split.truth[name] for name in self.design.columns]),))[0]

    @cached_property
    def _marginals(self) -> dict[Clique, Floats]:
        return {}

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """The training rows' marginals of these cliques."""
        for clique in cliques:
            if clique not in self._marginals:
                (self._marginals[clique],) = _read_only((self.split.train.marginal(clique),))
        return {clique: self._marginals[clique] for clique in cliques}


def _read_only(arrays: Arrays) -> Arrays:
    """These arrays, which other trials will see too: no metric may write into them."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


@dataclass(frozen=True)
class Evaluation:
    """One fit of one release, to be held against the real rows."""

    fit: Fit
    release: Release
    reference: Reference
