"""A root lies where the privacy claim holds, and next to where it does not."""

import math

import pytest

from dpbench.privacy.root_finding import root


@pytest.mark.parametrize("at", [1e-9, 0.3, 1.0, 7.0, 1e12])
def test_the_root_keeps_the_claim_and_wastes_nothing(at):
    for f, rising in [(lambda x: x**3 - at**3, True), (lambda x: 1 / x - 1 / at, False)]:
        found = root(f, 1e-12, 1.0, rising=rising)
        assert f(found) <= 0
        assert found == pytest.approx(at, rel=1e-12)


def test_a_claim_that_holds_for_all_numbers_has_the_largest():
    assert root(lambda x: 1.0 if math.isinf(x) else -1.0, 0.0, 1.0, rising=True) == pytest.approx(2.0**1023)
