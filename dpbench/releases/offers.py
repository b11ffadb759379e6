"""The kinds of output that a release may hold, each a `Part`, and how they are stored; `Distribution` has a file."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.errors import ContractError, shown
from dpbench.files import Json
from dpbench.inference.glm_statistics import blocks, sum_statistics

from .checks import check_array, check_plain, kind_of

Arrays = dict[str, np.ndarray[Any, Any]]
OUTSIDE = ("scale", "drop")


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


@dataclass(frozen=True)
class SufficientStatistics(Part):
    """Noisy X'X (p, p), symmetric but perhaps indefinite, and X'y (p,), with the standard deviations of their noise.

    `ridge` is the multiple of the identity to be added to X'X (AdaSSP's lambda; else 0).
    `yty` is a noisy y'y, where it was released too.
    """

    kind: ClassVar[str] = "statistics"
    xtx: Floats
    xty: Floats
    xtx_sd: float
    xty_sd: float
    ridge: float = 0.0
    yty: float | None = None

    @property
    def covariance(self) -> Floats:
        """The covariance (q, q) of the noise of the q = p (p + 1) / 2 + p free entries, which are independent.

        Their order: the upper triangle of X'X row by row, as `numpy.triu_indices` has it, and then X'y.
        """
        p = len(self.xty)
        return np.diag(np.repeat([self.xtx_sd**2, self.xty_sd**2], [p * (p + 1) // 2, p]))

    def check(self, domain: Domain) -> None:
        """X'X is (p, p) and X'y (p,), both finite."""
        p = len(self.xty) if isinstance(self.xty, np.ndarray) and self.xty.ndim else 0
        check_array("X'y of the release", self.xty, (p,))
        check_array("X'X of the release", self.xtx, (p, p))
        check_plain("the noise of the statistics", [self.xtx_sd, self.xty_sd, self.ridge, self.yty])

    def exact(self, train: Table, design: Design) -> SufficientStatistics:
        """X'X, X'y and y'y of the rows, without a ridge."""
        X, y = design.encode(train)
        return SufficientStatistics(*second_moments(X, y), 0.0, 0.0, yty=None if self.yty is None else float(y @ y))


@dataclass(frozen=True)
class BinSums(Part):
    """K bins of the box of a `Design`'s features, with noisy counts and sums of the rows in each (BinAgg, Alg. 1, 2).

    `lower`, `upper` (K, p): the edges. `counts` (K,) int64. `sums` (K, p) of x and `targets` (K,) of y, with the
    standard deviations of their noise given the counts, `sums_sd` (K, p) and `targets_sd`.
    """

    kind: ClassVar[str] = "bins"
    lower: Floats
    upper: Floats
    counts: Codes
    sums: Floats
    targets: Floats
    sums_sd: Floats
    targets_sd: float

    def check(self, domain: Domain) -> None:
        """All arrays are of K bins, and of p features where they belong to features."""
        K, p = np.shape(self.sums) if np.ndim(self.sums) == 2 else (0, 0)
        for name in ("lower", "upper", "sums", "sums_sd"):
            check_array(f"{name} of the bins", getattr(self, name), (K, p), finite=False)
        for name in ("counts", "targets"):
            check_array(f"{name} of the bins", getattr(self, name), (K,), finite=False)
        check_plain("targets_sd of the bins", self.targets_sd)

    def exact(self, train: Table, design: Design) -> BinSums:
        """The sums of the rows in the same bins, without those that are empty.

        A row is in the bin with lower <= x < upper, and in the last one at the top of the box.
        """
        X, y = design.encode(train)
        X, y = np.clip(X, *design.box, out=X), np.clip(y, *design.target_range)
        rows = self._rows_inside(X, design.box)
        kept = np.array([len(inside) > 0 for inside in rows], dtype=bool)
        rows, lower, upper = [inside for inside in rows if len(inside)], self.lower[kept], self.upper[kept]
        counts = np.array([len(inside) for inside in rows], dtype=np.int64)
        sums = np.array([X[inside].sum(axis=0) for inside in rows]).reshape(lower.shape)
        targets = np.array([y[inside].sum() for inside in rows], dtype=float)
        return BinSums(lower, upper, counts, sums, targets, np.zeros(lower.shape), 0.0)

    def _rows_inside(self, X: Floats, box: tuple[Floats, Floats]) -> list[Codes]:
        """The places of the rows in each bin. Bins are leaves of a tree: few features bound one, the same for many."""
        bounding = (self.lower > box[0]) | (self.upper < box[1])
        upper = np.where(self.upper < box[1], self.upper, np.inf)
        features = np.argsort(-bounding.sum(axis=0), kind="stable")

        @lru_cache(maxsize=128)
        def inside(bounds: tuple[tuple[int, float, float], ...]) -> Codes:
            if not bounds:
                return np.arange(len(X))
            rows, (j, low, high) = inside(bounds[:-1]), bounds[-1]
            x = X[rows, j]
            kept: Codes = rows[(low <= x) & (x < high)]
            return kept

        return [
            inside(tuple((j, self.lower[k, j], upper[k, j]) for j in features if bounding[k, j]))
            for k in range(len(bounding))
        ]

    @property
    def outline(self) -> Hashable:
        """The edges."""
        return self.lower.tobytes(), self.upper.tobytes()


@dataclass(frozen=True)
class Marginals(Part):
    """Clique -> counts of the shape of the clique, as they were measured or as a fitted model answers them.

    `noise`: the cliques that were measured, in this order, each with the standard deviation of its cells' independent
    Gaussian noise; empty if there was none. `of_residuals`: the measurements were not the marginals of these cliques
    but their residuals (`inference.residuals`), whose noise was centred with them.
    """

    kind: ClassVar[str] = "marginals"
    tables: Mapping[Clique, Floats]
    noise: tuple[tuple[Clique, float], ...] = ()
    of_residuals: bool = False

    def check(self, domain: Domain) -> None:
        """Each table has the shape of its clique; the measured cliques are cliques of the domain."""
        for clique in (*self.tables, *(clique for clique, _ in self.noise)):
            if type(clique) is not tuple or not set(clique) <= set(domain.names):
                raise ContractError(f"a marginal must be of a tuple of attributes, not of {shown(clique)}")
        for clique, counts in self.tables.items():
            check_array(f"the marginal {','.join(clique)}", counts, domain.shape(clique))
        for clique, sd in self.noise:  # one by one, since a large workload exceeds the limit for plain data
            check_plain(f"the noise of the marginals, of {','.join(clique)}", sd)
        check_plain("of_residuals of the marginals", self.of_residuals)

    def to_parts(self) -> tuple[Json, Arrays]:
        """The tables as arrays, in the order of their cliques."""
        data: Json = {
            "cliques": [list(clique) for clique in self.tables],
            "noise": [[list(r), sd] for r, sd in self.noise],
        }
        if self.of_residuals:
            data["of_residuals"] = True
        return data, {str(i): table for i, table in enumerate(self.tables.values())}

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> Marginals:
        """The marginals that `to_parts` wrote."""
        tables = {tuple(clique): arrays[str(i)] for i, clique in enumerate(data["cliques"])}
        noise = tuple((tuple(clique), sd) for clique, sd in data["noise"])
        return cls(tables, noise, data.get("of_residuals", False))

    def exact(self, train: Table, design: Design) -> Marginals:
        """The marginals of the rows on the same cliques."""
        return Marginals(train.marginals(list(self.tables)))

    @property
    def outline(self) -> Hashable:
        """The cliques."""
        return tuple(self.tables)


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


@dataclass(frozen=True)
class SyntheticTables(Part):
    """Several synthetic tables of the same size, each of its own draw of the distribution: to combine estimates from.

    `table` has the rows of all `count` tables, one table after the other.
    """

    kind: ClassVar[str] = "tables"
    table: Table
    count: int

    @property
    def size(self) -> int:
        """The number of rows of each."""
        return len(self.table) // self.count

    def __iter__(self) -> Iterator[Table]:
        return (self.table.take(np.arange(self.size) + i * self.size) for i in range(self.count))

    def check(self, domain: Domain) -> None:
        """The rows are a table over the domain, and fill two tables or more."""
        SyntheticRows(self.table).check(domain)
        if type(self.count) is not int or self.count < 2 or len(self.table) % self.count:
            raise ContractError(
                f"synthetic tables must be two or more of the same size, not {shown(self.count)} of {len(self.table)} "
                "rows in all"
            )

    def to_parts(self) -> tuple[Json, Arrays]:
        """The rows as those of `SyntheticRows`, and the number of tables."""
        data, arrays = SyntheticRows(self.table).to_parts()
        return {**data, "count": self.count}, arrays

    @classmethod
    def from_parts(cls, domain: Domain, data: Json, arrays: Arrays) -> SyntheticTables:
        """The tables that `to_parts` wrote."""
        return cls(SyntheticRows.from_parts(domain, data, arrays).table, data["count"])

    def exact(self, train: Table, design: Design) -> SyntheticTables:
        """The training rows themselves, twice."""
        return SyntheticTables(train.take(np.tile(np.arange(len(train)), 2)), 2)


@dataclass(frozen=True)
class Coefficients(Part):
    """theta (p,) in the order of `Design.columns`, with the covariance (p, p) of its noise, if known."""

    kind: ClassVar[str] = "coefficients"
    values: Floats
    covariance: Floats | None = None

    def check(self, domain: Domain) -> None:
        """theta is (p,), and its covariance, if there is one, (p, p)."""
        shape = np.shape(self.values)[:1]
        check_array("the coefficients of the release", self.values, shape)
        if self.covariance is not None:
            check_array("the covariance of the coefficients", self.covariance, shape * 2)


@dataclass(frozen=True)
class GlmStatistics(Part):
    """The statistics `values` (k,) of `inference.glm_statistics`, the `variances` (k,) of their noise, and their rows.

    The noise of the entries is independent and Gaussian. `rows`: n where it is public; else a noisy count, whose noise
    has the standard deviation `rows_sd`, else 0. `radius`, `largest_count`, `outside`: how rows were brought within the
    bounds (see `bounded_rows`); how many were outside is private.
    """

    kind: ClassVar[str] = "glm_statistics"
    family: str
    values: Floats
    variances: Floats
    rows: float
    rows_sd: float
    radius: float
    largest_count: float
    outside: str

    @property
    def features(self) -> int:
        """d, the number of features."""
        parts = len(blocks(self.family, 1)) // 2
        return round((math.sqrt(9 + 8 * len(self.values) / parts) - 3) / 2)  # of d + d (d + 1) / 2 entries

    @property
    def covariance(self) -> Floats:
        """The covariance (k, k) of the noise of `values`."""
        return np.diag(self.variances)

    def check(self, domain: Domain) -> None:
        """The numbers of values and variances are those of the family for some number of features."""
        k = blocks(self.family, self.features)[-1].stop
        check_array("the statistics of the release", self.values, (k,))
        check_array("the variances of the statistics", self.variances, (k,))
        check_plain("the rows of the statistics", [self.rows, self.rows_sd, self.radius, self.largest_count])

    def exact(self, train: Table, design: Design) -> GlmStatistics:
        """The statistics of the rows, brought within the bounds in the same way, without noise."""
        X, y = bounded_rows(train, design, self.family, self.radius, self.largest_count, self.outside)
        values = sum_statistics(X, y, self.family)
        kept = (self.radius, self.largest_count, self.outside)
        return GlmStatistics(self.family, values, np.zeros(len(values)), float(len(y)), 0.0, *kept)

    @property
    def outline(self) -> Hashable:
        """The values on which `exact` depends, apart from the rows and the design."""
        return self.family, self.radius, self.largest_count, self.outside


def bounded_rows(
    table: Table, design: Design, family: str, radius: float, largest_count: float, outside: str
) -> tuple[Floats, Floats]:
    """X (m, d) with ||x||_2 <= `radius` and y (m,) of the rows: labels -1 and +1, or counts of at most `largest_count`.

    Rows outside of the ball are scaled onto it (`outside`: "scale"), or left out ("drop"); greater counts are clipped.
    """
    X, y = design.encode(table)
    if family == "poisson":
        counts = np.array(design.domain[design.target].values)[table.column(design.target)]
        y = np.minimum(counts, largest_count)
    norms = np.linalg.norm(X, axis=1)
    if outside == "drop":
        kept = norms <= radius
        return X[kept], y[kept]
    return X * (radius / np.maximum(norms, radius))[:, None], y
