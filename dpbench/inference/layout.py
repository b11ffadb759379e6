"""How to hold a maximal clique: fill its table, or split it into three faces, whichever costs less."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .blocks import Dense, Triple
from .trees import bits, cells

SMALL = 4096  # cells below which a table is always filled: overheads of Python calls outweigh its arithmetic
# Costs in nanoseconds, measured on one 2.5 GHz core: they choose a layout and never change a result's meaning.
NS_PASS, NS_FILL, NS_MATMUL, NS_BATCH, NS_TRIPLE = 1.2, 15.0, 0.12, 900.0, 100_000.0
MOST_GROUPS = 8  # 4**8 ways to split a clique are looked at; beyond, the smallest attributes move together


@functools.lru_cache(maxsize=4096)
def best_groups(shape: tuple[int, ...], masks: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Cheapest (R, A, B, C) for a clique of sizes `shape` whose tables have `masks`, or None: fill the table."""
    box = math.prod(shape)
    if box <= SMALL or len(shape) < 3:
        return None
    units = [1 << i for i in range(len(shape))]
    while len(units) > MOST_GROUPS:
        units.sort(key=lambda u: cells(u, shape))
        units = [units[0] | units[1], *units[2:]]
    logs = np.log([cells(u, shape) for u in units])
    labels = _labels(len(units))
    inside = [np.exp((labels == g) @ logs) for g in range(4)]
    fits = np.ones(len(labels), dtype=bool)
    for g in (1, 2, 3):
        fits &= (labels == g).any(axis=1)
    for mask in masks:
        touched = np.array([bool(mask & u) for u in units])
        fits &= ~np.all([(labels[:, touched] == g).any(axis=1) for g in (1, 2, 3)], axis=0)
    r, a, b, c = inside
    count = len(masks)
    faces = r * (a * b + a * c + b * c)
    cost = NS_TRIPLE + 4 * (NS_MATMUL * box + NS_BATCH * r) + (1.5 * NS_FILL + NS_PASS * count) * faces
    cost[~fits] = np.inf
    best = int(np.argmin(cost))
    if cost[best] >= (NS_FILL + 2 * NS_PASS * count) * box:
        return None
    found = [0, 0, 0, 0]
    for unit, label in zip(units, labels[best], strict=True):
        found[int(label)] |= unit
    return found[0], found[1], found[2], found[3]


@functools.lru_cache
def _labels(count: int) -> npt.NDArray[np.int8]:
    """All ways to put `count` things into four groups: (4**count, count)."""
    return np.indices((4,) * count, dtype=np.int8).reshape(count, -1).T


def make_block(scope: int, shape: tuple[int, ...], masks: Sequence[int]) -> Dense | Triple:
    """The cheaper holder for the product of tables over `masks`, all inside `scope`."""
    axes = bits(scope)
    local = tuple(sorted({sum(1 << a for a, i in enumerate(axes) if m >> i & 1) for m in masks}))
    groups = best_groups(tuple(shape[i] for i in axes), local)
    if groups is None:
        return Dense(scope, shape)
    wide = [sum(1 << axes[a] for a in bits(g)) for g in groups]
    return Triple(scope, shape, (wide[0], wide[1], wide[2], wide[3]))
