"""Marginals of any attributes from a calibrated junction tree.

All pairs at once: over each directed edge of the tree travel the distributions of the attributes behind it given the
separator; a matrix product carries them over the next clique, or turns them into the table of a pair.

**Source**: out-of-clique queries on a calibrated tree (Koller and Friedman 2009, section 10.3.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from .blocks import NO_ROWS, summed_axes
from .measurements import Array
from .oracle import Oracle
from .sums import summed
from .trees import bits, cells

MOST_CELLS = 8_000_000  # of the distributions carried at once over the widest separator (64 MB)


class Tables:
    """Marginals over attributes that lie in one maximal clique, each summed once from a small table."""

    def __init__(self, oracle: Oracle) -> None:
        self.tree, self.shape, self.oracle = oracle.tree, oracle.shape, oracle
        self._known: dict[int, Array] = {}

    def inside(self, mask: int) -> Array:
        """Marginal over `mask`, axes ascending."""
        if mask not in self._known:
            tree, shape = self.tree, self.shape
            fit = [m for m in self._known if mask & ~m == 0]
            homes = [k for k, c in enumerate(tree.cliques) if mask & ~c == 0]
            if fit:
                source = min(fit, key=lambda m: cells(m, shape))
                table = summed(self._known[source], summed_axes(source, mask))
            else:
                k = min(homes, key=lambda k: (cells(tree.cliques[k], shape), k))
                table = self.oracle.blocks[k].onto(mask)
            known = np.array(table)
            np.putmask(known, known < NO_ROWS, 0.0)
            self._known[mask] = known
        return self._known[mask]


class Level(Tables):
    """Tables of one level of attribute i: its axis has the length 1."""

    def __init__(self, tables: Tables, i: int, level: int) -> None:
        super().__init__(tables.oracle)
        self.shape = tuple(1 if j == i else size for j, size in enumerate(tables.shape))
        self._tables, self._i, self._level = tables, i, level

    def inside(self, mask: int) -> Array:
        """The part of the table that has this level."""
        table = self._tables.inside(mask)
        return table.take([self._level], bits(mask).index(self._i)) if mask >> self._i & 1 else table


def product(rows: Array, separator: int, step: Array, target: int, shape: tuple[int, ...]) -> Array:
    """Sum over the separator of rows[., separator] * step[separator, target], onto `target`.

    Attributes of the separator that stay in the target are a batch of the matrix product.
    **Shapes**: rows (n, cells of separator); step on the axes of separator | target; result (n, cells of target).
    """
    both = bits(separator | target)
    kept, gone, new = bits(separator & target), bits(separator & ~target), bits(target & ~separator)
    left = rows.reshape([len(rows), *(shape[i] for i in bits(separator))])
    place = {i: a + 1 for a, i in enumerate(bits(separator))}
    left = left.transpose([place[i] for i in kept] + [0] + [place[i] for i in gone])
    sizes = [_count(group, shape) for group in (kept, gone, new)]
    right = step.transpose([both.index(i) for i in (*kept, *gone, *new)])
    out = left.reshape(sizes[0], len(rows), sizes[1]) @ right.reshape(sizes)
    out = out.reshape([*(shape[i] for i in kept), len(rows), *(shape[i] for i in new)])
    names = [*kept, -1, *new]
    return out.transpose([names.index(i) for i in (-1, *bits(target))]).reshape(len(rows), -1)


def _count(names: Sequence[int], shape: tuple[int, ...]) -> int:
    return cells(sum(1 << i for i in names), shape)


def pair_tables(oracle: Oracle, masks: Sequence[int], total: float) -> dict[int, Array]:
    """Tables for singles and pairs, inside one maximal clique or across the tree."""
    tree, shape = oracle.tree, oracle.shape
    tables = Tables(oracle)
    found: dict[int, Array] = {}
    wanted: dict[int, list[int]] = {}
    part = parts(oracle)
    within = {1 << i | 1 << j for c in tree.cliques for i in bits(c) for j in bits(c)}
    for mask in dict.fromkeys(masks):
        i, j = bits(mask)[0], bits(mask)[-1]
        if mask in within:
            found[mask] = tables.inside(mask)
        elif part[i] != part[j]:  # in two parts of the forest: independent
            found[mask] = np.multiply.outer(tables.inside(1 << i), tables.inside(1 << j)) / total
        else:
            source, target = (i, j) if shape[i] <= shape[j] else (j, i)
            wanted.setdefault(source, []).append(target)
    widest = max((cells(s, shape) for s in tree.separators), default=1)
    group: list[int] = []
    for source in sorted(wanted):
        if group and widest * (shape[source] + sum(shape[i] for i in group)) > MOST_CELLS:
            found.update(Travel(tables, {i: wanted[i] for i in group}).pairs())
            group = []
        group.append(source)
    found.update(Travel(tables, {i: wanted[i] for i in group}).pairs())
    return found


def parts(oracle: Oracle) -> list[int]:
    """For each attribute, the connected part of the forest it lies in, named by its root's place."""
    tree = oracle.tree
    root = list(range(len(tree.cliques)))
    part = [0] * len(oracle.shape)
    for k in reversed(tree.order):
        if tree.parents[k] >= 0:
            root[k] = root[tree.parents[k]]
        for i in bits(tree.cliques[k]):
            part[i] = root[k]
    return part


@dataclass(frozen=True)
class Bundle:
    """Distributions that cross a separator together: p(s = v | separator) = (parts[s] @ distributions)[v, cell].

    **Shapes**: distributions (m, cells of the separator); parts[s] (size of s, m).
    """

    distributions: Array
    parts: dict[int, Array]


class Travel:
    """Distributions of a group of attributes given each separator on the way to their targets."""

    def __init__(self, tables: Tables, wanted: dict[int, list[int]]) -> None:
        self.tables, self.wanted = tables, wanted
        self.tree, self.shape = tables.oracle.tree, tables.oracle.shape
        self.near: list[list[int]] = [[] for _ in self.tree.cliques]
        for k, parent in enumerate(self.tree.parents):
            if parent >= 0:
                self.near[k].append(parent)
                self.near[parent].append(k)
        self.carried: dict[tuple[int, int], list[int]] = {}
        self.delivered: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for source, targets in wanted.items():
            home = [k for k, c in enumerate(self.tree.cliques) if c >> source & 1]
            for k in home:
                for j in self.near[k]:
                    if j not in home:
                        self._plan(source, k, j, sum(1 << t for t in targets))
        self.crossing: dict[tuple[int, int], list[Bundle]] = {}

    def _plan(self, source: int, k: int, j: int, targets: int) -> int:
        """Note that `source` crosses k -> j if a target is met there or beyond; returns the targets met."""
        met = targets & self.tree.cliques[j]
        beyond = 0
        for n in self.near[j]:
            if n != k:
                beyond |= self._plan(source, j, n, targets & ~met)
        if met | beyond:
            self.carried.setdefault((k, j), []).append(source)
            self.delivered.setdefault((k, j), []).extend((source, t) for t in bits(met))
        return met | beyond

    def pairs(self) -> dict[int, Array]:
        """The table of every wanted pair, axes ascending."""
        found: dict[int, Array] = {}
        for (k, j), asked in self.delivered.items():
            separator = self.tree.cliques[k] & self.tree.cliques[j]
            for target in sorted({t for _, t in asked}):
                names = {s for s, t in asked if t == target}
                joint = self.tables.inside(separator | 1 << target)
                for bundle in self._over(k, j):
                    here = [s for s in bundle.parts if s in names]
                    if here:
                        distribution = product(bundle.distributions, separator, joint, 1 << target, self.shape)
                        for source in here:
                            table = bundle.parts[source] @ distribution
                            found[1 << source | 1 << target] = table if source < target else table.T
        return found

    def _over(self, k: int, j: int) -> list[Bundle]:
        """All attributes carried over the edge, as bundles of distributions given its separator."""
        if (k, j) in self.crossing:
            return self.crossing[k, j]
        names, separator = self.carried[k, j], self.tree.cliques[k] & self.tree.cliques[j]
        weight = self.tables.inside(separator).reshape(1, -1)
        bundles = []
        for s in names:
            if self.tree.cliques[k] >> s & 1:
                both = bits(separator | 1 << s)
                table = np.moveaxis(self.tables.inside(separator | 1 << s), both.index(s), 0)
                bundles.append(Bundle(_ratio(table.reshape(self.shape[s], -1), weight), {s: np.eye(self.shape[s])}))
        for i in self.near[k]:
            here = [s for s in self.carried.get((i, k), []) if s in names] if i != j else []
            before = self.tree.cliques[i] & self.tree.cliques[k]
            for bundle in self._over(i, k) if here else []:
                kept = {s: part for s, part in bundle.parts.items() if s in here}
                if kept:
                    joint = self.tables.inside(before | separator)
                    counts = product(bundle.distributions, before, joint, separator, self.shape)
                    bundles.append(Bundle(_ratio(counts, weight), kept))
        if sum(len(b.distributions) for b in bundles) > weight.size:
            # A narrow separator: from here on its own cells travel, instead of all that is behind it.
            parts = {s: part @ b.distributions for b in bundles for s, part in b.parts.items()}
            bundles = [Bundle(np.eye(weight.size), parts)]
        self.crossing[k, j] = bundles
        return bundles


def _ratio(counts: Array, weight: Array) -> Array:
    return np.divide(counts, weight, out=np.zeros(counts.shape), where=weight > 0)


def table_of(oracle: Oracle, mask: int, total: float) -> Array:
    """Marginal over any attributes: the subtree that joins them, leaves summed out one clique at a time."""
    tree = oracle.tree
    tables = Tables(oracle)
    if any(mask & ~c == 0 for c in tree.cliques):
        return tables.inside(mask)
    part = parts(oracle)
    result, axes = np.ones(()), []
    for root in dict.fromkeys(part[i] for i in bits(mask)):
        here = sum(1 << i for i in bits(mask) if part[i] == root)
        result = np.multiply.outer(result, _gathered(tables, root, here) / total)
        axes += list(bits(here))
    return np.asarray(result.transpose([axes.index(i) for i in bits(mask)]) * total)


def _gathered(tables: Tables, root: int, mask: int) -> Array:
    """The marginal over `mask` within the part of `root`: conditional tables travel from the leaves to the root.

    Where they would be too large, those of one level of an attribute at a time.
    """
    tree = tables.tree
    i = max(bits(mask), key=lambda i: tables.shape[i])
    if tables.shape[i] > 1 and _widest(tables, root, mask) > MOST_CELLS:
        levels = [_gathered(Level(tables, i, level), root, mask) for level in range(tables.shape[i])]
        return np.concatenate(levels, axis=bits(mask).index(i))
    inbox: dict[int, list[tuple[int, Array]]] = {}
    for k in tree.order:
        scope = tree.cliques[k]
        for names, _ in inbox.get(k, []):
            scope |= names
        if k == root:
            return _joined(tables, k, inbox.get(k, []), mask)
        here, separator = mask & scope, tree.separators[k]
        if here & ~separator:  # otherwise the clique tells its parent nothing new of what is asked
            below = tables.inside(separator)
            joint = _joined(tables, k, inbox.get(k, []), separator | here)
            below = below[tuple(slice(None) if separator >> i & 1 else None for i in bits(separator | here))]
            distribution = np.divide(joint, below, out=np.zeros(joint.shape), where=below > 0)
            inbox.setdefault(tree.parents[k], []).append((separator | here, distribution))
    raise AssertionError("every part has its root in the order")


def _widest(tables: Tables, root: int, mask: int) -> int:
    """Cells of the largest table that `_gathered` makes on its way to the root."""
    tree, widest = tables.tree, 1
    inbox: dict[int, list[int]] = {}
    for k in tree.order:
        if k == root:
            break
        known = inbox.get(k, [])
        here = mask & (tree.cliques[k] | reduce(or_, known, 0))
        if here & ~tree.separators[k]:
            inbox.setdefault(tree.parents[k], []).append(here)
            made = here | (tree.cliques[k] if len(known) > 1 else tree.separators[k])
            widest = max(widest, cells(made, tables.shape))
    return widest


def _joined(tables: Tables, k: int, inbox: Sequence[tuple[int, Array]], kept: int) -> Array:
    """Clique k's marginal times the conditional tables of `inbox`, summed onto `kept`."""
    clique = tables.tree.cliques[k]
    needed, every = kept & clique, kept
    for names, _ in inbox:
        needed |= names & clique
        every |= names
    label = {i: n for n, i in enumerate(bits(every | needed))}
    operands: list[Array | list[int]] = [tables.inside(needed), [label[i] for i in bits(needed)]]
    for names, table in inbox:
        operands += [table, [label[i] for i in bits(names)]]
    return np.asarray(np.einsum(*operands, [label[i] for i in bits(kept)], optimize="greedy"))  # type: ignore
