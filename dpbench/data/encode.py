"""Numerical encodings of coded attributes, and second moments from marginals (DD-SSP, sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbench.data.domain import Attribute, Clique, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

# Each encoding is the matrix A_j of z[j] = A_j psi_j(chi_j), of shape (p_j, m_j).


def scalar(attribute: Attribute, numbers: ArrayLike | None = None, *, scaled: bool = True) -> Floats:
    """A_j = v_j' (1, m): the numbers of the bins, or these `numbers` (m,), in the attribute's own unit or `scaled`, so
    that the public bounds go to [-1, 1].
    """
    if attribute.bounds is None:
        raise UserError(f"attribute {attribute.name!r} is categorical: it has no scalar encoding")
    lower, upper = attribute.bounds
    plain = np.array(attribute.values if numbers is None else numbers, dtype=float)
    return (2 * (plain - lower) / (upper - lower) - 1 if scaled else plain)[None, :]


def number(attribute: Attribute, *, scaled: bool = True) -> Floats:
    """A_j of a numeric attribute: `scalar` (1, m). Where values may be missing (2, m): the number, 0 for a missing one
    (the middle of the bounds, if `scaled`), and an indicator of a missing one. So one entry at most is not 0.
    """
    plain = scalar(attribute, scaled=scaled)
    if not attribute.missing:
        return plain
    return np.block([[plain, np.zeros((1, 1))], [np.zeros_like(plain), np.ones((1, 1))]])


MOST_LEVELS = 20_000  # of an attribute that is one-hot: its I has 3.2 GB


def one_hot(attribute: Attribute) -> Floats:
    """A_j = I (m, m). Raises `UserError` for more than `MOST_LEVELS`."""
    _check_levels(attribute)
    return np.eye(attribute.size)


def _check_levels(attribute: Attribute) -> None:
    if attribute.size > MOST_LEVELS:
        raise UserError(
            f"attribute {attribute.name!r} has {attribute.size:,} levels, but at most {MOST_LEVELS:,} can be one-hot: "
            f"merge levels, or leave it out (dataset.drop=[{attribute.name}])"
        )


def reduced_one_hot(attribute: Attribute) -> Floats:
    """A_j = I without its first row (m - 1, m): the first level is the reference. Raises `UserError` as `one_hot`."""
    return one_hot(attribute)[1:]


def ordinal(attribute: Attribute) -> Floats:
    """A_j = (0, ..., m - 1) (1, m): the code itself, as in the public code of Zhou et al. 2024 (excess risk)."""
    return np.arange(attribute.size, dtype=float)[None, :]


CATEGORICAL: Mapping[str, Callable[[Attribute], Floats]] = {
    "reduced_one_hot": reduced_one_hot,
    "one_hot": one_hot,
    "ordinal": ordinal,
}
ABSENT = "(missing)"  # in the name of a feature
NO_MISSING = ". Missing values cannot be predicted: declare it without, and leave their rows out (dataset.outside=drop)"
SIGNS: Floats = np.array([[-1.0, 1.0]])  # A_j (1, 2) of a target of two levels (DD-SSP, section 3.3)


@dataclass(frozen=True)
class Design:
    """How rows become features x (p,) and a target y: numeric attributes as scalars, categorical ones one-hot.

    Numbers are scaled to [-1, 1] over their declared bounds, or stay in their own unit if not `scaled`. A row's number
    is that of its bin, or its exact one if `exact` and the table has it. A missing one is 0, and has an indicator
    (`number`). A categorical target of two levels is -1 for
    the first and +1 for the second. The features are, in this order, the encoded attributes of `domain` without the
    target, and a constant 1 if `intercept`. `categorical` names the encoding of categorical features:
    `reduced_one_hot` or `one_hot`, or `ordinal`: the code as a number.

    With `classes` a categorical target may have more levels: y is then its code, from 0, for classifiers alone.

    Raises `UserError` for a target that is neither a numeric attribute of at least two bins nor a categorical one of
    two levels.
    """

    domain: Domain
    target: str
    intercept: bool = True
    categorical: str = "reduced_one_hot"
    scaled: bool = True
    exact: bool = False
    classes: bool = False

    def __post_init__(self) -> None:
        if not (_predictable(self.domain[self.target]) or self.several):
            attribute = self.domain[self.target]
            usable = [other.name for other in self.domain.attributes if _predictable(other)]
            raise UserError(
                "regression needs a numeric target of at least two bins or a categorical one of two levels; "
                f"{self.target!r} is {'numeric' if attribute.numeric else 'categorical'} and has {attribute.size}; "
                f"attributes that can be a target: {', '.join(usable) or 'none'}"
                f"{NO_MISSING if attribute.missing else ''}"
            )
        check_known("encoding", self.categorical, CATEGORICAL)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The attributes behind the features."""
        return tuple(name for name in self.domain.names if name != self.target)

    def check_levels(self) -> None:
        """Raises `UserError` for a feature of more levels than `matrices` can encode, before anything is built."""
        for name in self.features if self.categorical != "ordinal" else ():
            if not self.domain[name].numeric:
                _check_levels(self.domain[name])

    @cached_property
    def matrices(self) -> dict[str, Floats]:
        """Attribute -> A_j (p_j, m_j), the target's included."""
        encode = CATEGORICAL[self.categorical]
        matrices = {
            attribute.name: number(attribute, scaled=self.scaled) if attribute.numeric else encode(attribute)
            for attribute in self.domain.attributes
        }
        if not self.domain[self.target].numeric:
            matrices[self.target] = ordinal(self.domain[self.target]) if self.several else SIGNS
        for matrix in matrices.values():  # kept, and passed to mechanisms and models
            matrix.setflags(write=False)
        return matrices

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the p features."""
        names: list[str] = []
        for name in self.features:
            attribute = self.domain[name]
            first = attribute.size - len(self.matrices[name])
            if attribute.numeric or self._one_number(name):
                names += [name, f"{name}={ABSENT}"] if attribute.numeric and attribute.missing else [name]
            else:
                named = (ABSENT if attribute.missing and not level else level for level in attribute.levels[first:])
                names += [f"{name}={level}" for level in named]
        return (*names, "(intercept)") if self.intercept else tuple(names)

    def _one_number(self, name: str) -> bool:
        """Whether an attribute is one feature, whose values have an order."""
        attribute = self.domain[name]
        return not attribute.missing if attribute.numeric else self.categorical == "ordinal"

    @cached_property
    def _ranges(self) -> dict[str, tuple[Floats, Floats]]:
        """Attribute -> the least and the greatest value (p_j,) of each of its encoded entries over the domain."""
        ends = {name: (matrix.min(axis=1), matrix.max(axis=1)) for name, matrix in self.matrices.items()}
        for attribute in self.domain.attributes:
            if self.exact and attribute.bounds is not None:
                lower, upper = scalar(attribute, attribute.bounds, scaled=self.scaled)[0]
                ends[attribute.name] = np.array([lower]), np.array([upper])
                if attribute.missing:
                    ends[attribute.name] = np.array([min(lower, 0.0), 0.0]), np.array([max(upper, 0.0), 1.0])
        return ends

    @property
    def box(self) -> tuple[Floats, Floats]:
        """The least and the greatest value (p,) of each feature over the domain."""
        ends = [self._ranges[name] for name in self.features]
        ones = [np.ones(int(self.intercept))]
        return np.concatenate([low for low, _ in ends] + ones), np.concatenate([high for _, high in ends] + ones)

    @cached_property
    def corners(self) -> tuple[Floats, ...]:
        """For each feature attribute its extreme encoded values (p_j, k), and 1 for an intercept.

        The two ends of a number or a code; for a one-hot attribute three levels, enough to represent all: 0 is among
        them if encoded. Of a number that may be missing the two ends, and a missing one.
        """
        values = [self._corners(name) for name in self.features]
        return (*values, np.ones((1, 1))) if self.intercept else tuple(values)

    def _corners(self, name: str) -> Floats:
        if self._one_number(name):
            return np.stack(self._ranges[name], axis=1)
        attribute = self.domain[name]
        if attribute.bounds is None:
            return self.matrices[name][:, :3]
        numbers = attribute.bounds if self.exact else attribute.values
        ends = scalar(attribute, [min(numbers), max(numbers)], scaled=self.scaled)
        return np.block([[ends, np.zeros((1, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])

    @cached_property
    def peaks(self) -> Floats:
        """The largest absolute value of each feature attribute's only non-zero entry, and 1 for an intercept."""
        return np.array([np.abs(values).max(initial=0.0) for values in self.corners])

    @property
    def x_bound(self) -> float:
        """||X||: the least upper bound of ||x||_2 over the domain (DD-SSP, Proposition 3.1).

        Each attribute adds the largest squared norm of any of its encoded values: 1 if one-hot, max_s v_j(s)^2 if
        scalar; an intercept adds 1.
        """
        return float(np.sqrt((self.peaks**2).sum()))

    @property
    def target_range(self) -> tuple[float, float]:
        """The least and the greatest y over the domain."""
        low, high = self._ranges[self.target]
        return float(low[0]), float(high[0])

    @property
    def y_bound(self) -> float:
        """||Y||: the least upper bound of |y| over the domain."""
        return max(map(abs, self.target_range))

    @property
    def binary(self) -> bool:
        """Whether y is -1 or +1 and nothing else, as classification needs."""
        return sorted(self.matrices[self.target][0]) == [-1.0, 1.0]

    @property
    def counted(self) -> bool:
        """Whether the target is a count: one of listed whole numbers of at least 0, as Poisson regression needs."""
        target = self.domain[self.target]
        return target.discrete_values and all(value >= 0 and value.is_integer() for value in target.values)

    @property
    def several(self) -> bool:
        """Whether y is the code of one of more than two levels."""
        attribute = self.domain[self.target]
        return self.classes and not attribute.numeric and attribute.size > 2

    @property
    def target_scale(self) -> float:
        """Units of the target for one unit of y (1 for a target of two levels)."""
        lower, upper = self.domain[self.target].bounds or (-1.0, 1.0)
        return (upper - lower) / 2 if self.scaled else 1.0

    def encode(self, table: Table) -> tuple[Floats, Floats]:
        """X (n, p) and y (n,) of the rows of a table over this domain."""
        X, start = np.zeros((len(table), len(self.columns))), 0
        begins = np.arange(len(table)) * X.shape[1]  # of each row, in the numbers one after the other
        for name in self.features:
            matrix = self.matrices[name]
            stop = start + len(matrix)
            if self._is_exact(name, table):
                X[:, start:stop] = self._exact(name, table).T
            elif len(matrix) == 1:
                X[:, start] = matrix[0][table.column(name)]
            elif len(matrix):
                (places, entries), codes = self._entries[name], table.column(name)
                X.reshape(-1)[begins + (start + places)[codes]] = entries[codes]
            start = stop
        X[:, start:] = 1.0  # of the intercept
        return X, self.targets(table)

    def targets(self, table: Table) -> Floats:
        """y (n,) of the rows alone."""
        name = self.target
        exact = self._is_exact(name, table)
        y: Floats = self._exact(name, table)[0] if exact else self.matrices[name][0][table.column(name)]
        return y

    def _is_exact(self, name: str, table: Table) -> bool:
        """Whether the attribute's numbers are taken as they are, not those of its bins."""
        return self.exact and name in table.numbers

    def _exact(self, name: str, table: Table) -> Floats:
        """The numbers of one attribute (p_j, n)."""
        numbers = scalar(self.domain[name], table.numbers[name], scaled=self.scaled)
        if not self.domain[name].missing:
            return numbers
        return np.vstack([np.nan_to_num(numbers), np.isnan(numbers)])

    @cached_property
    def _entries(self) -> dict[str, tuple[NDArray[np.intp], Floats]]:
        """Feature attribute of several features -> the place of the only non-zero entry of each level (m_j,), and that
        entry (m_j,).
        """
        several = {name: self.matrices[name] for name in self.features if len(self.matrices[name]) > 1}
        places = {name: np.abs(matrix).argmax(axis=0) for name, matrix in several.items()}
        return {name: (place, several[name][place, np.arange(len(place))]) for name, place in places.items()}

    def moments(self, marginals: Mapping[Clique, Floats]) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) from pairwise marginals (DD-SSP, Proposition 3.2 and Algorithm 1).

        Block (j, k) of Z'Z is A_j <mu_jk> A_k'. Every pair of the domain's attributes is in some marginal of
        `marginals`; pairs that are not given, single marginals and the total follow by summation.

        Raises `UserError` naming a pair that is missing.
        """
        names = (*self.features, self.target)
        single = {name: marginal(marginals, (name,)) for name in self.domain.names}
        maps = {name: self.matrices[name] for name in names}
        if self.intercept:  # a constant feature is an attribute of one level
            names = (*self.features, "", self.target)
            maps[""] = np.ones((1, 1))
        start = np.cumsum([0, *(len(maps[name]) for name in names)])
        gram = np.zeros((start[-1], start[-1]))
        for (j, one), (k, two) in combinations(enumerate(names), 2):
            block = maps[one] @ self._joint(one, two, marginals, single) @ maps[two].T
            gram[start[j] : start[j + 1], start[k] : start[k + 1]] = block
        gram += gram.T
        for j, name in enumerate(names):  # <mu_jj> = diag(mu_j)
            mu = single[name] if name else np.atleast_1d(next(iter(single.values())).sum())
            gram[start[j] : start[j + 1], start[j] : start[j + 1]] = (maps[name] * mu) @ maps[name].T
        return gram[:-1, :-1], gram[:-1, -1]

    def _joint(self, one: str, two: str, marginals: Mapping[Clique, Floats], single: Mapping[str, Floats]) -> Floats:
        """<mu_jk> (m_j, m_k), where the name of the constant feature is empty."""
        if not one:
            return single[two][None, :]
        if not two:
            return single[one][:, None]
        return marginal(marginals, (one, two))


def _predictable(attribute: Attribute) -> bool:
    return attribute.size >= 2 and not attribute.missing if attribute.numeric else attribute.size == 2


def pairs(domain: Domain) -> tuple[Clique, ...]:
    """Every pair of attributes, in the domain's order."""
    return tuple(combinations(domain.names, 2))


def marginal(marginals: Mapping[Clique, Floats], names: Clique) -> Floats:
    """The marginal of `names`, its axes in their order: the one given, else the mean of the sums of all that contain
    them.

    For consistent marginals each table gives the same sums. Raises `UserError` if no marginal contains all of them.
    """
    holding = [clique for clique in marginals if set(names) <= set(clique)]
    given = [clique for clique in holding if len(clique) == len(names)]
    if not holding:
        raise UserError(
            f"the release has no marginal of ({', '.join(names)}); its workload must contain all {len(names)}-way ones"
        )
    tables = [_summed(marginals[clique], clique, names) for clique in given or holding]
    mean: Floats = np.mean(tables, axis=0)
    return mean


def _summed(table: Floats, clique: Clique, names: Clique) -> Floats:
    rest = tuple(axis for axis, name in enumerate(clique) if name not in names)
    left = [name for name in clique if name in names]
    summed: Floats = table.sum(axis=rest)
    return summed.transpose([left.index(name) for name in names])


def second_moments(X: Floats, y: Floats) -> tuple[Floats, Floats]:
    """X'X (p, p) and X'y (p,) of the rows X (n, p), y (n,)."""
    return X.T @ X, X.T @ y
