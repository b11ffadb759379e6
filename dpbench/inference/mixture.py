"""A mixture of product distributions fitted to noisy marginals, behind the interface of `dpbench.inference.estimate`.

It has one size whatever is measured, so that no junction tree limits the marginals that it can be fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .measurements import (
    Array,
    Clique,
    InferenceError,
    Measurement,
    ModelTooLarge,
    Target,
    canonical,
    checked_sizes,
    fold,
    loss_of,
)
from .model import with_total
from .products import Places, softmax, softmax_slope, table, table_slopes
from .sampling import rounded_column
from .trees import BYTES_PER_CELL, BYTES_PER_MB

COMPONENTS = 100  # K of mbi 2.0's MixtureOfProductsEstimator
SPREAD = 0.25  # standard deviation of the first logits in mbi 2.0's MixtureOfProducts.random
FLOOR = 0.1  # of its noise, and of a uniform cell: what a cell of a first marginal counts at least, as in starts.py
DECAY1, DECAY2, OFFSET = 0.9, 0.999, 1e-8  # of Adam; Kingma and Ba 2015, Algorithm 1
# Chosen on the measurements of AIM on Adult at epsilon = 0.5. At a rate of 0.1 the marginals that were not measured
# drift, and the error is 1.6 times as large; at 0.01, or at a tolerance of 0.003, the error stays within 2% and the
# steps are half as many again.
RATE, WINDOW, TOLERANCE = 0.03, 50, 0.01


@dataclass(frozen=True)
class MixtureModel:
    """K product distributions of weight 1/K each, times a total, with the attributes and methods of `MarkovModel`.

    **Shapes**: `logits` (K, W), an attribute's levels in neighbouring columns. `cliques` is the whole domain alone,
    since any of its attributes may depend on each other.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    total: float
    size_mb: float
    iterations: int
    loss: float
    logits: Array = field(repr=False)

    @cached_property
    def products(self) -> dict[str, Array]:
        """The probabilities (K, m) of each attribute's levels in each component."""
        return _columns(softmax(self.logits, _starts(self.sizes)), self.sizes)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """Marginals, nonnegative, each summing to `total`.

        **Shapes**: one table per clique, of the sizes of its attributes in the order of the domain.
        """
        answers = {}
        for names in (canonical(clique, self.sizes) for clique in cliques):
            law = table([self.products[name] for name in names]) if names else np.ones(())
            answers[names] = with_total(law, self.total)
        return answers

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows (rows, d): a component for each, then its attributes, both by randomised rounding."""
        K = len(self.logits)
        component = rounded_column(np.ones((1, K)), np.zeros(rows, dtype=np.int64), rng)
        return np.stack([rounded_column(law, component, rng) for law in self.products.values()], axis=1)


def model_mb(sizes: Mapping[str, int], cliques: Sequence[Clique], *, components: int = COMPONENTS) -> float:
    """Size of a mixture's logits in MB, whatever the cliques.

    >>> model_mb({"a": 1024, "b": 1024}, [("a", "b")], components=64)
    1.0
    """
    return components * sum(sizes.values()) * BYTES_PER_CELL / BYTES_PER_MB


def estimate(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    warm_start: MixtureModel | None = None,
    iterations: int = 1000,
    tolerance: float | None = None,
    max_mb: float | None = None,
    components: int = COMPONENTS,
    seed: int = 0,
) -> MixtureModel:
    """Lower sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2) over mixtures p of `components` products, by Adam.

    The loss has many local minima, so that the result depends on the start: the warm start, or the one-way marginals
    with draws from `seed` that tell the components apart. It is the best of the steps, which end when 50 of them lower
    the loss by less than `tolerance` a measured cell (None: 0.01), or after `iterations`.

    **Source**: the mixture inference of private-pgm (mbi 2.0, MixtureOfProductsEstimator), close to the relaxed
    projection of Aydore et al. 2021 and the RAP^softmax of Liu et al. 2021 (Paper 0, Appendix H, Figure 6).
    **Shapes**: `measurements[i].values` has the sizes of its clique.
    **Departures** mbi starts from the draws alone. From near independence, what is not measured stays nearer to it.
    """
    sizes = checked_sizes(sizes, measurements)
    if min(iterations, components) < 1:
        raise InferenceError(f"iterations is {iterations} and components {components}; give at least 1 of each")
    if tolerance is not None and not tolerance > 0:
        raise InferenceError(f"tolerance is {tolerance}; it must be > 0")
    if warm_start is not None and (dict(warm_start.sizes) != sizes or len(warm_start.logits) != components):
        raise InferenceError(
            f"the warm start has {len(warm_start.logits)} components over {dict(warm_start.sizes)}, "
            f"this model {components} over {sizes}"
        )
    size_mb = model_mb(sizes, (), components=components)
    if max_mb is not None and size_mb > max_mb:
        raise ModelTooLarge(f"{components} products need {size_mb:.3g} MB, over the limit of {max_mb:.3g} MB")
    target = fold(sizes, measurements)
    logits = warm_start.logits if warm_start else _first(sizes, target, components, np.random.default_rng(seed))
    cells = sum(t.size for t in target.tables)
    logits, used = adam(objective(sizes, target), logits, iterations, (tolerance or TOLERANCE) * cells)
    model = MixtureModel(sizes, (tuple(sizes),), target.total, size_mb, used, math.nan, logits)
    return replace(model, loss=loss_of(measurements, model.answer(target.cliques)))


def objective(sizes: Mapping[str, int], target: Target) -> Callable[[Array], tuple[float, Array]]:
    """The loss of logits (K, W), up to the constant of `fold`, and its derivative (K, W)."""
    starts = _starts(sizes)

    def loss_and_slope(logits: Array) -> tuple[float, Array]:
        probabilities = softmax(logits, starts)
        slope = np.zeros_like(logits)
        laws, slopes, loss = _columns(probabilities, sizes), _columns(slope, sizes), 0.0
        for clique, counts, weight in zip(target.cliques, target.tables, target.weights, strict=True):
            parts = [laws[name] for name in clique]
            if parts:  # a measured total has no parameters
                gap = target.total * table(parts) - counts
                loss += 0.5 * weight * float(np.vdot(gap, gap))
                for name, part in zip(clique, table_slopes(parts, weight * target.total * gap), strict=True):
                    slopes[name] += part
        return loss, softmax_slope(probabilities, slope, starts)

    return loss_and_slope


def adam(f: Callable[[Array], tuple[float, Array]], x: Array, iterations: int, tolerance: float) -> tuple[Array, int]:
    """The lowest point that Adam meets from x, and its steps, of which the last `WINDOW` gained less than `tolerance`.

    **Source**: Kingma and Ba 2015, Algorithm 1.
    """
    m, v = np.zeros_like(x), np.zeros_like(x)
    best, lowest = x, [math.inf]
    for t in range(1, iterations + 1):
        value, slope = f(x)
        if value < lowest[-1]:
            best = x
        lowest.append(min(value, lowest[-1]))
        if t > WINDOW and lowest[-1 - WINDOW] - lowest[-1] <= tolerance:
            break
        m = DECAY1 * m + (1 - DECAY1) * slope
        v = DECAY2 * v + (1 - DECAY2) * slope**2
        x = x - RATE * (m / (1 - DECAY1**t)) / (np.sqrt(v / (1 - DECAY2**t)) + OFFSET)
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
