"""Relaxed rows: distributions over levels, and numbers, moved by gradient steps to answers of queries (RAP++).

| here | |
| --- | --- |
| P | distributions over the W levels of all attributes without numbers, of each of K relaxed rows: (W, K) |
| x | their numbers, scaled to [0, 1]: (m, K) |
| H, b | where H x > b, levels are counted: a halfspace, where H has one row, or a prefix, where x is above thresholds |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .measurements import Array, Clique
from .mixture import adam
from .product_queries import softmax, softmax_slope
from .products import Distributions, levels_of, table, table_slopes

FIRST = 2.0  # steepness of the sigmoids, which is doubled from there (authors' code)
PATIENCE = 5  # steps of Adam that do not lower the loss


@dataclass(frozen=True, eq=False)
class Query:
    """How many rows have each combination of levels of a clique: of all rows, or of those with H x > b.

    **Shapes** H (k, m), b (k,).
    """

    clique: Clique
    H: Array | None = None
    b: Array | None = None
    kind: str = "marginal"

    @property
    def label(self) -> str:
        """What the ledger calls it."""
        return " ".join([self.kind, ",".join(self.clique)]).strip()

    @property
    def penalty(self) -> int:
        """What a cell takes from a score: a row of a marginal, and nothing of the others (authors' code)."""
        return int(self.H is None)

    def distances(self, x: Array | Distributions) -> Distributions:
        """H x - b (k, n); of a marginal (0, n)."""
        if self.H is None or self.b is None:
            return x[:0]
        found: Distributions = self.H.astype(x.dtype) @ x - self.b[:, None].astype(x.dtype)
        return found


def random_halfspaces(count: int, m: int, targets: Sequence[str], rng: np.random.Generator) -> list[Query]:
    """As many as `count`, of m numbers, each by the levels of a random target; none where there are no numbers."""
    if not m:
        return []
    h, b = rng.standard_normal((count, 1, m)) / math.sqrt(m), rng.standard_normal((count, 1))
    return [Query(*one, "halfspace") for one in zip(random_cliques(count, targets, rng), h, b, strict=True)]


def random_prefixes(count: int, m: int, targets: Sequence[str], rng: np.random.Generator) -> list[Query]:
    """As many as `count`, each of two of m numbers (or of the only one), by the levels of a random target."""
    if not m:
        return []
    places = rng.random((count, m)).argsort(axis=1)[:, :2]
    return [
        Query(*one, "prefix")
        for one in zip(random_cliques(count, targets, rng), np.eye(m)[places], rng.random(places.shape), strict=True)
    ]


def random_cliques(count: int, targets: Sequence[str], rng: np.random.Generator) -> list[Clique]:
    """A random target for each query; no attribute, where there are no targets."""
    return [(targets[i],) for i in rng.integers(len(targets), size=count)] if targets else [()] * count


@dataclass(frozen=True)
class Relaxed:
    """K relaxed rows. **Shapes** `z` (W + m, K): logits of the levels of attributes of these sizes, and the numbers."""

    sizes: dict[str, int]
    z: Distributions

    @classmethod
    def at_random(cls, sizes: dict[str, int], m: int, components: int, rng: np.random.Generator) -> Relaxed:
        """Logits from a standard normal distribution, numbers uniform."""
        logits, x = rng.standard_normal((sum(sizes.values()), components)), rng.random((m, components))
        return cls(sizes, np.concatenate([logits, x]).astype(np.float32))

    @cached_property
    def levels(self) -> dict[str, slice]:
        """The rows of each attribute in P."""
        return levels_of(self.sizes)

    @cached_property
    def P(self) -> Distributions:
        """The distributions; those of an attribute sum to 1."""
        return softmax(self.z[: self.width], list(self.sizes.values()))

    @cached_property
    def x(self) -> Distributions:
        """The numbers, which end at the bounds."""
        return np.clip(self.z[self.width :], 0, 1)

    @property
    def width(self) -> int:
        """W."""
        return sum(self.sizes.values())

    def answer(self, query: Query, steepness: float = math.inf) -> Array:
        """The shares of the rows in each cell."""
        parts = self.parts(query, insides(query, self.x, steepness))
        return table(parts).reshape([self.sizes[name] for name in query.clique])

    def parts(self, query: Query, inside: Distributions) -> list[Distributions]:
        """The product of `insides` (K, 1), if the query has an H; P (K, levels) of each attribute."""
        product = [] if query.H is None else [inside.prod(axis=0)[:, None]]
        return [*product, *(self.P[self.levels[name]].T for name in query.clique)]

    def loss(self, measured: Mapping[Query, Array], steepness: float = math.inf) -> float:
        """The sum of squared differences from all measured answers."""
        gaps = (self.answer(query, steepness) - wanted for query, wanted in measured.items())
        return sum(float(np.vdot(gap, gap)) for gap in gaps)

    def slope(self, measured: Mapping[Query, Array], steepness: float) -> tuple[float, Distributions]:
        """The loss and its derivative by z, 0 where a number at a bound would leave it."""
        slope, loss = np.zeros_like(self.z), 0.0
        dP, dx = slope[: self.width], slope[self.width :]
        for query, wanted in measured.items():
            inside = insides(query, self.x, steepness)
            parts = self.parts(query, inside)
            gap = table(parts) - wanted.reshape([part.shape[1] for part in parts]).astype(slope.dtype)
            loss += float(np.vdot(gap, gap))
            found = table_slopes(parts, 2 * gap)
            if query.H is not None:
                by_inside = parts[0][:, 0] * (1 - inside) * found.pop(0)[:, 0]
                dx += steepness * query.H.T.astype(dx.dtype) @ by_inside
            for name, one in zip(query.clique, found, strict=True):
                dP[self.levels[name]] += one.T
        dP[:] = softmax_slope(self.P, dP, list(self.sizes.values()))
        x = self.z[self.width :]
        dx *= ((x > 0) | (dx < 0)) & ((x < 1) | (dx > 0))
        return loss, slope

    def fitted(self, measured: Mapping[Query, Array], doublings: int, iterations: int, rate: float) -> Relaxed:
        """Moved towards the measured answers by steeper and steeper sigmoids: the best at the end of each, or these."""
        z, found = self.z, [self]
        for doubled in range(doublings + 1):

            def slope(z: Distributions, steepness: float = FIRST * 2**doubled) -> tuple[float, Distributions]:
                return replace(self, z=z).slope(measured, steepness)

            z, _ = adam(slope, z, iterations, patience=PATIENCE, rate=rate)
            found.append(replace(self, z=z))
        return min(found, key=lambda one: one.loss(measured))


def insides(query: Query, x: Distributions, steepness: float) -> Distributions:
    """Whether each of H x > b (k, K), by sigmoids unless the steepness is infinite."""
    from scipy.special import expit

    distances = query.distances(x)
    return (distances > 0 if math.isinf(steepness) else expit(steepness * distances)).astype(x.dtype)
