"""Sum-product inside one maximal clique: multiply small tables, sum back onto their scopes.

Two ways to hold the product. `Dense` fills the clique's whole table. `Triple` never does: the attributes
fall into groups R, A, B, C so that every table lies in R+A+B, R+A+C or R+B+C; with X, Y, Z the products on these
three, the marginal on R+A+B is X * (Y Z^T), one matrix product per cell of R, and so on. It needs the
memory of three faces instead of the box, and the arithmetic runs at the speed of matrix multiplication.

All buffers exist before the first step; an input is a view of the buffer where its values will appear.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .measurements import Array
from .sums import Addition, Summation
from .trees import bits, cells

# Faces hold weights exp(CUT) to exp(PEAK), or 0: a product of three neither overflows nor becomes subnormal (which is
# slow). What CUT drops is below exp(CUT + 2 PEAK); a sum of products above LEAST, exp(205), has lost nothing by it.
CUT, PEAK, SLIGHT, LEAST = -230.0, 200.0, 1e-200, 1e89
NOTHING = 1e-12  # share of the weight that may be lost where a product of faces has vanished
MOST_FAILURES = 3


def spread(table: Array, mask: int, scope: int) -> Array:
    """View of `table` (axes of `mask`, ascending) that broadcasts against the axes of `scope`."""
    return table[tuple(slice(None) if mask >> i & 1 else None for i in bits(scope))]


@lru_cache(maxsize=200_000)
def summed_axes(scope: int, kept: int) -> tuple[int, ...]:
    """Axes of a table over `scope` to sum so that `kept` is left."""
    return tuple(a for a, i in enumerate(bits(scope)) if not kept >> i & 1)


class Dense:
    """One filled table over `scope`, its axes ascending; `layout` is the order of the axes in memory.

    Inputs are logarithms. `collect` leaves the law of the rest given the separator; `distribute` multiplies by
    the separator's marginal: nothing is divided by a number that may be zero, whatever the potentials.
    """

    def __init__(self, scope: int, shape: tuple[int, ...], layout: Sequence[int] | None = None) -> None:
        axes = bits(scope)
        layout = axes if layout is None else tuple(layout)
        self.scope, self.shape = scope, shape
        self.buffer = np.empty([shape[i] for i in layout], dtype=np.float64)
        self.table = self.buffer.transpose([layout.index(i) for i in axes])
        self.logs = Addition(self.buffer, layout, shape)
        self.marginals = Summation(self.buffer, layout, shape)
        self.summed: tuple[int, ...] = tuple(range(len(axes)))
        self.message: Array = np.empty(())
        self.marginal: Array = np.empty(())

    def attach(self, mask: int, logs: Array) -> None:
        """Add a table of logarithms over `mask` to the product."""
        self.logs.attach(mask, logs)

    def emit(self, mask: int, out: Array) -> None:
        """Write the marginal over `mask` to `out` at every sweep."""
        self.marginals.emit(mask, out)

    def link(self, separator: int, message: Array, marginal: Array) -> None:
        """Where the logarithm of the sum onto `separator` goes, and where its marginal will come from."""
        self.summed = summed_axes(self.scope, separator)
        self.message = spread(message, separator, self.scope)
        self.marginal = spread(marginal, separator, self.scope)

    def collect(self) -> None:
        """The sweep up: multiply the inputs and send the sum onto the separator."""
        self.logs.fill()
        peaks = np.maximum.reduce(self.table, axis=self.summed, keepdims=True)
        np.subtract(self.table, peaks, out=self.table)
        np.exp(self.buffer, out=self.buffer)
        sums = np.add.reduce(self.table, axis=self.summed, keepdims=True)
        np.divide(self.table, sums, out=self.table)
        np.log(sums, out=sums)
        np.add(sums, peaks, out=sums)
        self.message[...] = sums.reshape(self.message.shape)

    def distribute(self) -> bool:
        """The sweep down: bring in the separator's marginal and write the outputs."""
        np.multiply(self.table, self.marginal, out=self.table)
        self.marginals.write()
        return True

    def reset(self) -> None:
        """Nothing to undo: a filled table is always exact."""

    def fill(self) -> None:
        """It is filled."""

    def belief(self) -> Array:
        """The whole table, axes ascending."""
        return self.table

    def onto(self, mask: int) -> Array:
        """The marginal over `mask`, axes ascending."""
        return np.asarray(self.table.sum(axis=summed_axes(self.scope, mask)))

    def holds(self, mask: int) -> bool:
        """Whether a table over `mask` fits in."""
        return mask & ~self.scope == 0


class Triple:
    """Three faces X, Y, Z of the box R x A x B x C; see the head of this file.

    The greatest logarithm along every line of a face is first moved into the line's own term, and these terms into
    X, so that faces that disagree strongly (large values of opposite sign) do not vanish one by one. Where they do
    vanish on cells that turn out to have weight, `distribute` says so; `fill` then puts the whole table in place.
    """

    def __init__(self, scope: int, shape: tuple[int, ...], groups: tuple[int, int, int, int]) -> None:
        self.scope, self.shape = scope, shape
        self._inputs: list[tuple[int, Array]] = []
        self._outputs: list[tuple[int, Array]] = []
        self._link: tuple[int, Array, Array] = (0, np.empty(()), np.empty(()))
        self._filled: Dense | None = None
        self._failures = 0
        r, a, b, c = groups
        nr, na, nb, nc = (cells(g, shape) for g in groups)
        layouts = [bits(r) + bits(p) + bits(q) for p, q in ((a, b), (a, c), (b, c))]
        self.faces = [
            Dense(mask, shape, order) for mask, order in zip((r | a | b, r | a | c, r | b | c), layouts, strict=True)
        ]
        x, y, z = (f.buffer for f in self.faces)
        self.x, self.y, self.z = x.reshape(nr, na, nb), y.reshape(nr, na, nc), z.reshape(nr, nb, nc)
        buffers = [np.empty_like(f.buffer) for f in self.faces]
        self.products = [m.reshape(t.shape) for m, t in zip(buffers, (self.x, self.y, self.z), strict=True)]
        self.seen = [m.transpose([o.index(i) for i in sorted(o)]) for m, o in zip(buffers, layouts, strict=True)]
        self.marginals = [Summation(m, o, shape) for m, o in zip(buffers, layouts, strict=True)]
        self.at_up = 0
        self.sums: Array = np.empty(())
        self.fresh = [False] * 3

    def _face(self, mask: int) -> int:
        fit = [k for k in range(3) if self.faces[k].holds(mask)]
        return min(fit, key=lambda k: self.faces[k].buffer.size)

    def attach(self, mask: int, logs: Array) -> None:
        """Add a table of logarithms over `mask` to the product."""
        self._inputs.append((mask, logs))
        self.faces[self._face(mask)].attach(mask, logs)

    def emit(self, mask: int, out: Array) -> None:
        """Write the marginal over `mask` to `out` at every sweep."""
        self._outputs.append((mask, out))
        self.marginals[self._face(mask)].emit(mask, out)

    def link(self, separator: int, message: Array, marginal: Array) -> None:
        """As `Dense.link`."""
        self._link = (separator, message, marginal)
        self.at_up = self._face(separator)
        self.faces[self.at_up].link(separator, message, marginal)

    @property
    def filled(self) -> bool:
        """Whether the whole table stands in place of the faces."""
        return self._filled is not None

    def fill(self, failures: int = 1) -> None:
        """Use the whole table in the next sweep, and for good after `MOST_FAILURES`."""
        self._failures += failures
        self._filled = Dense(self.scope, self.shape)
        for mask, logs in self._inputs:
            self._filled.attach(mask, logs)
        for mask, out in self._outputs:
            self._filled.emit(mask, out)
        self._filled.link(*self._link)

    def reset(self) -> None:
        """Back to the faces, unless they have failed too often."""
        if self._failures < MOST_FAILURES:
            self._filled = None

    def _weights(self) -> float:
        """Faces from logarithms to weights; returns the logarithm of the constant taken out."""
        x, y, z = self.x, self.y, self.z
        terms = []
        for face in (x, y, z):
            rows = face.max(axis=2, keepdims=True)
            np.subtract(face, rows, out=face)
            columns = face.max(axis=1, keepdims=True)
            np.subtract(face, columns, out=face)
            terms.append((rows, columns))
        of_a, of_b = terms[0][0] + terms[1][0], terms[0][1] + terms[2][0].transpose(0, 2, 1)
        of_c = terms[1][1] + terms[2][1]
        peak_b, peak_c = of_b.max(axis=2, keepdims=True), of_c.max(axis=2, keepdims=True)
        of_a += peak_b + peak_c
        constant = float(of_a.max())
        of_a -= constant
        x += of_a
        x += of_b - peak_b
        y += of_c - peak_c
        for face in (x, y, z):
            np.add(face, PEAK, out=face)
            np.putmask(face, face < CUT, -np.inf)
            np.exp(face, out=face)
        return constant - 3 * PEAK

    def _marginal(self, face: int) -> None:
        x, y, z, out = self.x, self.y, self.z, self.products[face]
        if face == 0:
            np.matmul(y, z.transpose(0, 2, 1), out=out)
            np.multiply(out, x, out=out)
        elif face == 1:
            np.matmul(x, z, out=out)
            np.multiply(out, y, out=out)
        else:
            np.matmul(x.transpose(0, 2, 1), y, out=out)
            np.multiply(out, z, out=out)

    def collect(self) -> None:
        """The sweep up: multiply the inputs and send the sum onto the separator."""
        if self._filled is not None:
            return self._filled.collect()
        for face in self.faces:
            face.logs.fill()
        constant = self._weights()
        self._marginal(self.at_up)
        up = self.faces[self.at_up]
        self.sums = np.add.reduce(self.seen[self.at_up], axis=up.summed, keepdims=True)
        np.maximum(self.sums, LEAST, out=self.sums)
        up.message[...] = (np.log(self.sums) + constant).reshape(up.message.shape)

    def distribute(self) -> bool:
        """Write the marginals; False if weight is due on cells where the faces' product has vanished."""
        if self._filled is not None:
            return self._filled.distribute()
        up = self.faces[self.at_up]
        due = np.where(self.sums <= LEAST, up.marginal, 0.0)
        if due.max() > NOTHING * up.marginal.max():
            return False
        ratio = up.marginal / self.sums
        np.multiply(up.table, ratio, out=up.table)
        np.putmask(up.buffer, up.buffer < SLIGHT, 0.0)
        np.multiply(self.seen[self.at_up], ratio, out=self.seen[self.at_up])
        self.fresh = [k == self.at_up for k in range(3)]
        for k, marginals in enumerate(self.marginals):
            if marginals.outputs:
                if k != self.at_up:
                    self._marginal(k)
                    self.fresh[k] = True
                marginals.write()
        return True

    def belief(self) -> Array:
        """The whole table, axes ascending."""
        if self._filled is not None:
            return self._filled.table
        x, y, z = (spread(f.table, f.scope, self.scope) for f in self.faces)
        table = np.asarray(x * y)
        table *= z
        return table

    def onto(self, mask: int) -> Array:
        """The marginal over `mask`, axes ascending."""
        if self._filled is not None or not self.holds(mask):
            return np.asarray(self.belief().sum(axis=summed_axes(self.scope, mask)))
        k = self._face(mask)
        if not self.fresh[k]:
            self._marginal(k)
            self.fresh[k] = True
        return np.asarray(self.seen[k].sum(axis=summed_axes(self.faces[k].scope, mask)))

    def holds(self, mask: int) -> bool:
        """Whether a table over `mask` fits in."""
        return any(face.holds(mask) for face in self.faces)
