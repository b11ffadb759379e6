"""PrivTree: bins of a box that follow the density of the rows (Zhang, Xiao and Xie 2016; BinAgg, Algorithm 4)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.errors import UserError, check_known
from dpbench.privacy.discrete import is_discrete, spacing_of
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import tree_laplace

WIDEST = ("own_unit", "relative")


def privtree(
    X: Floats,
    lower: Floats,
    upper: Floats,
    rng: np.random.Generator,
    ledger: Ledger,
    *,
    epsilon: float,
    theta: float = 0.0,
    widest: str = "own_unit",
    max_bins: int = 100_000,
    noise: str = "continuous",
) -> tuple[Floats, Floats, Codes]:
    """The edges of K bins, lower (K, p) and upper (K, p), and the bin of each row (n,).

    A node is halved across its widest side (the first of equal ones) if its noisy, biased count exceeds theta. Sides
    are measured in each feature's own unit, or, if `widest` is `relative`, against the box's.

    **Source** BinAgg, Algorithm 4; Zhang, Xiao and Xie 2016, Algorithm 2, with kappa = 2 children.
    **Privacy** Add/remove; epsilon-DP as a whole, whatever the depth: lambda = 3 / epsilon, delta = lambda ln 2
    (Corollary 1 there). The edges are public; the bin of a row is not.
    **Shapes** X (n, p); lower, upper (p,) of the box. A row belongs to the bin with lower <= x < upper, and to the last
    one at the top of the box; a row outside of the box counts as the nearest one on it.
    **Departures** 1. All nodes of one depth are visited together: they have the same sides, so the same one is halved,
    and their noise is independent. 2. Growth ends at a depth where the widest side has no number left between its
    ends, or where more than `max_bins` bins could result; neither looks at more than the tree so far, so the result
    is post-processing of the whole tree. 3. With discrete `noise` lambda, delta and theta are multiples of a spacing,
    and so are the counts (`_on_grid`).
    """
    n, p = X.shape
    scale = 3 / epsilon
    delta, spacing = scale * math.log(2), None
    if is_discrete(noise):
        scale, delta, theta, spacing = _on_grid(epsilon, theta)
    noisy = tree_laplace(rng, ledger, scale=scale, epsilon=epsilon, label="tree of bins", spacing=spacing)
    precision = np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
    sides = upper - lower
    unit = np.where(sides > 0, sides, 1.0) if widest == "relative" else np.ones(p)

    lows, highs = lower[None], upper[None]  # of the nodes of this depth
    rows, node = np.arange(n), np.zeros(n, dtype=np.int64)  # the rows in them, and the node of each
    done: list[tuple[Floats, Floats]] = []
    bins, bin_of, depth = 0, np.empty(n, dtype=np.int64), 0
    while len(lows):
        axis = int(np.argmax(sides / unit))
        biased = np.maximum(np.bincount(node, minlength=len(lows)) - depth * delta, theta - delta)
        split = noisy(biased) > theta
        if sides[axis] / 2 <= precision[axis] or bins + len(lows) + split.sum() > max_bins:
            split[:] = False
        place = np.cumsum(~split) - 1 + bins
        inner = split[node]
        bin_of[rows[~inner]] = place[node[~inner]]
        done.append((lows[~split], highs[~split]))
        bins += int((~split).sum())

        middle = (lows[split, axis] + highs[split, axis]) / 2
        rows, node = rows[inner], (np.cumsum(split) - 1)[node[inner]]
        node = 2 * node + (X[rows, axis] >= middle[node])
        lows, highs = np.repeat(lows[split], 2, axis=0), np.repeat(highs[split], 2, axis=0)
        highs[0::2, axis], lows[1::2, axis] = middle, middle
        sides = np.where(np.arange(p) == axis, sides / 2, sides)
        depth += 1
    return np.concatenate([low for low, _ in done]), np.concatenate([high for _, high in done]), bin_of


def _on_grid(epsilon: float, theta: float) -> tuple[float, float, float, float]:
    """lambda, delta and theta as multiples of a spacing s, and s: the tree is epsilon-DP with discrete Laplace noise.

    Proof. Let x be a biased count less theta, and q = exp(-s / lambda). The node is halved with the probability
    q exp(x / lambda) / (1 + q) if x <= 0, and 1 - exp(-x / lambda) / (1 + q) if x >= 0. The slope of its logarithm is
    1 / lambda below 0, and at most exp(-x / lambda) / (q lambda) above. One row more raises the counts on one path from
    the root by 1 at most, from theta - delta at least. For any u in [0, 1] the points x - u of this path that are not
    below -delta lie delta >= lambda ln 2 apart: one is below 0, and at the others the slopes add up to at most
    (1 + 1/2 + 1/4 + ...) / (q lambda). So the logarithm of the probability of all halvings rises by at most the mean
    over u of these sums, (1 + 2/q) / lambda, and that of the leaf at the end falls by at most 1 / lambda. With lambda =
    s t the first is (1 + 2 exp(1/t)) / (s t) <= (3 + 2/t + 2/t^2) / (s t), at most epsilon if t >= 1 + 3 / (s epsilon).
    """
    spacing = min(spacing_of(3 / epsilon), 1.0)
    t = math.ceil(3 / (spacing * epsilon)) + 1
    delta = math.ceil(t * math.log(2)) + 1
    return t * spacing, delta * spacing, round(theta / spacing) * spacing, spacing


def at_least(bins: int, X: Floats, lower: Floats, upper: Floats, bin_of: Codes) -> tuple[Floats, Floats, Codes]:
    """The same bins, the one of largest volume halved across its widest side until there are so many of them.

    **Source** The authors' package of BinAgg.
    **Privacy** Post-processing of the tree: which bin is halved, and where, follows from the edges.
    **Shapes** Those of what `privtree` returns.
    """
    varies = (upper > lower).any(axis=0)
    while len(lower) < bins:
        sides = upper - lower
        largest = int(np.argmax(np.log(sides[:, varies]).sum(axis=1)))
        axis, new = int(np.argmax(sides[largest])), len(lower)
        middle = (lower[largest, axis] + upper[largest, axis]) / 2
        bin_of = np.where((bin_of == largest) & (X[:, axis] >= middle), new, bin_of)
        lower, upper = np.vstack([lower, lower[largest]]), np.vstack([upper, upper[largest]])
        upper[largest, axis] = lower[new, axis] = middle
    return lower, upper, bin_of


def check_tree(theta: float, widest: str, max_bins: int) -> None:
    """`UserError` for settings that `privtree` cannot use."""
    if not math.isfinite(theta):
        raise UserError(f"theta, the count from which a bin is halved, must be finite, not {theta}")
    check_known("widest", widest, WIDEST)
    if max_bins < 1:
        raise UserError(f"max_bins must be at least 1, not {max_bins}")
