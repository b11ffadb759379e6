"""Values for discrete noise: integer multiples of a spacing, and the event of the noise that is added to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.errors import UserError, check_known
from dpbench.privacy.budget import NOISES
from dpbench.privacy.discrete import LARGEST_SCALE
from dpbench.privacy.events import Gaussian

GRID = 2**24  # spacings at least in a standard deviation of noise on numbers
ROUNDED = 4  # see `DiscreteGaussian`
LEAST_MULTIPLIER = 2**-10  # below, sums of a hundred million terms could leave 63 bits


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
