"""A mixture of product distributions fitted to noisy marginals.

It has one size whatever is measured, so that no junction tree limits the marginals that it can be fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .engines import Model, ModelData, State, check_effort, sizes_of
from .measurements import Array, Clique, InferenceError, Measurement, Target, canonical, checked_sizes, fold, loss_of
from .model import with_total
from .products import (
    Distributions,
    Places,
    large_table,
    levels_of,
    places_of,
    softmax,
    softmax_slope,
    table,
    table_slopes,
)
from .sampling import rounded_column
from .trees import BYTES_PER_CELL, BYTES_PER_MB

COMPONENTS = 100  # K of mbi 2.0's MixtureOfProductsEstimator
SPREAD = 0.25  # standard deviation of the first logits in mbi 2.0's MixtureOfProducts.random
FLOOR = 0.1  # of its noise, and of a uniform cell: what a cell of a first marginal counts at least, as in starts.py
DECAY1, DECAY2, OFFSET = 0.9, 0.999, 1e-8  # of Adam; Kingma and Ba 2015, Algorithm 1
LEAST_GAIN = 1e-7  # of the loss, relative: a step that gains less has not lowered it
# Chosen on the measurements of AIM on Adult at epsilon = 0.5. At a rate of 0.1 the marginals that were not measured
# drift, and the error is 1.6 times as large; at 0.01, or at a tolerance of 0.003, the error stays within 2% and the
# steps are half as many again.
RATE, WINDOW, TOLERANCE = 0.03, 50, 0.01
# The tolerance of an update. AIM on Adult at epsilon = 1, three seeds: half the steps, and a mean error of 0.0447, not
# 0.0480; at 1, two seeds, 0.0456 after a sixth fewer steps; with 35 steps a round 0.0472, with 20, one seed, 0.0486.
ROUGH = 0.2
MATRIX = 4000  # p pairs over W levels take less time in one product of matrices where W^2 is below so many p
LARGEST = 1e12  # unit of the derivative: in a larger one its square might be too large for float32


@dataclass(frozen=True)
class MixtureModel(Model):
    """K product distributions of weight 1/K each, times a total.

    **Shapes**: `logits` (K, W), an attribute's levels in neighbouring columns.
    """

    logits: Array = field(repr=False)

    @classmethod
    def from_state(cls, data: ModelData, arrays: Mapping[str, Array]) -> MixtureModel:
        """The model that `state` described, which samples and answers to the same bits."""
        sizes, logits = sizes_of(data), arrays["logits"]
        if logits.ndim != 2 or logits.shape[1] != sum(sizes.values()):
            raise InferenceError(f"logits of {sum(sizes.values())} levels do not have the shape {logits.shape}")
        return cls(sizes, data["total"], data["iterations"], data["loss"], logits)

    def state(self) -> State:
        """What `inference.load_model` needs: the logits, and plain data."""
        return self.described("mixture"), {"logits": self.logits}

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The whole domain alone: any of its attributes may depend on each other."""
        return (tuple(self.sizes),)

    @property
    def size_mb(self) -> float:
        """Size of the logits in MB."""
        return logits_mb(self.logits.size)

    @cached_property
    def products(self) -> dict[str, Array]:
        """The probabilities (K, m) of each attribute's levels in each component."""
        distributions = softmax(self.logits.T, _starts(self.sizes))
        return {name: distributions[levels].T for name, levels in levels_of(self.sizes).items()}

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`."""
        answers = {}
        for names in canonical(cliques, self.sizes):
            distribution = large_table([self.products[name] for name in names]) if names else np.ones(())
            answers[names] = with_total(distribution, self.total)
        return answers

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows (rows, d): a component for each, then its attributes, both by randomised rounding."""
        K = len(self.logits)
        component = rounded_column(np.ones((1, K)), np.zeros(rows, dtype=np.int64), rng)
        return np.stack(
            [rounded_column(distribution, component, rng) for distribution in self.products.values()], axis=1
        )


@dataclass(frozen=True)
class ProductMixture:
    """Lower sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2) over mixtures p of `components` products, by Adam.

    The loss has many local minima, so that the result depends on the start: the warm start, or the one-way marginals
    with draws from `seed` that tell the components apart. It is the best of the steps, which end when 50 of them lower
    the loss by less than `tolerance` a measured cell (None: 0.01), or after `iterations`.

    **Source**: the mixture inference of private-pgm (mbi 2.0, MixtureOfProductsEstimator), close to the relaxed
    projection of Aydore et al. 2021 and the RAP^softmax of Liu et al. 2021 (DD-SSP, Appendix H, Figure 6).
    **Departures** mbi starts from the draws alone. From near independence, what is not measured stays nearer to it.
    Steps are in float32, which takes a third of the time.
    """

    components: int = COMPONENTS
    iterations: int = 1000
    tolerance: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_effort(self.iterations, self.tolerance)
        if self.components < 1:
            raise InferenceError(f"components is {self.components}; give at least 1")

    def smallest_mb(self, sizes: Mapping[str, int]) -> float:
        """Size of the logits in MB: that of every mixture of so many components, whatever is measured.

        >>> ProductMixture(components=64).smallest_mb({"a": 1024, "b": 1024})
        1.0
        """
        return logits_mb(self.components * sum(sizes.values()))

    def estimate(
        self, sizes: Mapping[str, int], measurements: Sequence[Measurement], warm_start: Model | None = None
    ) -> MixtureModel:
        """The mixture that the measurements and the start lead to.

        **Shapes**: `measurements[i].values` has the sizes of its clique. Raises `InferenceError` for invalid input.
        """
        sizes, K = checked_sizes(sizes, measurements), self.components
        if warm_start is not None and not isinstance(warm_start, MixtureModel):
            raise InferenceError(f"the warm start must be a MixtureModel, not a {type(warm_start).__name__}")
        if warm_start is not None and (dict(warm_start.sizes) != sizes or len(warm_start.logits) != K):
            raise InferenceError(
                f"the warm start has {len(warm_start.logits)} components over {dict(warm_start.sizes)}, "
                f"this model {K} over {sizes}"
            )
        target = fold(sizes, measurements)
        logits = warm_start.logits if warm_start else _first(sizes, target, K, np.random.default_rng(self.seed))
        cells = sum(t.size for t in target.tables)
        lowest, used = adam(
            objective(sizes, target),
            logits.T.astype(np.float32, order="C"),
            self.iterations,
            (self.tolerance or TOLERANCE) * cells,
        )
        model = MixtureModel(sizes, target.total, used, math.nan, lowest.T.astype(float, order="C"))
        return replace(model, loss=loss_of(measurements, model.answer(target.cliques)))

    def update(self, sizes: Mapping[str, int], measurements: Sequence[Measurement], model: Model) -> MixtureModel:
        """The mixture that the measurements and the model lead to, by a `tolerance` of 0.2 unless another is given."""
        return replace(self, tolerance=self.tolerance or ROUGH).estimate(sizes, measurements, model)


def logits_mb(count: int) -> float:
    """Size in MB of so many logits."""
    return count * BYTES_PER_CELL / BYTES_PER_MB


def objective(sizes: Mapping[str, int], target: Target) -> Callable[[Distributions], tuple[float, Distributions]]:
    """The loss of logits (W, K), up to the constant of `fold`, and its derivative (W, K), up to a factor.

    The factor is 1 unless the total is over 10^6 standard deviations of the noise.
    """
    starts, largest = _starts(sizes), max(target.weights, default=1.0)
    shares = {
        clique: (counts / target.total, weight / largest)
        for clique, counts, weight in zip(target.cliques, target.tables, target.weights, strict=True)
        if clique  # a measured total has no parameters
    }
    pairs = {clique: share for clique, share in shares.items() if len(clique) <= 2}
    if sum(sizes.values()) ** 2 >= MATRIX * len(pairs):
        pairs = {}
    parts: list[_Pairs | _Alone] = [_Pairs.of(sizes, pairs)] if pairs else []
    parts += [_Alone(levels_of(sizes), {clique: share for clique, share in shares.items() if clique not in pairs})]
    unit = largest * target.total**2

    def loss_and_slope(logits: Distributions) -> tuple[float, Distributions]:
        distributions = softmax(logits, starts)
        slope, loss = np.zeros_like(logits), 0.0
        for part in parts:
            loss += part.add(distributions, slope)
        slope *= min(unit, LARGEST)
        return unit * loss, softmax_slope(distributions, slope, starts)

    return loss_and_slope


Shares = Mapping[Clique, tuple[Array, float]]  # the table of a clique, divided by the total, and its relative weight


@dataclass(frozen=True)
class _Alone:
    """The loss of marginals, one after the other."""

    levels: Mapping[str, slice]
    shares: Shares

    def add(self, distributions: Distributions, slope: Distributions) -> float:
        """The loss; its derivative by the distributions (W, K) is added to the slope (W, K)."""
        loss = 0.0
        for clique, (wanted, weight) in self.shares.items():
            parts = [distributions[self.levels[name]].T for name in clique]
            gap = table(parts) - wanted.astype(slope.dtype)
            loss += 0.5 * weight * float(np.vdot(gap, gap))
            for name, found in zip(clique, table_slopes(parts, weight * gap), strict=True):
                slope[self.levels[name]] += found.T
        return loss


@dataclass(frozen=True)
class _Pairs:
    """The loss of marginals of one or two attributes, which P P' has; P (W + 1, K) are the distributions above a row of
    ones, all divided by the root of K.

    **Shapes**: `wanted` and `roots`, of the relative weights, (W + 1, W + 1), symmetric.
    """

    wanted: Distributions
    roots: Distributions

    @classmethod
    def of(cls, sizes: Mapping[str, int], shares: Shares) -> _Pairs:
        """Of the tables and weights of these marginals."""
        W = sum(sizes.values())
        wanted, roots = np.zeros((2, W + 1, W + 1), dtype=np.float32)
        for clique, (rows, columns) in places_of(sizes, shares).items():
            share, root = shares[clique][0], math.sqrt(shares[clique][1])
            wanted[rows, columns] = root * share.reshape(len(share), -1)
            wanted[columns, rows] = wanted[rows, columns].T
            roots[rows, columns] = roots[columns, rows] = root
        return cls(wanted, roots)

    def add(self, distributions: Distributions, slope: Distributions) -> float:
        """As of `_Alone`."""
        scale = 1 / math.sqrt(distributions.shape[1])
        P = np.full_like(distributions, scale, shape=(len(distributions) + 1, distributions.shape[1]))
        np.multiply(distributions, scale, out=P[:-1])
        gap = P @ P.T
        gap *= self.roots
        gap -= self.wanted
        loss = float(np.vdot(gap, gap)) / 4  # each marginal is in the matrix twice
        gap *= self.roots
        slope += scale * (gap[:-1] @ P)
        return loss


def adam(
    f: Callable[[Distributions], tuple[float, Distributions]],
    x: Distributions,
    iterations: int,
    tolerance: float = -math.inf,
    *,
    patience: int | None = None,
    rate: float = RATE,
    bound: float = math.inf,
) -> tuple[Distributions, int]:
    """The lowest point that Adam meets from x, and its steps.

    They end where the last `WINDOW` gained less than `tolerance`, and where more than `patience` in a row have not
    lowered the loss by a ten-millionth. After each step x is clipped to [-bound, bound].

    **Source**: Kingma and Ba 2015, Algorithm 1.
    """
    m, v, change, root = np.zeros((4, *x.shape), dtype=x.dtype)
    best, lowest, stalled = x, [math.inf], 0
    for t in range(1, iterations + 1):
        value, slope = f(x)
        stalled = 0 if value < (1 - LEAST_GAIN) * lowest[-1] else stalled + 1
        if value < lowest[-1]:
            best = x
        lowest.append(min(value, lowest[-1]))
        if (patience is not None and stalled > patience) or (
            t > WINDOW and lowest[-1 - WINDOW] - lowest[-1] <= tolerance
        ):
            break
        np.multiply(slope, 1 - DECAY1, out=change)
        m *= DECAY1
        m += change
        np.square(slope, out=change)
        change *= 1 - DECAY2
        v *= DECAY2
        v += change
        np.sqrt(np.divide(v, 1 - DECAY2**t, out=root), out=root)
        root += OFFSET
        np.divide(m, 1 - DECAY1**t, out=change)
        change *= rate
        change /= root
        x = x - change
        if bound < math.inf:
            np.clip(x, -bound, bound, out=x)
    return best, t


def _first(sizes: Mapping[str, int], target: Target, K: int, rng: np.random.Generator) -> Array:
    """Logits (K, W) of the one-way marginals, uniform where nothing was measured, each with a draw of its own."""
    logits = {name: np.zeros(size) for name, size in sizes.items()}
    for clique, counts, weight in zip(target.cliques, target.tables, target.weights, strict=True):
        for axis, name in enumerate(clique):
            margin = counts.sum(axis=tuple(a for a in range(counts.ndim) if a != axis))
            noise = math.sqrt(counts.size / margin.size / weight)
            logits[name] = np.log(np.maximum(margin, FLOOR * min(noise, target.total / margin.size)))
    return np.concatenate(list(logits.values())) + SPREAD * rng.standard_normal((K, sum(sizes.values())))


def _starts(sizes: Mapping[str, int]) -> Places:
    """The first of the rows of each attribute."""
    return np.array([levels.start for levels in levels_of(sizes).values()], dtype=np.intp)
