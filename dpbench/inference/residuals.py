"""Marginals by their residuals: of each clique, the part that belongs to all of its attributes together.

The residual r_A of a table is the table summed onto A and centred along each axis. A marginal on C is the sum over the
subsets A of C of r_A, spread evenly over the cells of C \\ A. Residuals of different A are orthogonal, and any set of
them, for which a set has all of its subsets, makes marginals that agree on what they share.

**Source**: Xiao, He, Zhang and Kifer 2023 (ResidualPlanner), section 4, whose subtraction matrices give the same
subspaces another basis; Mullins et al. 2024 (ReM), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique, Measurement, add_residuals, assembled, checked_sizes, combined

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Residuals:
    """Noisy residuals over attributes of these `sizes`.

    **Shapes**: `values[A]` has the sizes of A and sums to 0 along each axis; that of the empty clique is the number of
    rows. `variances[A]` is that of independent Gaussian noise on each cell before it was centred; 0 where there is
    none. Cliques that are not among them were not measured.
    """

    sizes: Mapping[str, int]
    values: Mapping[Clique, Array]
    variances: Mapping[Clique, float]

    @classmethod
    def of(cls, sizes: Mapping[str, int], measurements: Sequence[Measurement], n: int | None = None) -> Residuals:
        """The best linear unbiased estimate from noisy marginals (GReM-MLE), given the number of rows if it is public.

        >>> ab = Measurement(("a", "b"), np.array([[4.0, 0.0], [1.0, 3.0]]), 1.0)
        >>> {"".join(r): x.tolist() for r, x in Residuals.of({"a": 2, "b": 2}, [ab]).values.items()}
        {'': 8.0, 'b': [1.0, -1.0], 'a': [0.0, 0.0], 'ab': [[1.5, -1.5], [-1.5, 1.5]]}
        """
        values, weights = combined(checked_sizes(sizes, measurements), measurements)
        variances = {clique: 1 / weight for clique, weight in weights.items()}
        if n is not None:
            values[()], variances[()] = np.asarray(float(n)), 0.0
        return cls(sizes, values, variances)

    @property
    def total(self) -> float:
        """The estimated number of rows, at least 1."""
        return max(1.0, float(self.values.get((), 1.0)))

    def marginal(self, clique: Clique) -> Array:
        """The table of a clique: unbiased if all of its subsets were measured. Cells may be negative."""
        return assembled(self.sizes, self.values, clique)

    def variance(self, clique: Clique) -> float:
        """The variance of each cell of `marginal(clique)` (Xiao et al. 2023, section 4), if all subsets were measured.

        It is the sum over A of variances[A] prod_(i in A) (1 - 1/m_i) / prod_(j in C \\ A) m_j^2, m the sizes.
        """
        return sum(self.variances[r] * share for r, share in shares(self.sizes, clique) if share > 0)


class RunningAnswers:
    """Answers to marginals from the measurements so far; one more of them costs no more than its own residuals.

    A clique inside a measured one is answered by the estimate of `Residuals.of`. Of another one the residual is not
    known. GReM has 0 for it, a sum of smaller tables whose cells are often negative. Its answer here is the product of
    its subsets' answers with alternating exponents (Kirkwood 1935): independence, for two attributes.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self._sums: dict[Clique, Array] = {}
        self._weights: dict[Clique, float] = {}
        self._means: dict[Clique, Array] = {}

    @property
    def total(self) -> float:
        """The estimated number of rows, at least 1."""
        return max(1.0, float(self._means.get((), 1.0)))

    def add(self, measurement: Measurement) -> None:
        """Take in one more noisy marginal."""
        for r in add_residuals(self._sums, self._weights, self.sizes, measurement):
            self._means[r] = self._sums[r] / self._weights[r]

    def distribution(self, clique: Clique, smaller: Mapping[Clique, Array]) -> Array:
        """The answer as parts of the total, none negative, given those to the clique's proper subsets."""
        if clique in self._means:
            return on_simplex(assembled(self.sizes, self._means, clique) / self.total, 1.0)
        shape = [self.sizes[name] for name in clique]
        log = np.zeros(shape)
        with np.errstate(divide="ignore", invalid="ignore"):  # a cell without rows has none in larger tables
            for k in range(1, len(clique)):
                for r in combinations(clique, k):
                    view = [m if name in r else 1 for name, m in zip(clique, shape, strict=True)]
                    log += (-1) ** (len(clique) - 1 - k) * np.log(smaller[r]).reshape(view)
        product = np.exp(np.nan_to_num(log, nan=-np.inf, posinf=-np.inf))
        return product / product.sum() if product.sum() > 0 else np.full(shape, 1 / product.size)


def on_simplex(table: Array, total: float) -> Array:
    """The nearest table of non-negative cells that sum to `total` (Duchi et al. 2008, Figure 1).

    >>> on_simplex(np.array([3.0, -1.0, 2.0]), 4.0).tolist()
    [2.5, 0.0, 1.5]
    """
    ordered = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, table.size + 1)
    lowered: Array = table - excess[np.flatnonzero(ordered >= excess)[-1]]  # >=: next to 1e100 a total of 1 is nothing
    return np.maximum(lowered, 0.0)


def shares(sizes: Mapping[str, int], clique: Clique) -> Iterator[tuple[Clique, float]]:
    """The subsets A of a clique C, each with what noise of variance 1 on its residual adds to a cell of C."""
    for count in range(len(clique) + 1):
        for r in combinations(clique, count):
            others = math.prod(sizes[name] for name in clique if name not in r)
            yield r, centring(sizes, r) / others**2


def centring(sizes: Mapping[str, int], clique: Clique) -> float:
    """prod_(i in A) (1 - 1/m_i): the squared l2 norm of a centred table of one row, and so p_A of ResidualPlanner."""
    return math.prod(1 - 1 / sizes[name] for name in clique)


def centred(table: Array) -> Array:
    """The table less its means along each axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def whole_centred(table: Whole) -> Whole:
    """The centred table times the number of its cells: whole numbers.

    >>> whole_centred(np.array([[4, 0], [1, 3]])).tolist()
    [[6, -6], [-6, 6]]
    """
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table
