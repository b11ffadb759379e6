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
WORD = 16  # attributes in a word of a mask
TOGETHER = 4096  # graphs triangulated at once

Words = npt.NDArray[np.uint16]


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
    around, left = list(neighbours), list(range(width))
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


def _triangulated_cells(neighbours: Words, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Cells of `_triangulated` for many graphs at once, where none is a tree.

    **Shapes**: neighbours (graphs, len(shape), words), result (graphs,).
    """
    graphs, width, words = neighbours.shape
    around, single, every = neighbours.copy(), _words([1 << i for i in range(width)], width), np.arange(graphs)
    tables = _cells_of_words(shape)
    cost, total = _cells(around, tables), np.zeros(graphs)
    others = np.full((graphs, width, words), ~np.uint16(0))  # what the cliques found do not have
    for step in range(width):
        out = cost.argmin(axis=1)
        clique = around[every, out]
        maximal = (clique[:, None] & others[:, :step]).any(axis=2).all(axis=1)
        total[maximal] += _cells(clique[maximal], tables)
        others[:, step] = ~clique
        cost[every, out] = np.inf
        rest, gone = clique & ~single[out], ~single[out]
        graph, i = np.nonzero(_holds(rest, width))
        merged = (around[graph, i] | rest[graph]) & gone[graph]
        around[graph, i] = merged
        cost[graph, i] = _cells(merged, tables)
    return total


def _holds(masks: Words, width: int) -> npt.NDArray[np.bool_]:
    """Whether each mask has each attribute: (masks, width)."""
    i = np.arange(width)
    return (masks[:, i // WORD] >> (i % WORD).astype(np.uint16) & 1).astype(bool)


def _words(masks: Sequence[int], width: int) -> Words:
    """Masks as words of 16 bits, the lowest first: (masks, words)."""
    size = -(-width // WORD) * 2
    return np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in masks), "<u2").reshape(len(masks), -1)


@lru_cache(maxsize=8)
def _cells_of_words(shape: tuple[int, ...]) -> tuple[npt.NDArray[np.float64], ...]:
    """For each group of 16 attributes the cells of all of its masks."""
    found = []
    for start in range(0, len(shape), WORD):
        table = np.ones(1)
        for size in shape[start : start + WORD]:
            table = np.concatenate([table, table * size])
        found.append(table)
    return tuple(found)


def _cells(masks: Words, tables: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """`cells` of masks in words (..., words): exact up to 2**53."""
    product = tables[0].take(masks[..., 0])
    for k in range(1, len(tables)):
        product *= tables[k].take(masks[..., k])
    return product


def _masks(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> list[int]:
    names = tuple(sizes)
    return [_mask(clique, names) for clique in cliques]


@lru_cache(maxsize=20_000)
def _mask(clique: Clique, names: tuple[str, ...]) -> int:
    index = {name: i for i, name in enumerate(names)}
    return mask_of(canonical([clique], index)[0], index)


def _model_cells(shape: tuple[int, ...], masks: Sequence[int]) -> int:
    return sum([cells(mask, shape) for mask in _triangulated(adjacency(masks, len(shape)), shape)])


def model_mb(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> float:
    """Size in MB of the junction tree that holds `cliques` and every attribute of `sizes`.

    **Source**: JunctionTree-SIZE of AIM (McKenna et al. 2022), Algorithm 2, line 13: cells of the maximal
    cliques of the triangulated graph, 8 bytes a cell, 1 MB = 2**20 bytes.

    >>> model_mb({"a": 1024, "b": 128}, [("a", "b")])
    1.0
    """
    return _model_cells(tuple(sizes.values()), _masks(sizes, cliques)) * BYTES_PER_CELL / BYTES_PER_MB


def candidate_mb(
    sizes: Mapping[str, int], cliques: Sequence[Clique], candidates: Sequence[Clique]
) -> npt.NDArray[np.float64]:
    """`model_mb(sizes, cliques + [c])` for each candidate `c`.

    **Shapes**: (len(candidates),) float64.
    """
    shape = tuple(sizes.values())
    width, held, masks = len(shape), _masks(sizes, cliques), _masks(sizes, candidates)
    base = _words(adjacency(held, width), width)
    counts = np.empty(len(masks))
    for start in range(0, len(masks), TOGETHER):
        some = _words(masks[start : start + TOGETHER], width)
        neighbours = np.where(_holds(some, width)[..., None], base | some[:, None], base)
        counts[start : start + TOGETHER] = _triangulated_cells(neighbours, shape)
        edges = np.bitwise_count(neighbours).sum(axis=(1, 2), dtype=np.intp) - width
        for k in start + np.flatnonzero(edges == 2 * (width - 1)):  # may be a tree
            counts[k] = _model_cells(shape, [*held, masks[k]])
    return counts * BYTES_PER_CELL / BYTES_PER_MB


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
