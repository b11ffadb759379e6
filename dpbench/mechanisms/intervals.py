"""Numbers without declared bins: those of a table in [0, 1], their intervals of equal width, and rows with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbench.data.domain import Attribute, Clique, Codes, Domain, Floats
from dpbench.data.encode import scalar
from dpbench.data.table import Table
from dpbench.errors import UserError

MOST = 20  # levels: a number is one of 2^20 values, a millionth of its bounds apart


def scaled(train: Table, names: Sequence[str]) -> Floats:
    """The numbers (m, n) of the rows, in [0, 1]: as they are where they are known, else the middles of their bins."""
    columns = [np.zeros((0, len(train)))]
    for name in names:
        attribute = train.domain[name]
        plain = train.numbers.get(name, np.array(attribute.values)[train.column(name)])
        columns.append((scalar(attribute, plain) + 1) / 2)
    return np.concatenate(columns)


def with_numbers(domain: Domain, codes: Codes, names: Sequence[str], X: Floats) -> Table:
    """Rows of these codes (n, d), but for the attributes of these names, whose numbers X (m, n) are in [0, 1].

    They have the declared decimals. Where only listed values are in the domain, it is that of their bin.
    """
    codes, kept = codes.copy(), dict[str, Floats]()
    for name, x in zip(names, X, strict=True):
        attribute = domain[name]
        lower, upper = attribute.bounds or (0.0, 1.0)
        plain = lower + (upper - lower) * x
        if attribute.decimals is not None:
            plain = np.round(plain, attribute.decimals)
        plain = np.clip(plain, lower, upper)
        codes[:, domain.index(name)] = attribute.code(plain)
        values = np.array(attribute.values)[codes[:, domain.index(name)]]
        kept[name] = values if attribute.discrete_values else plain
    return Table(domain, codes, kept)


@dataclass(frozen=True)
class Intervals:
    """The attributes of `plain`, and the intervals of its numbers: 2^level of equal width, for each level of a tree.

    An attribute is a number where it has bounds, no listed values and no missing ones; without any `levels` none is. A
    number is one of 2^MOST values from one bound to the other, so that an interval is a run of them.

    `levels`: at which the marginals of a workload are counted. `alone`: at which each number is, by itself, as well.

    Raises `UserError` for a level that is not a whole number from 1 to MOST, or given twice, or for numbers alone.
    """

    plain: Domain
    levels: tuple[int, ...]
    alone: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, levels in (("levels", self.levels), ("alone", self.alone)):
            if not all(type(one) is int and 1 <= one <= MOST for one in levels) or len(set(levels)) < len(levels):
                raise UserError(f"{name} must be different whole numbers from 1 to {MOST}, not {list(levels)}")
        if self.alone and not self.levels:
            raise UserError("numbers that are counted alone (alone) need levels for the other marginals; [5], say")

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The names of the numbers."""

        def is_number(one: Attribute) -> bool:
            return one.bounds is not None and not one.missing and not one.discrete_values

        return tuple(one.name for one in self.plain.attributes if self.levels and is_number(one))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many values each attribute of `plain` has."""
        return {name: 2**MOST if name in self.numbers else size for name, size in self.plain.sizes.items()}

    @cached_property
    def domain(self) -> Domain:
        """An attribute for each level of a number, and the others."""
        found: list[Attribute] = []
        for one in self.plain.attributes:
            lower, upper = one.bounds or (0.0, 1.0)
            split = [Attribute.binned(at(one.name, k), lower, upper, 2**k) for k in self._levels_of(one.name)]
            found += split or [one]
        return Domain(tuple(found))

    def _levels_of(self, name: str) -> list[int]:
        return sorted({*self.levels, *self.alone}) if name in self.numbers else []

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Clique]:
        """What is counted, by the attributes of `domain`, with its attributes in `plain`."""
        found = {}
        for clique in cliques:
            for level in self.levels or (0,):
                found[tuple(at(name, level) if name in self.numbers else name for name in clique)] = clique
        named = {name for clique in cliques for name in clique}
        alone = [(name, level) for name in self.numbers if name in named for level in self.alone]
        return found | {(at(name, level),): (name,) for name, level in alone}

    def counted(self, train: Table) -> Table:
        """The rows over `domain`: which interval a number is in."""
        values = dict(zip(self.numbers, scaled(train, self.numbers) * (2**MOST - 1), strict=True))
        columns = []
        for name in self.plain.names:
            levels = self._levels_of(name)
            split = [np.rint(values[name]).astype(np.int64) >> (MOST - level) for level in levels]
            columns += split or [train.column(name)]
        return Table(self.domain, np.stack(columns, axis=1))

    @property
    def finest(self) -> list[str]:
        """Each attribute of `plain` in `domain`; of a number its most intervals."""
        return [at(name, max(self._levels_of(name))) if name in self.numbers else name for name in self.plain.names]

    def spread(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Rows (n, d) of the `finest` attributes, each number drawn from its interval."""
        width = [
            self.sizes[name] // self.domain.sizes[fine] for name, fine in zip(self.sizes, self.finest, strict=True)
        ]
        return codes * width + (rng.integers(0, width, codes.shape) if self.numbers else 0)

    def rows(self, codes: Codes) -> Table:
        """Rows over `plain` of these values (n, d)."""
        X = [codes[:, self.plain.index(name)] / (2**MOST - 1) for name in self.numbers]
        others = np.where([name in self.numbers for name in self.plain.names], 0, codes)
        return with_numbers(self.plain, others, self.numbers, np.array(X).reshape(len(X), len(codes)))


def at(name: str, level: int) -> str:
    """What the ledger calls a number in 2^level intervals."""
    return f"{name} in {2**level}"
