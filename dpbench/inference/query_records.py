"""The record that a weighted sum of queries is largest for: the integer programme of DualQuery and FEM."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .measurements import Array

Codes = npt.NDArray[np.int64]
Cell = Mapping[str, int]  # the level of each attribute of a query's marginal
Level = tuple[str, int]  # an attribute and its code


@dataclass(frozen=True)
class Search:
    """How a record is searched for: by trying all of up to `max_cells` cells of the domain, else by HiGHS.

    HiGHS ends after `seconds`, with the best record so far, which then depends on the machine.
    """

    max_cells: int = 1_000_000
    seconds: float = 60.0

    def best(
        self, sizes: Mapping[str, int], cells: Sequence[Cell], weights: Array, linear: Mapping[str, Array]
    ) -> tuple[Codes, bool]:
        """The codes (d,) of an x with the largest sum_i weights_i q_i(x) + sum_j linear_j[x_j], and whether it is one.

        **Shapes** `weights` (t,), of the queries' `cells`; `linear` has an array (m_j,) for each attribute.
        """
        if math.prod(sizes.values()) <= self.max_cells:
            return _tried(sizes, cells, weights, linear), True
        return _solved(sizes, cells, weights, linear, self.seconds)

    def leaders(
        self,
        sizes: Mapping[str, int],
        cells: Sequence[Cell],
        weights: Array,
        *,
        count: int,
        scale: float,
        rng: np.random.Generator,
    ) -> tuple[Codes, int]:
        """Records (count, d), each the best for the queries less its own noise, and how many are not known to be best.

        The noise is exponential, of mean `scale`, on each level of each attribute.
        """
        found = []
        for _ in range(count):
            noise = {name: -rng.exponential(scale, size) for name, size in sizes.items()}
            found.append(self.best(sizes, cells, weights, noise))
        return np.array([x for x, _ in found]), sum(not best for _, best in found)


def _tried(sizes: Mapping[str, int], cells: Sequence[Cell], weights: Array, linear: Mapping[str, Array]) -> Codes:
    """By the value of each cell of the domain."""
    values = np.zeros(())
    for name in sizes:
        values = values[..., None] + linear[name]
    for cell, weight in zip(cells, weights, strict=True):
        values[tuple(cell.get(name, slice(None)) for name in sizes)] += weight
    return np.array(np.unravel_index(values.argmax(), values.shape), dtype=np.int64)


@dataclass
class _Programme:
    """Variables between 0 and 1, by their names, and linear constraints on them."""

    places: dict[Hashable, int] = field(default_factory=dict)
    terms: list[tuple[int, int, float]] = field(default_factory=list)  # constraint, variable, coefficient
    bounds: list[tuple[float, float]] = field(default_factory=list)

    def place(self, name: Hashable) -> int:
        """The place of a variable, which is made at its first use."""
        return self.places.setdefault(name, len(self.places))

    def constrain(self, plus: Sequence[Hashable], minus: Sequence[Hashable], low: float, high: float) -> None:
        """low <= sum of plus - sum of minus <= high."""
        for sign, names in ((1.0, plus), (-1.0, minus)):
            self.terms += [(len(self.bounds), self.place(name), sign) for name in names]
        self.bounds.append((low, high))

    def maximise(self, gain: Mapping[Hashable, float], whole: int, seconds: float) -> tuple[Array | None, bool]:
        """The best values found, of which the first `whole` are 0 or 1, and whether there are no better ones."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        rows, columns, values = zip(*self.terms, strict=True)
        size = len(self.places)
        matrix = coo_array((values, (rows, columns)), shape=(len(self.bounds), size)).tocsr()
        found = milp(
            [-gain.get(name, 0.0) for name in self.places],
            integrality=np.arange(size) < whole,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, *zip(*self.bounds, strict=True)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        return found.x, found.status == 0


def _solved(
    sizes: Mapping[str, int], cells: Sequence[Cell], weights: Array, linear: Mapping[str, Array], seconds: float
) -> tuple[Codes, bool]:
    """By HiGHS. The variables: (attribute, level), 1 for the level that it has; a pair of these; i, the answer q_i(x).

    Of the levels of an attribute that no query names only the best one has a variable. The answer of a query of
    positive weight is at most each of its pairs, and the pairs of one level with all levels of another attribute are at
    most that level's variable together; the relaxation is far tighter than with levels alone. The answer of a query of
    negative weight is at least the sum of its levels less their number but one.
    """
    programme, pairs = _Programme(), dict[tuple[Level, str], dict[Hashable, None]]()
    named = {name: _named(name, size, cells, linear[name]) for name, size in sizes.items()}
    for levels in named.values():
        programme.constrain(levels, [], 1, 1)
    for i, (cell, weight) in enumerate(zip(cells, weights, strict=True)):
        levels = list(cell.items())
        if weight <= 0:
            programme.constrain([i], levels, 1 - len(levels), math.inf)
        elif len(levels) == 1:
            programme.constrain([i], levels, -math.inf, 0)
        else:
            for pair in combinations(levels, 2):
                programme.constrain([i], [pair], -math.inf, 0)
                for one, other in (pair, pair[::-1]):
                    pairs.setdefault((one, other[0]), {})[pair] = None
    for (level, _), together in pairs.items():
        programme.constrain(list(together), [level], -math.inf, 0)
    every = [level for levels in named.values() for level in levels]
    gain: dict[Hashable, float] = {(name, code): float(linear[name][code]) for name, code in every}
    gain |= {i: float(weight) for i, weight in enumerate(weights)}
    found, best = programme.maximise(gain, len(every), seconds)
    codes = {name: int(linear[name].argmax()) for name in sizes}  # if nothing was found in time
    if found is not None:
        codes |= dict(level for level, value in zip(every, found, strict=False) if value > 0.5)
    return np.array(list(codes.values()), dtype=np.int64), best


def _named(name: str, size: int, cells: Sequence[Cell], terms: Array) -> list[Level]:
    """The levels of an attribute that the queries name, and the best of the others."""
    named = sorted({cell[name] for cell in cells if name in cell})
    others = np.setdiff1d(np.arange(size), named)
    if len(others):
        named.append(int(others[terms[others].argmax()]))
    return [(name, code) for code in named]
