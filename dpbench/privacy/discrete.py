"""Exact samplers of discrete noise (Canonne, Kamath and Steinke 2020, section 5): integers only, no floating point.

The probability of each coin is a ratio of integers. Arrays are of 64 bits, unsigned, and nothing in them overflows: a
scale s is at most `LARGEST_SCALE` = 2^31, and the drawn value is u + s v, where u < s and v is a number of tosses of a
coin of probability 1/e that succeeded in a row. So u^2 and 2 s^2 are at most 2^63; for u + s v to reach that, 2^32
tosses would have to succeed, which never happens in practice.

The values that it is added to are integer multiples of a spacing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Codes, Floats
from dpbench.errors import UserError, check_known
from dpbench.privacy.budget import NOISES
from dpbench.privacy.events import Gaussian

Integers = NDArray[np.uint64]
Coins = NDArray[np.bool_]
LARGEST_SCALE = 2**31
KEY_BYTES = 32
STEPS = 2**60  # in 1, of the exponents in `weighted_index`
GRID = 2**24  # spacings at least in a standard deviation of noise on numbers
ROUNDED = 4  # see `DiscreteGaussian`
LEAST_MULTIPLIER = 2**-10  # below, sums of a hundred million terms could leave 63 bits


class Source:
    """Uniform integers from the stream of SHAKE-256 under a key, which do not reveal the key or its other bits."""

    def __init__(self, key: bytes) -> None:
        self._key, self._block = key, 0

    @classmethod
    def of(cls, rng: np.random.Generator) -> Source:
        """Under a key that the generator draws, none of whose bits are shown."""
        return cls(rng.bytes(KEY_BYTES))

    def below(self, bound: int, size: int) -> Integers:
        """`size` integers, uniform on 0 .. bound - 1, for 2 <= bound <= 2^63, by rejection from the next power of 2."""
        shift, found = np.uint64(64 - (bound - 1).bit_length()), np.zeros(0, np.uint64)
        while len(found) < size:
            self._block += 1
            stream = hashlib.shake_256(self._key + self._block.to_bytes(8, "big"))
            words = np.frombuffer(stream.digest(8 * (size - len(found))), "<u8") >> shift
            found = np.concatenate([found, words[words < bound]])
        return found


def coins(source: Source, numerator: Integers, denominator: int) -> Coins:
    """Each True with probability exp(-numerator / denominator), a ratio in [0, 1] (Algorithm 1: von Neumann's method).

    K = k where the first k - 1 of the coins of probability ratio/1, ratio/2, ... succeed and the k-th fails, so that
    P(K > k) = ratio^k / k!, and K is odd with probability 1 - ratio + ratio^2 / 2! - ...
    """
    odd, running, k = np.zeros(len(numerator), bool), np.arange(len(numerator)), 1
    while len(running):
        goes_on = source.below(denominator, len(running)) < numerator[running]
        if k > 1:
            goes_on &= source.below(k, len(running)) == 0
        odd[running[~goes_on]] = k % 2
        running, k = running[goes_on], k + 1
    return odd


def _all_succeed(source: Source, numerator: Integers, denominator: int, times: Integers) -> Coins:
    """Each True with probability exp(-times numerator / denominator): where this many coins succeed."""
    success, k = np.ones(len(times), bool), 0
    while len(tossed := np.flatnonzero(success & (times > k))):
        success[tossed] = coins(source, numerator[tossed], denominator)
        k += 1
    return success


def _runs(source: Source, size: int) -> Integers:
    """How many coins of probability 1/e succeed in a row (size,)."""
    length, running = np.zeros(size, np.uint64), np.arange(size)
    while len(running):
        running = running[coins(source, np.full(len(running), 2, np.uint64), 2)]
        length[running] += np.uint64(1)
    return length


def _laplace(source: Source, scale: int, size: int) -> tuple[Integers, Coins]:
    """|x|, and whether x < 0, of some variates of `laplace`: `size` at most."""
    u = source.below(scale, size)
    u = u[coins(source, u, scale)]
    magnitude, negative = u + np.uint64(scale) * _runs(source, len(u)), source.below(2, len(u)) == 1
    kept = ~negative | (magnitude > 0)  # 0 has one sign
    return magnitude[kept], negative[kept]


def _gaussian(source: Source, scale: int, size: int) -> tuple[Integers, Coins]:
    """The same of `gaussian`."""
    magnitude, negative = _laplace(source, scale, size)
    s = np.uint64(scale)
    v, u = np.divmod(np.where(magnitude > s, magnitude - s, s - magnitude), s)
    accepted = _all_succeed(source, np.ones_like(u), 2, v * v)
    accepted[accepted] = _all_succeed(source, u[accepted], scale, v[accepted])
    accepted[accepted] = coins(source, u[accepted] ** 2, 2 * scale**2)
    return magnitude[accepted], negative[accepted]


def _drawn(some: Callable[[Source, int, int], tuple[Integers, Coins]], source: Source, scale: int, size: int) -> Codes:
    """The first `size` of the variates that `some` gives, with their signs."""
    if not 2 <= scale <= LARGEST_SCALE:
        raise ValueError(f"discrete noise has a scale of 2 to 2^31 spacings, not {scale}")
    found = np.zeros(0, np.int64)
    while len(found) < size:
        magnitude, negative = some(source, scale, 2 * (size - len(found)) + 8)
        values = magnitude.astype(np.int64)
        found = np.concatenate([found, np.where(negative, -values, values)])
    return found[:size]


def laplace(source: Source, scale: int, size: int) -> Codes:
    """`size` integers x, each with a probability in proportion to exp(-|x| / scale) (Algorithm 2); scale >= 2."""
    return _drawn(_laplace, source, scale, size)


def gaussian(source: Source, scale: int, size: int) -> Codes:
    """`size` integers x, each with a probability in proportion to exp(-x^2 / (2 scale^2)) (Algorithm 3); scale >= 2.

    A Laplace variate of the same scale s is accepted with probability exp(-(|x| - s)^2 / (2 s^2)), since that times
    exp(-|x| / s) is exp(-x^2 / (2 s^2)), up to a constant. With ||x| - s| = u + s v the exponent is v^2 / 2 +
    v u / s + u^2 / (2 s^2): coins whose exponents lie in [0, 1].
    """
    return _drawn(_gaussian, source, scale, size)


def weighted_index(source: Source, levels: Sequence[int], rate: Fraction) -> int:
    """An index, drawn with weight exp(rate level); the rate is rounded down to a multiple of 1 / `STEPS`.

    By rejection: an index drawn uniformly is accepted with probability exp(rate (level - largest level)).
    """
    step, largest = int(rate * STEPS), max(levels)
    exponents = [divmod((largest - level) * step, STEPS) for level in levels]
    whole = np.array([min(part, STEPS) for part, _ in exponents], np.uint64)  # no run is as long as 2^60
    rest = np.array([part for _, part in exponents], np.uint64)
    while True:
        drawn = source.below(max(len(levels), 2), len(levels))
        drawn = drawn[drawn < len(levels)]
        drawn = drawn[_runs(source, len(drawn)) >= whole[drawn]]
        drawn = drawn[coins(source, rest[drawn], STEPS)]
        if len(drawn):
            return int(drawn[0])


@dataclass(frozen=True)
class OnGrid:
    """A sum over the rows, each term rounded to multiples of a spacing that is chosen later.

    `multiples(spacing)`: the sum, of this `shape`, in units of the spacing, a power of 2. `entries`: how many entries
    of a term are rounded; 0 if all are integers, which a spacing of 1 or less does not change.
    """

    shape: tuple[int, ...]
    multiples: Callable[[float], Codes]
    entries: int

    def __getitem__(self, index: Any) -> OnGrid:
        """A part of the entries."""
        return OnGrid(np.empty(self.shape)[index].shape, lambda spacing: self.multiples(spacing)[index], self.entries)


def is_discrete(noise: str) -> bool:
    """Whether this kind of noise is the discrete one. Raises `UserError` for an unknown kind."""
    check_known("noise", noise, NOISES)
    return noise == "discrete"


def spacing_of(sd: float) -> float:
    """The spacing of noise of this standard deviation or scale: the power of 2 at or below it, divided by `GRID`."""
    return math.ldexp(1.0, math.frexp(sd)[1] - 1) / GRID


def whole(value: Floats | Codes, noise: str) -> Floats | OnGrid:
    """Counts of rows, or other integers, in the form to which this kind of noise is added."""
    if not is_discrete(noise):
        return value.astype(float, copy=False)
    return OnGrid(value.shape, lambda spacing: value.astype(np.int64) * round(1 / spacing), 0)


def single(number: Callable[[float], float]) -> OnGrid:
    """A number that is not a sum, and is rounded itself; its error, for this spacing, must be less than half of it."""
    return OnGrid((), lambda spacing: nearest(np.asarray(number(spacing) / spacing)), 1)


def products(X: Floats, Y: Floats, noise: str) -> Floats | OnGrid:
    """X'Y of the rows X (n, p) and Y (n, q), or (n,); for discrete noise each product of two entries is rounded."""
    if not is_discrete(noise):
        value: Floats = X.T @ Y
        return value
    shape = X.shape[1:] + Y.shape[1:]

    def multiples(spacing: float) -> Codes:
        def column(y: Floats) -> Codes:
            rows = np.flatnonzero(y)  # of a one-hot column few
            sums: Codes = nearest((X[rows].T * (y[rows] / spacing)).T).sum(axis=0)
            return sums

        return np.stack([column(y) for y in (Y if Y.ndim == 2 else Y[:, None]).T], axis=-1).reshape(shape)

    return OnGrid(shape, multiples, math.prod(shape))


def grouped(terms: Floats, groups: Codes, count: int) -> OnGrid:
    """The sums (count,) or (count, p) of terms (n,) or (n, p) of the rows, over the rows of each of `count` groups."""
    shape = (count, *terms.shape[1:])

    def multiples(spacing: float) -> Codes:
        sums = np.zeros(shape, np.int64)
        np.add.at(sums, groups, nearest(terms / spacing))
        return sums

    return OnGrid(shape, multiples, math.prod(shape[1:]))


def nearest(values: Floats) -> Codes:
    """The integers nearest to the values."""
    return np.rint(values).astype(np.int64)


@dataclass(frozen=True)
class DiscreteGaussian(Gaussian):
    """`spacing` times N_Z(0, scale^2) in each entry of a multiple of the spacing; ||change||_2 <= sensitivity.

    N_Z(0, s^2) has the integers z with probabilities in proportion to exp(-z^2 / (2 s^2)). In zCDP it costs what N(0,
    s^2) does (Canonne, Kamath and Steinke 2020, Theorem 14). `multiplier` is a little less than its own: that of the
    Gaussian noise of the variance scale^2 - `ROUNDED`^2, in units of the spacing, whose Gaussian DP it has too.

    Proof. Let c be an integer, r = `ROUNDED`, g_s the density of N(0, s^2), s >= r, and W ~ N(c, s^2 - r^2). Let Z be
    W, rounded at random: P(Z = z | W = w) = g_r(z - w) / sum_k g_r(k - w) (Peikert 2010, Theorem 3.1). By Poisson's
    formula the sum is within 1 +- a, for every w, where a = 2 sum_(m >= 1) exp(-2 (pi r m)^2); so is sum_k g_s(k).
    Hence P(Z = z) is g_s(z - c) up to a factor of 1 +- a, and so is the probability that N_Z(c, s^2) has: the logarithm
    of their ratio is within 2 atanh(a) < 3a. Any release, in k entries in all and each draw chosen by those
    before, has a distribution within exp(+-3ak) of that of rounded answers with Gaussian noise. If these are (eps,
    delta)-DP, it is (eps + 6ak, e^(3ak) delta)-DP. For r = 4, a is below 1e-136: no ledger, in double precision, can
    hold that.

    Raises `ValueError` for a multiplier that is too large for the scale.
    """

    kind = "discrete_gaussian"
    scale: int = 0
    spacing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        drawn = (self.scale**2 - ROUNDED**2) * Fraction(self.spacing) ** 2
        if not drawn >= (Fraction(self.multiplier) * Fraction(self.sensitivity)) ** 2:
            raise ValueError(f"{self.label}: a scale of {self.scale} does not give a multiplier of {self.multiplier}")

    @property
    def sd(self) -> float:
        """scale * spacing."""
        return self.scale * self.spacing

    @classmethod
    def of(cls, label: str, sensitivity: float, multiplier: float, entries: int) -> Self:
        """The event of a sum of this sensitivity, before rounding, with this many rounded entries in a term.

        A term is computed in double precision and rounded to the next multiple of the spacing, which moves it by less
        than one spacing in each of these entries. Neighbours differ by two terms at most: the ledger has the
        sensitivity 2 spacing sqrt(entries) more. The spacing is that `spacing_of` the noise; of counts 1 at most.

        Raises `UserError` for noise that is too large or too small for the arithmetic.
        """
        spacing = spacing_of(Gaussian(label, sensitivity, multiplier).sd)
        spacing = spacing if entries else min(spacing, 1.0)
        bound = sensitivity + 2 * spacing * math.sqrt(entries)
        scale = multiplier * bound / spacing
        if not (multiplier >= LEAST_MULTIPLIER and scale < LARGEST_SCALE - 1):
            raise UserError(
                f"noise=discrete: {label} would get noise of {multiplier:.3g} times its sensitivity, which is out of "
                "range; choose another epsilon, or noise=continuous"
            )
        return cls(label, bound, multiplier, scale=math.ceil(scale) + 1, spacing=spacing)
