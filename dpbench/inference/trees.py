"""Junction trees: which maximal cliques a set of measured cliques needs, and how large they are.

Attributes are bits of an integer mask (bit i = i-th name of `sizes`), so that a clique, a neighbourhood
and a separator are one integer each.

**Source**: greedy minimum-size triangulation (the vertex whose neighbourhood has the fewest cells goes
first, ties by the order of the domain), the rule by which AIM's JunctionTree-SIZE is commonly computed;
Koller and Friedman 2009, section 9.4.3.2. A graph that already is one tree is left as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .measurements import Clique, canonical

BYTES_PER_MB = 2**20
BYTES_PER_CELL = 8


@dataclass(frozen=True)
class CliqueTree:
    """Maximal cliques and the edges between them, `(child, parent)`, children before their parents.

    **Shapes**: `cliques` are masks; `separators[k]` is the mask shared with `parents[k]` (0 and -1 at a
    root). `order` visits every clique after all of its children.
    """

    cliques: tuple[int, ...]
    parents: tuple[int, ...]
    separators: tuple[int, ...]
    order: tuple[int, ...]


def mask_of(clique: Iterable[str], index: Mapping[str, int]) -> int:
    """The attributes of a clique as bits."""
    mask = 0
    for name in clique:
        mask |= 1 << index[name]
    return mask


@lru_cache(maxsize=200_000)
def bits(mask: int) -> tuple[int, ...]:
    """Positions of the set bits, ascending: bits(0b1010) == (1, 3)."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


@lru_cache(maxsize=200_000)
def cells(mask: int, shape: tuple[int, ...]) -> int:
    """Number of cells of the table over the attributes in `mask` (an exact integer)."""
    product = 1
    for i in bits(mask):
        product *= shape[i]
    return product


def adjacency(masks: Iterable[int], width: int) -> tuple[int, ...]:
    """Neighbours of each attribute, itself included, when every clique in `masks` is made complete."""
    neighbours = [1 << i for i in range(width)]
    for mask in masks:
        for i in bits(mask):
            neighbours[i] |= mask
    return tuple(neighbours)


def _is_tree(neighbours: Sequence[int]) -> bool:
    if len(neighbours) < 2 or sum(m.bit_count() - 1 for m in neighbours) != 2 * (len(neighbours) - 1):
        return False
    reached, frontier = 1, 1
    while frontier:
        grown = reached
        for i in bits(frontier):
            grown |= neighbours[i]
        reached, frontier = grown, grown & ~reached
    return reached.bit_count() == len(neighbours)


@lru_cache(maxsize=20_000)
def _triangulated(neighbours: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Maximal cliques of the triangulated graph, as masks."""
    width = len(shape)
    if _is_tree(neighbours):
        edges = [(1 << i) | (1 << j) for i in range(width) for j in bits(neighbours[i]) if i < j]
        return tuple(edges)
    return _greedy(neighbours, list(range(width)), shape)


def _greedy(neighbours: Sequence[int], left: list[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Maximal cliques among the attributes `left`, which have no neighbours elsewhere, by greedy elimination."""
    around = list(neighbours)
    cost = {i: cells(around[i], shape) for i in left}
    found: list[int] = []
    while left:
        out = min(left, key=cost.__getitem__)
        left.remove(out)
        clique = around[out]
        for other in found:
            if clique & other == clique:
                break
        else:
            found.append(clique)
        rest = clique & ~(1 << out)
        if len(left) == rest.bit_count():  # all that is left is in this clique
            break
        for i in bits(rest):
            merged = (around[i] | rest) & ~(1 << out)
            if merged != around[i]:
                around[i] = merged
                cost[i] = cells(merged, shape)
    return tuple(found)


@lru_cache(maxsize=20_000)
def _model_cells(neighbours: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Cells of all of `_triangulated`, part by part: a part met before costs nothing."""
    every = (1 << len(shape)) - 1
    total, left = 0, every
    while left:
        part = reached = left & -left
        while reached:
            grown = part
            for i in bits(reached):
                grown |= neighbours[i]
            part, reached = grown, grown & ~part
        if part == every:
            return sum([cells(mask, shape) for mask in _triangulated(neighbours, shape)])
        total += _part_cells(part, tuple([neighbours[i] for i in bits(part)]), shape)
        left &= ~part
    return total


@lru_cache(maxsize=20_000)
def _part_cells(part: int, neighbours: tuple[int, ...], shape: tuple[int, ...]) -> int:
    around = [0] * len(shape)
    for i, mask in zip(bits(part), neighbours, strict=True):
        around[i] = mask
    return sum([cells(mask, shape) for mask in _greedy(around, list(bits(part)), shape)])


def _masks(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> list[int]:
    names = tuple(sizes)
    return [_mask(clique, names) for clique in cliques]


@lru_cache(maxsize=20_000)
def _mask(clique: Clique, names: tuple[str, ...]) -> int:
    index = {name: i for i, name in enumerate(names)}
    return mask_of(canonical(clique, index), index)


def model_mb(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> float:
    """Size in MB of the junction tree that holds `cliques` and every attribute of `sizes`.

    **Source**: JunctionTree-SIZE of AIM (McKenna et al. 2022), Algorithm 2, line 13: cells of the maximal
    cliques of the triangulated graph, 8 bytes a cell, 1 MB = 2**20 bytes.

    >>> model_mb({"a": 1024, "b": 128}, [("a", "b")])
    1.0
    """
    shape = tuple(sizes.values())
    neighbours = adjacency(_masks(sizes, cliques), len(shape))
    return _model_cells(neighbours, shape) * BYTES_PER_CELL / BYTES_PER_MB


def candidate_mb(
    sizes: Mapping[str, int], cliques: Sequence[Clique], candidates: Sequence[Clique]
) -> npt.NDArray[np.float64]:
    """`model_mb(sizes, cliques + [c])` for each candidate `c`.

    **Shapes**: (len(candidates),) float64. A graph met before, in this call or an earlier one, costs nothing.
    """
    shape = tuple(sizes.values())
    base = adjacency(_masks(sizes, cliques), len(shape))
    counts = np.empty(len(candidates), dtype=np.float64)
    for k, mask in enumerate(_masks(sizes, candidates)):
        neighbours = list(base)
        for i in bits(mask):
            neighbours[i] |= mask
        counts[k] = _model_cells(tuple(neighbours), shape) * BYTES_PER_CELL / BYTES_PER_MB
    return counts


def junction_tree(masks: Sequence[int], shape: tuple[int, ...]) -> CliqueTree:
    """A junction tree (a forest, where parts share no attribute) over the triangulated graph of `masks`.

    **Source**: a spanning tree of greatest total separator size has the running intersection property
    (Koller and Friedman 2009, theorem 4.12); Prim's algorithm, ties by the order of the cliques.
    """
    cliques = _triangulated(adjacency(masks, len(shape)), shape)
    parents, separators, placed = [-1] * len(cliques), [0] * len(cliques), []
    best = [(0, 0, -1)] * len(cliques)  # (shared attributes, -parent's place, parent)
    left = sorted(range(len(cliques)), key=lambda k: (-cells(cliques[k], shape), k))
    while left:
        new = max(left, key=lambda k: best[k][:2])
        left.remove(new)
        if best[new][0]:
            parents[new] = best[new][2]
            separators[new] = cliques[new] & cliques[parents[new]]
        placed.append(new)
        for k in left:
            shared = (cliques[k] & cliques[new]).bit_count()
            if shared > best[k][0]:
                best[k] = (shared, -len(placed), new)
    return CliqueTree(cliques, tuple(parents), tuple(separators), tuple(reversed(placed)))
