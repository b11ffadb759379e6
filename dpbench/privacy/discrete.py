"""Exact samplers of discrete noise (Canonne, Kamath and Steinke 2020, section 5): integers only, no floating point.

The probability of each coin is a ratio of integers. Arrays are of 64 bits, unsigned, and nothing in them overflows: a
scale s is at most `LARGEST_SCALE` = 2^31, and the drawn value is u + s v, where u < s and v is a number of tosses of a
coin of probability 1/e that succeeded in a row. So u^2 and 2 s^2 are at most 2^63; for u + s v to reach that, 2^32
tosses would have to succeed, which never happens in practice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Codes

Integers = NDArray[np.uint64]
Coins = NDArray[np.bool_]
LARGEST_SCALE = 2**31
KEY_BYTES = 32
STEPS = 2**60  # in 1, of the exponents in `weighted_index`


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
