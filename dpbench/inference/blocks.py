"""Sum-product inside one maximal clique: multiply small tables, sum back onto their scopes.

Two ways to hold the product. `Dense` fills the clique's whole table. `Triple` never does: the attributes
fall into groups R, A, B, C so that every table lies in R+A+B, R+A+C or R+B+C; with X, Y, Z the products on these
three, the marginal on R+A+B is X * (Y Z^T), one matrix product per cell of R, and so on. It needs the
memory of three faces instead of the box, and the arithmetic runs at the speed of matrix multiplication. A face is
a product of weights: exponentials are taken of its small inputs alone.

All buffers exist before the first step; an input is a view of the buffer where its values will appear.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .measurements import Array
from .sums import Addition, Scaling, Summation, summed
from .trees import bits, cells

# Faces hold weights exp(CUT) to exp(PEAK), or 0: a product of three neither overflows nor becomes subnormal (which is
# slow). What CUT drops is below exp(CUT + 2 PEAK); a sum of products above LEAST, exp(205), has lost nothing by it.
CUT, PEAK, SLIGHT, LEAST = -230.0, 200.0, 1e-200, 1e89
NOTHING = 1e-12  # share of the weight that may be lost where a product of faces has vanished
MOST_FAILURES = 3
NO_ROWS = 1e-40  # counts below it are none: products of such numbers become subnormal, which is slow


def spread(table: Array, mask: int, scope: int) -> Array:
    """View of `table` (axes of `mask`, ascending) that broadcasts against the axes of `scope`."""
    return table[tuple(slice(None) if mask >> i & 1 else None for i in bits(scope))]


@lru_cache(maxsize=200_000)
def summed_axes(scope: int, kept: int) -> tuple[int, ...]:
    """Axes of a table over `scope` to sum so that `kept` is left."""
    return tuple(a for a, i in enumerate(bits(scope)) if not kept >> i & 1)


class Factor:
    """A positive table: exp(logs), or weights * exp(constant), the weights at most 1.

    Its sender sets one of the two; a receiver that needs the other has it made.
    """

    def __init__(self, logs: Array) -> None:
        self.logs, self.weights = logs, np.empty(logs.shape)
        self.constant: float | None = None  # None: the logarithms are what was sent

    def send_weights(self, weights: Array, constant: float) -> None:
        """Set it to weights * exp(constant); the greatest weight may be any number above 0."""
        peak = float(weights.max())
        np.multiply(weights, 1 / peak, out=self.weights)
        self.constant = constant + math.log(peak)

    def make_logs(self) -> None:
        """Fill `logs`."""
        if self.constant is not None:
            np.log(self.weights, out=self.logs)
            np.add(self.logs, self.constant, out=self.logs)

    def make_weights(self) -> float:
        """Fill `weights`; returns the constant."""
        if self.constant is not None:
            return self.constant
        peak = float(self.logs.max())
        np.subtract(self.logs, peak, out=self.weights)
        np.exp(self.weights, out=self.weights)
        return peak


class Dense:
    """One filled table over `scope`, its axes ascending; `layout` is the order of the axes in memory.

    The product is taken in logarithms. `collect` leaves the distribution of the rest given the separator; `distribute`
    multiplies by the separator's marginal: nothing is divided by a number that may be zero, whatever the potentials.
    """

    def __init__(self, scope: int, shape: tuple[int, ...], layout: Sequence[int] | None = None) -> None:
        axes = bits(scope)
        layout = axes if layout is None else tuple(layout)
        self.scope, self.shape = scope, shape
        self.buffer = np.empty([shape[i] for i in layout], dtype=np.float64)
        self.table = self.buffer.transpose([layout.index(i) for i in axes])
        self.logs = Addition(self.buffer, layout, shape)
        self.marginals = Summation(self.buffer, layout, shape)
        self.inputs: list[Factor] = []
        self.summed: tuple[int, ...] = tuple(range(len(axes)))
        self.message = Factor(np.empty(()))
        self.marginal: Array = np.empty(())

    def attach(self, mask: int, factor: Factor) -> None:
        """Add a factor over `mask` to the product."""
        self.inputs.append(factor)
        self.logs.attach(mask, factor.logs)

    def emit(self, mask: int, out: Array) -> None:
        """Write the marginal over `mask` to `out` at every sweep."""
        self.marginals.emit(mask, out)

    def link(self, separator: int, message: Factor, marginal: Array) -> None:
        """Where the sum onto `separator` goes, and where its marginal will come from."""
        self.summed = summed_axes(self.scope, separator)
        self.message = message
        self.marginal = spread(marginal, separator, self.scope)

    def collect(self) -> None:
        """The sweep up: multiply the inputs and send the sum onto the separator."""
        for factor in self.inputs:
            factor.make_logs()
        self.logs.fill()
        peaks = np.maximum.reduce(self.table, axis=self.summed, keepdims=True)
        np.subtract(self.table, peaks, out=self.table)
        np.exp(self.buffer, out=self.buffer)
        sums = np.add.reduce(self.table, axis=self.summed, keepdims=True)
        np.divide(self.table, sums, out=self.table)
        np.log(sums, out=sums)
        np.add(sums, peaks, out=sums)
        self.message.logs[...] = sums.reshape(self.message.logs.shape)
        self.message.constant = None

    def distribute(self) -> bool:
        """The sweep down: bring in the separator's marginal and write the outputs."""
        np.putmask(self.marginal, self.marginal < NO_ROWS, 0.0)
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
        return summed(self.table, summed_axes(self.scope, mask))


class Face:
    """A product of factors, its axes in the order `layout`, as weights of at most exp(PEAK); and the marginal on it."""

    def __init__(self, layout: Sequence[int], shape: tuple[int, ...]) -> None:
        self.scope = sum(1 << i for i in layout)
        self.buffer, self.product = (np.empty([shape[i] for i in layout]) for _ in range(2))
        self.table = self.product.transpose(np.argsort(layout))
        self.inputs: list[Factor] = []
        self.weights = Addition(self.buffer, layout, shape, by=np.multiply)
        self.weights.attach(0, np.asarray(math.exp(PEAK)))
        self.marginals = Summation(self.product, layout, shape)
        self.scaling = Scaling(layout, shape)

    def attach(self, mask: int, factor: Factor) -> None:
        """Multiply by a factor over `mask`, too."""
        self.inputs.append(factor)
        self.weights.attach(mask, factor.weights)

    def fill(self) -> float:
        """The weights, from the inputs; returns the logarithm of the constant taken out."""
        constant = sum(factor.make_weights() for factor in self.inputs) - PEAK
        self.weights.fill()
        if math.prod(float(factor.weights.min()) for factor in self.inputs) < math.exp(CUT - PEAK):
            np.putmask(self.buffer, self.buffer < math.exp(CUT), 0.0)
        return constant

    def scale(self, ratio: Array, separator: int) -> None:
        """Multiply the weights and the marginal by a table over the separator."""
        factor = self.scaling.spread(ratio, separator)
        np.multiply(self.product, factor, out=self.product)
        np.multiply(self.buffer, factor, out=self.buffer)
        np.putmask(self.buffer, self.buffer < SLIGHT, 0.0)


class Triple:
    """Three faces X, Y, Z of the box R x A x B x C; see the head of this file.

    Faces that disagree strongly, by hundreds of nats, have a product that vanishes on cells which turn out to have
    weight. Then `distribute` says so; `fill` puts the whole table, made from logarithms, in place.
    """

    def __init__(self, scope: int, shape: tuple[int, ...], groups: tuple[int, int, int, int]) -> None:
        self.scope, self.shape = scope, shape
        self._inputs: list[tuple[int, Factor]] = []
        self._outputs: list[tuple[int, Array]] = []
        self._link: tuple[int, Factor, Array] = (0, Factor(np.empty(())), np.empty(()))
        self._filled: Dense | None = None
        self._failures = 0
        r, a, b, c = groups
        nr, na, nb, nc = (cells(g, shape) for g in groups)
        self.layout = bits(r) + bits(a) + bits(b) + bits(c)
        self.faces = [Face(bits(r) + bits(p) + bits(q), shape) for p, q in ((a, b), (a, c), (b, c))]
        sides = [(nr, na, nb), (nr, na, nc), (nr, nb, nc)]
        self.x, self.y, self.z = (f.buffer.reshape(n) for f, n in zip(self.faces, sides, strict=True))
        self.products = [f.product.reshape(n) for f, n in zip(self.faces, sides, strict=True)]
        self.at_up = 0
        self.sums: Array = np.empty(())
        self.fresh = [False] * 3

    def _face(self, mask: int) -> int:
        fit = [k for k, face in enumerate(self.faces) if mask & ~face.scope == 0]
        return min(fit, key=lambda k: self.faces[k].buffer.size)

    def attach(self, mask: int, factor: Factor) -> None:
        """As `Dense.attach`."""
        self._inputs.append((mask, factor))
        self.faces[self._face(mask)].attach(mask, factor)

    def emit(self, mask: int, out: Array) -> None:
        """Write the marginal over `mask` to `out` at every sweep."""
        self._outputs.append((mask, out))
        self.faces[self._face(mask)].marginals.emit(mask, out)

    def link(self, separator: int, message: Factor, marginal: Array) -> None:
        """As `Dense.link`."""
        self._link = (separator, message, marginal)
        self.at_up = self._face(separator)

    @property
    def filled(self) -> bool:
        """Whether the whole table stands in place of the faces."""
        return self._filled is not None

    def fill(self, failures: int = 1) -> None:
        """Use the whole table in the next sweep, and for good after `MOST_FAILURES`."""
        self._failures += failures
        self._filled = Dense(self.scope, self.shape)
        for mask, factor in self._inputs:
            self._filled.attach(mask, factor)
        for mask, out in self._outputs:
            self._filled.emit(mask, out)
        self._filled.link(*self._link)

    def reset(self) -> None:
        """Back to the faces, unless they have failed too often."""
        if self._failures < MOST_FAILURES:
            self._filled = None

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
        self.fresh[face] = True

    def collect(self) -> None:
        """The sweep up: multiply the inputs and send the sum onto the separator."""
        if self._filled is not None:
            return self._filled.collect()
        constant = sum(face.fill() for face in self.faces)
        self._marginal(self.at_up)
        separator, message, _ = self._link
        up = self.faces[self.at_up]
        self.sums = np.maximum(summed(up.table, summed_axes(up.scope, separator)), LEAST)
        message.send_weights(self.sums, constant)

    def distribute(self) -> bool:
        """Write the marginals; False if weight is due on cells where the faces' product has vanished."""
        if self._filled is not None:
            return self._filled.distribute()
        separator, _, marginal = self._link
        np.putmask(marginal, marginal < NO_ROWS, 0.0)
        due = np.where(self.sums <= LEAST, marginal, 0.0)
        if due.max() > NOTHING * marginal.max():
            return False
        self.faces[self.at_up].scale(marginal / self.sums, separator)
        self.fresh = [k == self.at_up for k in range(3)]
        for k, face in enumerate(self.faces):
            if face.marginals.outputs:
                if not self.fresh[k]:
                    self._marginal(k)
                face.marginals.write()
        return True

    def belief(self) -> Array:
        """The whole table, axes ascending."""
        if self._filled is not None:
            return self._filled.table
        table = self.y[:, :, None, :] * self.z[:, None, :, :]
        table *= self.x[:, :, :, None]
        return table.reshape([self.shape[i] for i in self.layout]).transpose(np.argsort(self.layout))

    def onto(self, mask: int) -> Array:
        """The marginal over `mask`, axes ascending."""
        if self._filled is not None or not self.holds(mask):
            return summed(self.belief(), summed_axes(self.scope, mask))
        k = self._face(mask)
        if not self.fresh[k]:
            self._marginal(k)
        return summed(self.faces[k].table, summed_axes(self.faces[k].scope, mask))

    def holds(self, mask: int) -> bool:
        """Whether a table over `mask` fits in."""
        return any(mask & ~face.scope == 0 for face in self.faces)
