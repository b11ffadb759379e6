"""The sums of one table onto many scopes, and one table as the sum of many: each shares what it can.

numpy is slow where the innermost axis is short: in a table of ten attributes with two to twelve levels it sums or adds
a cell in 5 to 20 ns. Here a sum over the innermost axes is a product with a matrix of zeros and ones, sums that several
scopes have in common are taken once, and a table is added up (or multiplied) from small scopes to large ones. The
steps are planned once, for arrays that stay where they are; `summed` takes one sum of any array.

A set of attributes is the bits of an integer; a table over it has its attributes ascending. The arrays that are summed
or filled have them in any `order`, the innermost last.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from .measurements import Array
from .trees import bits, cells

# Cells of the innermost axes: so few are summed together with the next axis; so many are enough for numpy's own sum;
# at most so many are multiplied by a matrix; so many an addition runs through.
FEW, ENOUGH, MOST, TAIL = 8, 24, 1024, 32
SMALL = 2048  # cells below which numpy's own sum is as quick as ours

Step = Callable[[], object]
Output = tuple[int, Array]


def summed(table: Array, axes: Collection[int]) -> Array:
    """The sum of a table over some of its axes, once: by matrix products, innermost axes first."""
    if table.size < SMALL or not axes:
        return np.asarray(np.add.reduce(table, axis=tuple(axes)))
    order = sorted(range(table.ndim), key=lambda axis: -table.strides[axis])
    left = np.ascontiguousarray(table.transpose(order))
    for gone, run in reversed([(gone, list(run)) for gone, run in itertools.groupby(order, axes.__contains__)]):
        if not gone:
            continue
        first = order.index(run[0])
        del order[first : first + len(run)]
        before, after = left.shape[:first], left.shape[first + len(run) :]
        rows, width, last = math.prod(before), math.prod(table.shape[axis] for axis in run), math.prod(after)
        if last == 1:
            left = left.reshape(rows, width) @ np.ones(width)
        elif width * last < ENOUGH:
            left = left.reshape(rows, width * last) @ np.tile(np.eye(last), (width, 1))
        else:
            left = np.ones(width) @ left.reshape(rows, width, last)
        left = left.reshape(before + after)
    return left.transpose([order.index(axis) for axis in sorted(order)])


class Summation:
    """Sums of `source`, a contiguous array whose axes are the attributes `order`, onto the outputs."""

    def __init__(self, source: Array, order: Sequence[int], shape: tuple[int, ...]) -> None:
        self.shape, self.order = shape, [i for i in order if shape[i] > 1]
        self.source = source.reshape([shape[i] for i in self.order])
        self.outputs: list[Output] = []
        self._steps: list[Step] = []
        self._scratch: list[Array] = []

    def emit(self, mask: int, out: Array) -> None:
        """Write the sum onto `mask` to `out`, too."""
        self.outputs.append((mask, out))
        self._steps = []

    def write(self) -> None:
        """Write all outputs."""
        if not self._steps:
            self._plan(self.source, self.order, 0, self.outputs, 0)
        for step in self._steps:
            step()

    def _plan(self, table: Array, order: list[int], done: int, outputs: Sequence[Output], depth: int) -> None:
        """Steps from a table over `order`, whose last `done` axes all outputs keep.

        Tables on the way are overwritten from branch to branch; one at `depth` has half the cells of that above it.
        """
        larger = []
        for mask, out in outputs:
            if all(mask >> i & 1 for i in order):
                ascending = sorted(range(len(order)), key=order.__getitem__)
                seen = table.reshape([self.shape[i] for i in order]).transpose(ascending)
                self._steps.append(partial(np.copyto, squeezed(out, mask, self.shape), seen))
            else:
                larger.append((mask, out))
        if not larger:
            return
        start = self._start(order, done, [mask for mask, _ in larger])
        group, tail = order[start : len(order) - done], order[len(order) - done :]
        parts: dict[tuple[int, ...], list[Output]] = {}
        for mask, out in larger:
            parts.setdefault(tuple(i for i in group if mask >> i & 1), []).append((mask, out))
        for kept, members in parts.items():
            if len(kept) == len(group):
                self._plan(table, order, len(group) + done, members, depth)
                continue
            if depth == len(self._scratch):
                self._scratch.append(np.empty(self.source.size >> depth + 1))
            rest = [*order[:start], *kept, *tail]
            summed = self._scratch[depth][: self._cells(rest)]
            self._steps.append(self._sum(table, order[:start], group, kept, tail, summed))
            self._plan(summed, rest, len(kept) + done, members, depth + 1)

    def _start(self, order: list[int], done: int, masks: Sequence[int]) -> int:
        """Where the axes begin that are summed next: one, with those before it that nobody keeps, or more if short."""
        end, last = len(order) - done, self._cells(order[len(order) - done :])
        start = end - 1
        while start:
            wider = self._cells(order[start - 1 :])
            alone = wider <= MOST or last == 1 or last >= ENOUGH
            unkept = alone and not any(mask >> i & 1 for mask in masks for i in order[start - 1 : end])
            if not unkept and (self._cells(order[start:]) >= FEW or wider > 4 * ENOUGH):
                break
            start -= 1
        return start

    def _sum(
        self, table: Array, lead: list[int], group: list[int], kept: Sequence[int], tail: list[int], out: Array
    ) -> Step:
        """Sum a table over lead + group + tail onto lead + kept + tail."""
        rows, width, last = self._cells(lead), self._cells(group), self._cells(tail)
        if not kept and last > 1 and (last >= ENOUGH or width * last > MOST):
            return partial(np.add.reduce, table.reshape(rows, width, last), axis=1, out=out.reshape(rows, last))
        picks = _picks(tuple((self.shape[i], i in kept) for i in group), last)
        if picks.shape[1] == 1:
            return partial(np.matmul, table.reshape(rows, width), picks[:, 0], out=out)
        return partial(np.matmul, table.reshape(rows, width * last), picks, out=out.reshape(rows, picks.shape[1]))

    def _cells(self, attributes: Sequence[int]) -> int:
        return cells(sum(1 << i for i in attributes), self.shape)


@dataclass(frozen=True)
class Term:
    """A table over `mask`, its axes in the order of memory. One of our `own` may be overwritten."""

    mask: int
    table: Array
    own: bool = False


class Addition:
    """`target`, a contiguous array whose axes are the attributes `order`, as the sum of the inputs, or their product.

    `by`: np.add or np.multiply.
    """

    def __init__(self, target: Array, order: Sequence[int], shape: tuple[int, ...], by: np.ufunc = np.add) -> None:
        self.shape, self.order, self.by = shape, [i for i in order if shape[i] > 1], by
        self.whole = sum(1 << i for i in self.order)
        self.target = target.reshape([shape[i] for i in self.order])
        self.inputs: list[Term] = []
        self._steps: list[Step] = []

    def attach(self, mask: int, table: Array) -> None:
        """Add `table`, over `mask`, too."""
        table = squeezed(table, mask, self.shape)
        mask &= self.whole
        axes = bits(mask)
        self.inputs.append(Term(mask, table.transpose([axes.index(i) for i in self.order if mask >> i & 1])))
        self._steps = []

    def fill(self) -> None:
        """Fill the target."""
        if not self._steps:
            self._plan()
        for step in self._steps:
            step()

    def _plan(self) -> None:
        """Steps that add two terms until one is left, those first whose sum has the fewest cells."""
        terms, tail = self.inputs or [Term(0, np.asarray(float(self.by.identity)))], tail_of(self.order, self.shape)
        while len(terms) > 1:
            one, other = min(itertools.combinations(terms, 2), key=lambda pair: self._cost(pair[0], pair[1], tail))
            terms = [term for term in terms if term is not one and term is not other]
            terms.append(self._add(one, other, one.mask | other.mask | tail))
        if terms[0].table is not self.target:
            self._steps.append(partial(np.copyto, self.target, self._seen(terms[0], self.whole)))

    def _cost(self, one: Term, other: Term, tail: int) -> tuple[int, bool]:
        """The cells of their sum; of two that fill the target the one that began it comes first."""
        begun = any(term.table is self.target for term in (one, other))
        return cells(one.mask | other.mask | tail, self.shape), not begun

    def _add(self, one: Term, other: Term, scope: int) -> Term:
        """Their sum, over `scope`: in a table of our own that has it already, in the target, or in a new one."""
        own = [term.table for term in (one, other) if term.own and term.mask == scope]
        table = self.target if scope == self.whole else np.empty([self.shape[i] for i in self.order if scope >> i & 1])
        out = own[0] if own else table
        self._steps.append(partial(self.by, self._seen(one, scope), self._seen(other, scope), out=out))
        return Term(scope, out, own=True)

    def _seen(self, term: Term, scope: int) -> Array:
        """A view that broadcasts against the axes of `scope`."""
        return term.table[(*(slice(None) if term.mask >> i & 1 else None for i in self.order if scope >> i & 1), ...)]


@lru_cache(maxsize=10_000)
def _picks(group: tuple[tuple[int, bool], ...], last: int) -> Array:
    """The matrix of zeros and ones that sums the axes of a group, by size and whether they are kept; `last` cells stay.

    **Shapes**: (cells of the group * last, cells of what is kept * last).
    """
    picks: Array = np.eye(last)
    for size, kept in reversed(group):
        picks = np.asarray(np.kron(np.eye(size) if kept else np.ones((size, 1)), picks))
    return picks


class Scaling:
    """Views of a table that broadcast against an array whose axes are the attributes `order`, in long runs."""

    def __init__(self, order: Sequence[int], shape: tuple[int, ...]) -> None:
        self.order, self.shape = order, shape

    def spread(self, table: Array, mask: int) -> Array:
        """A copy of the table, over `mask`, repeated along the innermost axes."""
        wide, axes = mask | tail_of(self.order, self.shape), bits(mask)
        view = table.transpose([axes.index(i) for i in self.order if mask >> i & 1])
        run = np.empty([self.shape[i] if wide >> i & 1 else 1 for i in self.order])
        run[...] = view.reshape([self.shape[i] if mask >> i & 1 else 1 for i in self.order])
        return run


def tail_of(order: Sequence[int], shape: tuple[int, ...]) -> int:
    """The innermost axes that an addition or a product should run through."""
    tail = 0
    for i in reversed(order):
        if cells(tail, shape) >= TAIL:
            break
        tail |= 1 << i
    return tail


def squeezed(table: Array, mask: int, shape: tuple[int, ...]) -> Array:
    """A view of a table over `mask` without its axes of one level."""
    return table[(*(slice(None) if shape[i] > 1 else 0 for i in bits(mask)), ...)]
