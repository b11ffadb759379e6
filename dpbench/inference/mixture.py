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
from .products import Places, large_table, softmax, softmax_slope, table, table_slopes
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
        return _columns(softmax(self.logits, _starts(self.sizes)), self.sizes)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """See `Model.answer`."""
        answers = {}
        for names in (canonical(clique, self.sizes) for clique in cliques):
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
        logits, used = adam(objective(sizes, target), logits, self.iterations, (self.tolerance or TOLERANCE) * cells)
        model = MixtureModel(sizes, target.total, used, math.nan, logits)
        return replace(model, loss=loss_of(measurements, model.answer(target.cliques)))

    def update(self, sizes: Mapping[str, int], measurements: Sequence[Measurement], model: Model) -> MixtureModel:
        """The mixture that the measurements and the model lead to, by a `tolerance` of 0.2 unless another is given."""
        return replace(self, tolerance=self.tolerance or ROUGH).estimate(sizes, measurements, model)


def logits_mb(count: int) -> float:
    """Size in MB of so many logits."""
    return count * BYTES_PER_CELL / BYTES_PER_MB


def objective(sizes: Mapping[str, int], target: Target) -> Callable[[Array], tuple[float, Array]]:
    """The loss of logits (K, W), up to the constant of `fold`, and its derivative (K, W)."""
    starts = _starts(sizes)

    def loss_and_slope(logits: Array) -> tuple[float, Array]:
        probabilities = softmax(logits, starts)
        slope = np.zeros_like(logits)
        distributions, slopes, loss = _columns(probabilities, sizes), _columns(slope, sizes), 0.0
        for clique, counts, weight in zip(target.cliques, target.tables, target.weights, strict=True):
            parts = [distributions[name] for name in clique]
            if parts:  # a measured total has no parameters
                gap = target.total * table(parts) - counts
                loss += 0.5 * weight * float(np.vdot(gap, gap))
                for name, part in zip(clique, table_slopes(parts, weight * target.total * gap), strict=True):
                    slopes[name] += part
        return loss, softmax_slope(probabilities, slope, starts)

    return loss_and_slope


def adam(
    f: Callable[[Array], tuple[float, Array]],
    x: Array,
    iterations: int,
    tolerance: float = -math.inf,
    *,
    patience: int | None = None,
    rate: float = RATE,
    bound: float = math.inf,
) -> tuple[Array, int]:
    """The lowest point that Adam meets from x, and its steps.

    They end where the last `WINDOW` gained less than `tolerance`, and where more than `patience` in a row have not
    lowered the loss by a ten-millionth. After each step x is clipped to [-bound, bound].

    **Source**: Kingma and Ba 2015, Algorithm 1.
    """
    m, v = np.zeros_like(x), np.zeros_like(x)
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
        m *= DECAY1
        m += (1 - DECAY1) * slope
        v *= DECAY2
        v += (1 - DECAY2) * slope**2
        x = x - rate * (m / (1 - DECAY1**t)) / (np.sqrt(v / (1 - DECAY2**t)) + OFFSET)
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
    """The first column of each attribute."""
    widths = np.array(list(sizes.values()), dtype=np.intp)
    return np.cumsum(widths, dtype=np.intp) - widths


def _columns(array: Array, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Views (K, m) of each attribute's columns of an array (K, W)."""
    return dict(zip(sizes, np.split(array, _starts(sizes)[1:], axis=1), strict=True))
