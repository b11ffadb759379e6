"""Events: each kind's costs against closed forms and dp-accounting, and what cannot be made."""

import math

import numpy as np
import pytest

from dpbench.privacy.events import (
    Claimed,
    Exact,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
    PermuteAndFlip,
    PureDP,
)
from dpbench.privacy.projections import Projection
from dpbench.privacy.pure import bounded_range_mu, pure_mu

EPSILON = 0.7


@pytest.mark.parametrize(
    ("event", "rho", "mu"),
    [
        (Gaussian("x", 3.0, 4.0), 1 / 32, 1 / 4),
        (Gaussian("x", 3.0, 4.0, rate=0.1), 1 / 32, 1 / 4),  # as if all rows took part
        (Laplace("x", 3.0, 1 / EPSILON), EPSILON**2 / 2, pure_mu(EPSILON)),
        (PureDP("x", EPSILON), EPSILON**2 / 2, pure_mu(EPSILON)),
        (PermuteAndFlip("x", 3.0, EPSILON), EPSILON**2 / 2, pure_mu(EPSILON)),
        (ExponentialMechanism("x", 3.0, EPSILON), EPSILON**2 / 8, bounded_range_mu(EPSILON)),
        (ObjectivePerturbation("x", 3.0, 4.0, 0.1), math.inf, math.inf),
        (Projection("x", 3.0, 4.0, 30), math.inf, math.inf),
        (Claimed("x", EPSILON, 1e-5), math.inf, math.inf),
        (Exact("x"), math.inf, math.inf),
    ],
)
def test_costs_are_the_closed_forms(event, rho, mu):
    assert event.rho == pytest.approx(rho, rel=1e-12)
    assert event.mu == pytest.approx(mu, rel=1e-12)
    if math.isfinite(rho) and event.rate == 1:
        np.testing.assert_allclose(event.rdp(np.array([2.0, 5.0])), [2 * rho, 5 * rho])


BAD = [
    lambda: Gaussian("x", 0.0, 1.0),
    lambda: Gaussian("x", math.inf, 1.0),
    lambda: Gaussian("x", math.nan, 1.0),
    lambda: Gaussian("x", 1.0, 0.0),
    lambda: Gaussian("x", 1.0, 1.0, 0),
    lambda: Gaussian("x", 1.0, 1.0, rate=0.0),
    lambda: Gaussian("x", 1.0, 1.0, rate=1.1),
    lambda: Laplace("x", -1.0, 1.0),
    lambda: PureDP("x", math.inf),
    lambda: ExponentialMechanism("x", 1.0, 0.0),
    lambda: ObjectivePerturbation("x", 1.0, 1.0, -0.1),
    lambda: Projection("x", 1.0, 1.0, 10, 1.0),
    lambda: Claimed("x", 1.0, -1e-9),
]


@pytest.mark.parametrize("make", BAD)
def test_an_event_without_a_sound_cost_cannot_be_made(make):
    with pytest.raises(ValueError, match=r"^x: "):
        make()


def test_a_kind_has_no_settings_of_another():
    for make in (lambda: Laplace("x", 1.0, 1.0, rate=0.5), lambda: Gaussian("x", 1.0, 1.0, delta=1e-6)):
        with pytest.raises(TypeError):
            make()


def test_a_sampled_gaussian_has_a_renyi_cost_at_whole_orders_only():
    """At order 2 it is log(1 + q^2 (exp(1 / multiplier^2) - 1)), by hand."""
    event = Gaussian("x", 1.0, 2.0, count=3, rate=0.1)
    cost = event.rdp(np.array([2.0, 2.5]))
    assert cost[0] == pytest.approx(3 * math.log(1 + 0.01 * math.expm1(0.25)))
    assert cost[1] == math.inf


def test_one_draw_forgets_label_sensitivity_and_count():
    assert Gaussian("a", 2.0, 3.0, 5, 0.1).once == Gaussian("b", 7.0, 3.0, 1, 0.1).once != Gaussian("b", 2.0, 3.0).once
    assert ExponentialMechanism("a", 2.0, 0.5).once == PermuteAndFlip("b", 3.0, 0.5).once == PureDP("c", 0.5).once
    with pytest.raises(ValueError, match="no privacy loss distribution is known"):
        Exact("x").loss(1e-3)
