"""The solution of f(x) = 0 that keeps a privacy claim."""

from __future__ import annotations

import math
from collections.abc import Callable


def root(f: Callable[[float], float], low: float, high: float, *, rising: bool) -> float:
    """The root of a monotone f above `low`, on the side where the privacy claim holds (f <= 0)."""
    from scipy.optimize import brentq

    sign = 1 if rising else -1
    while sign * f(high) < 0:
        low, high = high, 2 * high
    if math.isinf(high):
        return low
    found = float(brentq(f, low, high, xtol=1e-300, rtol=1e-13, maxiter=1000))
    step = 2e-16  # brentq may end on either side of the root: step to the side that keeps the claim
    while f(found) > 0:
        found, step = found * (1 - sign * step), 2 * step
    return found
