"""The solution of f(x) = 0 that keeps a privacy claim."""

from __future__ import annotations

import math
from collections.abc import Callable

EPS4 = 4 * 2.0**-52  # the least relative tolerance


def root(f: Callable[[float], float], low: float, high: float, *, rising: bool) -> float:
    """The root of a monotone f above `low`, on the side where the privacy claim holds (f <= 0)."""
    sign = 1 if rising else -1
    while sign * f(high) < 0:
        low, high = high, 2 * high
    if math.isinf(high):
        return low
    found = brent(f, low, high, xtol=1e-300, rtol=1e-13)
    step = 2e-16  # Brent's method may end on either side of the root: step to the side that keeps the claim
    while f(found) > 0:
        found, step = found * (1 - sign * step), 2 * step
    return found


def brent(f: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float = EPS4) -> float:
    """A root of f between `low` and `high`, where f has two signs, up to xtol + rtol |root| (Brent 1973, chapter 4).

    It is what `scipy.optimize.brentq` gives, to the last bit, without the half second in which that is imported.
    Raises `ValueError` if f has one sign, or is not a number somewhere.
    """

    def at(x: float) -> float:
        if math.isnan(y := float(f(x))):
            raise ValueError(f"the function is not a number at {x}")
        return y

    a, fa, b, fb = low, at(low), high, at(high)  # the last but one, and the last
    c = fc = last = step = 0.0
    if fa == 0 or fb == 0:
        return a if fa == 0 else b
    if (fa < 0) == (fb < 0):
        raise ValueError(f"the function has one sign at {low} and {high}")
    while True:
        if fb != 0 and (fa < 0) != (fb < 0):
            c, fc, last, step = a, fa, b - a, b - a
        if abs(fc) < abs(fb):
            a, fa, b, fb, c, fc = b, fb, c, fc, b, fb
        tolerance, half = (xtol + rtol * abs(b)) / 2, (c - b) / 2
        if fb == 0 or abs(half) < tolerance:
            return b
        trial = math.inf
        if abs(last) > tolerance and abs(fb) < abs(fa):
            trial = _interpolated(a, fa, b, fb, c, fc)
        good = 2 * abs(trial) < min(abs(last), 3 * abs(half) - tolerance)
        last, step = (step, trial) if good else (half, half)
        a, fa = b, fb
        b += step if abs(step) > tolerance else math.copysign(tolerance, half)
        fb = at(b)


def _interpolated(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """The step from b by the secant of a and b, or by inverse quadratic interpolation; infinite if there is none."""
    if a == c:
        above, below = -fb * (b - a), fb - fa
    else:
        slope_a, slope_c = (fa - fb) / (a - b), (fc - fb) / (c - b)
        above, below = -fb * (fc * slope_c - fa * slope_a), slope_c * slope_a * (fc - fa)
    return above / below if below else math.inf
