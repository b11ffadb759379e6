"""Synthetic rows from the marginals of a junction tree, by randomised rounding."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .measurements import Array
from .sums import summed
from .trees import CliqueTree, bits

Codes = npt.NDArray[np.int64]


def rounded_column(weights: Array, groups: Codes, rng: np.random.Generator) -> Codes:
    """One code per row: row i draws from `weights[groups[i]]`, so that counts are near their expectation.

    In a group of m rows, code j appears floor or ceil of m * p_j times, and m * p_j on average (systematic
    rounding: one uniform offset a group, rows in random order).
    **Shapes**: weights (g, n) >= 0; groups (rows,) in 0..g-1; result (rows,) in 0..n-1.
    """
    present, local = np.unique(groups, return_inverse=True)
    chosen = weights[present]
    sums = chosen.sum(axis=1, keepdims=True)
    # A group of no weight is met only through rounding of others; it has no distribution of its own: uniform.
    chosen = np.where(sums > 0, chosen, 1.0)
    steps = np.cumsum(chosen, axis=1)
    steps /= steps[:, -1:]
    order = rng.permutation(len(groups))
    order = order[np.argsort(local[order], kind="stable")]
    counts = np.bincount(local, minlength=len(present))
    group = local[order]
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    place = (rank + rng.random(len(present))[group]) / counts[group]
    ends = (steps + np.arange(len(present))[:, None]).ravel()
    found = np.searchsorted(ends, group + place, side="right") - group * weights.shape[1]
    # The last code of positive weight bounds the search where group + place rounds up to the next whole number.
    last = weights.shape[1] - 1 - np.argmax(chosen[:, ::-1] > 0, axis=1)
    codes = np.empty(len(groups), dtype=np.int64)
    codes[order] = np.clip(found, 0, last[group])
    return codes


def sample_rows(
    shape: tuple[int, ...], tree: CliqueTree, beliefs: Sequence[Array], rows: int, rng: np.random.Generator
) -> Codes:
    """Rows whose columns follow the tree: each attribute given those of its clique that are already drawn.

    **Shapes**: `beliefs[k]` is the marginal of maximal clique k, axes ascending; result (rows, d).
    """
    result = np.zeros((rows, len(shape)), dtype=np.int64)
    if rows == 0:
        return result
    done = 0
    for k in reversed(tree.order):
        clique = tree.cliques[k]
        axes = list(bits(clique))
        known = [i for i in axes if done >> i & 1]
        for new in [i for i in axes if not done >> i & 1]:
            kept = [*known, new]
            table = summed(beliefs[k], [a for a, i in enumerate(axes) if i not in kept])
            rank = sorted(kept)
            table = table.transpose([rank.index(i) for i in kept]).reshape(-1, shape[new])
            groups = np.zeros(rows, dtype=np.int64)
            for i in known:
                groups = groups * shape[i] + result[:, i]
            result[:, new] = rounded_column(table, groups, rng)
            known.append(new)
        done |= clique
    return result
