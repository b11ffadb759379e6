"""Noisy marginals: what an estimate is made from, and how repeated and nested ones become one."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Clique = tuple[str, ...]
LEAST_SIGMA, MOST_SIGMA = 1e-60, 1e60  # sigma**-4 times a squared count stays within float64
Array = npt.NDArray[np.float64]


class InferenceError(ValueError):
    """A request that the estimation engine refuses; the message says what was given and what is allowed."""


@dataclass(frozen=True)
class Measurement:
    """A marginal table with independent N(0, sigma^2) noise on every cell.

    **Shapes**: `values` has the sizes of `clique`'s attributes, in that order; cells may be negative.
    """

    clique: Clique
    values: Array
    sigma: float

    @cached_property
    def residuals(self) -> dict[tuple[int, ...], Array]:
        """`residuals` of its values: an adaptive mechanism asks for them in every round."""
        return residuals(self.values)


@dataclass(frozen=True)
class Target:
    """Sufficient statistics of a list of measurements: one consistent table and one weight per clique.

    Up to a constant, sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2) equals
    sum_C weights[C] ||M_C(p) - tables[C]||^2 / 2 for every p of this total; and the tables agree with
    each other on what they share, which a noisy y_i does not.
    """

    cliques: tuple[Clique, ...]
    tables: tuple[Array, ...]
    weights: tuple[float, ...]
    total: float


def canonical(cliques: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> list[Clique]:
    """The cliques themselves, once their names are known to be attributes, each once, in the order of `sizes`."""
    place = {name: i for i, name in enumerate(sizes)}
    found = [tuple(clique) for clique in cliques]
    for clique in found:
        unknown = [name for name in clique if name not in place]
        if unknown:
            raise InferenceError(f"clique {clique}: unknown attribute {unknown[0]!r}; known: {', '.join(sizes)}")
        ordered = tuple(sorted(set(clique), key=place.__getitem__))
        if ordered != clique:
            raise InferenceError(f"clique {clique}: name each attribute once, in the order of the domain: {ordered}")
    return found


def check_measurement(measurement: Measurement, sizes: Mapping[str, int]) -> None:
    """Refuse a measurement that the engine could only answer with NaN, naming what is wrong."""
    [clique] = canonical([measurement.clique], sizes)
    shape = tuple(int(sizes[name]) for name in clique)
    if measurement.values.shape != shape:
        raise InferenceError(
            f"measurement of {clique}: values have shape {measurement.values.shape}, its attributes {shape}"
        )
    if not np.all(np.isfinite(measurement.values)):
        raise InferenceError(f"measurement of {clique}: values must be finite, some are NaN or infinite")
    if not LEAST_SIGMA <= measurement.sigma <= MOST_SIGMA:
        raise InferenceError(
            f"measurement of {clique}: sigma is {measurement.sigma}; "
            f"it must be > 0, between {LEAST_SIGMA} and {MOST_SIGMA}"
        )


def checked_sizes(sizes: Mapping[str, int], measurements: Sequence[Measurement]) -> dict[str, int]:
    """The sizes as whole numbers, once the domain and each measurement over it are known to be usable."""
    if not sizes:
        raise InferenceError("the domain has no attributes; give at least one name with its size")
    for name, size in sizes.items():
        if int(size) != size or size < 1:
            raise InferenceError(f"attribute {name!r} has size {size}; a size is a whole number >= 1")
    whole = {name: int(size) for name, size in sizes.items()}
    for measurement in measurements:
        check_measurement(measurement, whole)
    return whole


def residuals(table: Array) -> dict[tuple[int, ...], Array]:
    """Orthogonal (ANOVA) parts: for each subset S of the axes, the table summed over the other axes and
    centred along each axis of S. ||table||^2 = sum_S ||part_S||^2 / (cells of the other axes)."""
    parts: dict[tuple[int, ...], Array] = {(): table}
    for axis in range(table.ndim):
        grown: dict[tuple[int, ...], Array] = {}
        for kept, part in parts.items():
            at = len(kept)
            summed = part.sum(axis=at)
            grown[kept] = summed
            grown[(*kept, axis)] = part - np.expand_dims(summed / part.shape[at], at)
        parts = grown
    return parts


def combined(
    sizes: Mapping[str, int], measurements: Sequence[Measurement]
) -> tuple[dict[Clique, Array], dict[Clique, float]]:
    """The residuals of all measured tables, each the inverse-variance mean over those that hold it, and its weight.

    The weight is 1/variance of the noise of a cell, as it was before the residual was centred.

    **Source**: a residual has independent noise of one variance in each measurement that holds it; so the best linear
    unbiased estimate of a table is an inverse-variance mean, residual by residual (GReM-MLE of Mullins et al. 2024).
    """
    sums: dict[Clique, Array] = {}
    weights: dict[Clique, float] = {}
    for m in measurements:
        add_residuals(sums, weights, sizes, m)
    return {subset: total / weights[subset] for subset, total in sums.items()}, weights


def add_residuals(
    sums: dict[Clique, Array], weights: dict[Clique, float], sizes: Mapping[str, int], m: Measurement
) -> list[Clique]:
    """Add the residuals of a measurement, each times its weight, to the sums, and the weights; their cliques."""
    found = []
    for axes, part in m.residuals.items():
        subset = tuple(m.clique[a] for a in axes)
        others = math.prod(sizes[name] for name in m.clique if name not in subset)
        share = m.sigma**-2 / others
        sums[subset] = sums.get(subset, 0.0) + share * part
        weights[subset] = weights.get(subset, 0.0) + share
        found.append(subset)
    return found


def assembled(sizes: Mapping[str, int], parts: Mapping[Clique, Array], clique: Clique) -> Array:
    """The marginal of a clique: the sum of its subsets' residuals, each spread evenly over the other attributes.

    A residual that is not among the `parts` is 0, as in a uniform table.
    """
    table = np.zeros(tuple(int(sizes[name]) for name in clique), dtype=np.float64)
    for count in range(len(clique) + 1):
        for subset in itertools.combinations(clique, count):
            if subset in parts:
                others = math.prod(sizes[name] for name in clique if name not in subset)
                view = tuple(int(sizes[name]) if name in subset else 1 for name in clique)
                table += parts[subset].reshape(view) / others
    return table


def fold(sizes: Mapping[str, int], measurements: Sequence[Measurement]) -> Target:
    """One consistent table per distinct clique, by inverse variance (`combined`), and the total.

    The residual of the empty subset is the minimum-variance unbiased total (variance of a table's sum = cells *
    sigma^2), floored at 1.
    """
    means, _ = combined(sizes, measurements)
    at_clique: dict[Clique, float] = {}
    for m in measurements:
        at_clique[m.clique] = at_clique.get(m.clique, 0.0) + m.sigma**-2
    total = max(1.0, float(means[()])) if means else 1.0
    means[()] = np.asarray(total, dtype=np.float64)
    tables = tuple(assembled(sizes, means, clique) for clique in at_clique)
    return Target(tuple(at_clique), tables, tuple(at_clique.values()), total)


def loss_of(measurements: Sequence[Measurement], answers: Mapping[Clique, Array]) -> float:
    """sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2), the quantity that an estimate minimises."""
    return float(sum(0.5 * np.sum(((answers[m.clique] - m.values) / m.sigma) ** 2) for m in measurements))
