"""A root lies where the privacy claim holds, and next to where it does not."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpbench.privacy.root_finding import EPS4, brent, root

FUNCTIONS = {  # of a place between 0 and 10
    "cubic": lambda at: lambda x: x**3 - at,
    "falling": lambda at: lambda x: math.exp(-x) - at / 20,
    "flat": lambda at: lambda x: (x - at / 5) ** 9,
    "steep": lambda at: lambda x: math.tanh(50 * (x - at / 9)),
    "tiny": lambda at: lambda x: 1e-310 * (x - at / 7),
    "step": lambda at: lambda x: math.copysign(1e300, x - at / 6),
    "infinite": lambda at: lambda x: math.inf if x > at / 3 else -1.0,
    "wavy": lambda at: lambda x: x - at / 3 + 1e-9 * math.sin(1e6 * x),
}


@pytest.mark.parametrize("at", [1e-9, 0.3, 1.0, 7.0, 1e12])
def test_the_root_keeps_the_claim_and_wastes_nothing(at):
    for f, rising in [(lambda x: x**3 - at**3, True), (lambda x: 1 / x - 1 / at, False)]:
        found = root(f, 1e-12, 1.0, rising=rising)
        assert f(found) <= 0
        assert found == pytest.approx(at, rel=1e-12)


def test_a_claim_that_holds_for_all_numbers_has_the_largest():
    assert root(lambda x: 1.0 if math.isinf(x) else -1.0, 0.0, 1.0, rising=True) == pytest.approx(2.0**1023)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_brents_method_is_scipys_to_the_last_bit(name):
    """Stored noise multipliers depend on it."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        f, low, high = FUNCTIONS[name](rng.uniform(0, 10)), rng.uniform(-1, 0), rng.uniform(3.4, 8)
        for xtol, rtol in [(1e-300, 1e-13), (1e-4, EPS4), (2e-12, 1e-9)]:
            if f(low) * f(high) < 0:
                assert brent(f, low, high, xtol=xtol, rtol=rtol) == brentq(f, low, high, (), xtol, rtol, 10_000)


def test_a_function_without_a_root_is_refused():
    with pytest.raises(ValueError, match="one sign"):
        brent(lambda x: x * x + 1, -1.0, 1.0, xtol=1e-4)
    with pytest.raises(ValueError, match="not a number"):
        brent(lambda x: x if abs(x) == 1 else math.nan, -1.0, 1.0, xtol=1e-4)
