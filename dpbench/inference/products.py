"""Product distributions: the marginals of their mixture, the derivatives, and where an attribute's levels are.

**Shapes**: K components over attributes of W levels in all; `probabilities` (W, K) has the levels of an attribute in
neighbouring rows, from `starts[j]` on. Of a clique's attributes only these are passed on, as a list of (K, m).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .measurements import Array, Clique

Distributions = npt.NDArray[Any]  # they may be float32
Places = npt.NDArray[np.intp]
BLOCK = 2**24  # numbers in one temporary of the answers of a mixture: 128 MB


def levels_of(sizes: Mapping[str, int]) -> dict[str, slice]:
    """The places of each attribute's levels.

    >>> levels_of({"a": 2, "b": 3})
    {'a': slice(0, 2, None), 'b': slice(2, 5, None)}
    """
    ends = accumulate(sizes.values(), initial=0)
    return {name: slice(*pair) for name, pair in zip(sizes, pairwise(ends), strict=True)}


def places_of(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> dict[Clique, tuple[slice, slice]]:
    """Where P P' / K has the marginals of one or two attributes; P (W + 1, K) has a row of ones below.

    >>> places_of({"a": 2, "b": 3}, [("b",), ("a", "b")])
    {('b',): (slice(2, 5, None), slice(5, 6, None)), ('a', 'b'): (slice(0, 2, None), slice(2, 5, None))}
    """
    levels, W = levels_of(sizes), sum(sizes.values())
    return {r: (levels[r[0]], levels[r[1]] if len(r) == 2 else slice(W, W + 1)) for r in cliques}


def softmax(logits: Distributions, starts: Places) -> Distributions:
    """Probabilities (W, K) of the logits (W, K): those of one attribute in one component sum to 1.

    `product_queries.softmax` is faster for K = 1,000, this one for 100. Their sums have another order, and what was
    stored follows from their last bits.
    """
    widths = np.diff(starts, append=len(logits))
    probabilities: Distributions = logits - np.repeat(np.maximum.reduceat(logits, starts), widths, axis=0)
    np.exp(probabilities, out=probabilities)
    probabilities /= np.repeat(np.add.reduceat(probabilities, starts), widths, axis=0)
    return probabilities


def softmax_slope(probabilities: Distributions, slope: Distributions, starts: Places) -> Distributions:
    """The derivative by the logits (W, K) of what has the derivative `slope` by the probabilities."""
    found: Distributions = probabilities * slope
    found -= probabilities * np.repeat(np.add.reduceat(found, starts), np.diff(starts, append=len(slope)), axis=0)
    return found


def table(parts: Sequence[Array]) -> Array:
    """The mean over the components of the products of their attributes' probabilities.

    **Shapes**: parts[j] (K, m_j); result (m_1, m_2, ...).
    """
    left, right = _halves(parts)
    return np.asarray(left.T @ right / len(left)).reshape([p.shape[1] for p in parts])


def large_table(parts: Sequence[Array]) -> Array:
    """`table`, made piece by piece where a temporary of it would have over `BLOCK` numbers."""
    half, widths = len(parts) // 2, [part.shape[1] for part in parts]
    larger = max(range(half, len(parts)), range(half), key=lambda places: math.prod(widths[j] for j in places))
    j = max(larger, key=lambda j: widths[j])
    if len(larger) == 1 or widths[j] == 1 or len(parts[0]) * math.prod(widths[j] for j in larger) <= BLOCK:
        return table(parts)
    pieces = np.array_split(parts[j], 2, axis=1)
    return np.concatenate([large_table([*parts[:j], piece, *parts[j + 1 :]]) for piece in pieces], axis=j)


def table_slopes(parts: Sequence[Array], slope: Array) -> list[Array]:
    """The derivatives by each of the parts of what has the derivative `slope` by their `table`."""
    left, right = _halves(parts)
    half = len(parts) // 2
    flat = slope.reshape(left.shape[1], right.shape[1]) / len(left)
    return _spread(right @ flat.T, parts[:half]) + _spread(left @ flat, parts[half:])


def _halves(parts: Sequence[Array]) -> tuple[Array, Array]:
    """The two factors of the matrix product that sums over the components."""
    return _joint(parts[: len(parts) // 2], len(parts[0])), _joint(parts[len(parts) // 2 :], len(parts[0]))


def _joint(parts: Sequence[Array], K: int) -> Array:
    """Each component's distribution of all its parts together: (K, m_1 m_2 ...)."""
    distribution = parts[0] if parts else np.ones((K, 1))
    for part in parts[1:]:
        distribution = (distribution[:, :, None] * part[:, None, :]).reshape(K, -1)
    return distribution


def _spread(slope: Array, parts: Sequence[Array]) -> list[Array]:
    """The derivatives by each part of what has the derivative `slope` by their `_joint`."""
    if len(parts) <= 1:
        return [slope for _ in parts]
    first, others = parts[0], _joint(parts[1:], len(slope))
    cells = slope.reshape(*first.shape, others.shape[1])
    return [(cells @ others[:, :, None])[:, :, 0], *_spread((first[:, None, :] @ cells)[:, 0], parts[1:])]
