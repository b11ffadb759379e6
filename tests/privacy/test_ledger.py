"""Ledgers survive being written down, and filters bound what they hold."""

import json
import math
from dataclasses import replace

import pytest

from dpbench.privacy.accounting import gaussian_epsilon, spent, zcdp_epsilon
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete import DiscreteGaussian
from dpbench.privacy.events import (
    ZCDP,
    Claimed,
    DepthExponential,
    Exact,
    ExponentialMechanism,
    Gaussian,
    GlmObjectivePerturbation,
    Laplace,
    ObjectivePerturbation,
    PermuteAndFlip,
    PureDP,
)
from dpbench.privacy.ledger import EVENTS, Ledger
from dpbench.privacy.projections import Projection, TwoSidedProjection
from dpbench.privacy.pure import pure_epsilon
from dpbench.privacy.renyi import RandomSearch, RenyiCurve

EVERY = [
    Gaussian("g", 2.0, 3.0, 4, 0.5),
    Laplace("l", 2.0, 3.0),
    PureDP("p", 0.3),
    ExponentialMechanism("e", 5.0, 0.5, 4),
    PermuteAndFlip("f", 5.0, 0.5),
    ZCDP("z", 0.02),
    ObjectivePerturbation("o", 1.0, 2.0, 0.1),
    GlmObjectivePerturbation("m", 1.0, 2.0, 0.1),
    Projection("r", 1.0, 2.0, 30, 1e-6),
    TwoSidedProjection("u", 1.0, 2.0, 30, 1e-6),
    DepthExponential("d", 0.5, 1e-5),
    Claimed("c", 1.5, 1e-5),
    Exact("x"),
    RandomSearch("s", 1.0, 0.1, ((Gaussian("a", 1.0, 5.0), Gaussian("b", 1.0, 9.0)), (ZCDP("c", 0.01),))),
    RenyiCurve("t", (2.0, 4.0), (0.1, 0.2)),
    BatchGaussian("b", 1.0, 4.0, 100, 10, True, 3),
    DiscreteGaussian.of("d", 2.0, 3.0, 5),
]


def test_every_kind_of_event_comes_back_from_plain_data():
    back = Ledger.from_list(json.loads(json.dumps(Ledger(EVERY).to_list())))
    assert back.events == tuple(EVERY)
    assert {type(event) for event in EVERY} == set(EVENTS.values())


def test_an_unknown_kind_is_named_with_those_that_are_known():
    with pytest.raises(ValueError, match="unknown kind of event 'gauss'; known: gaussian, laplace"):
        Ledger.from_list([{"kind": "gauss", "label": "x"}])


def test_ledger_comes_back_from_plain_data():
    ledger = Ledger([Gaussian("x", 2.0, 3.0), ExponentialMechanism("y", 5.0, 2 / 0.5, count=4)])
    assert Ledger.from_list(ledger.to_list()).events == ledger.events
    assert [item["norm"] for item in ledger.to_list()] == ["l2", "linf"]


def filtered(unit, limit, *events):
    ledger = Ledger()
    ledger.open_filter(unit, limit)
    for event in events:
        ledger.record(event)
    return ledger


def gaussian(multiplier, count=1):
    return Gaussian("x", 1.0, multiplier, count)


@pytest.mark.parametrize(
    ("unit", "limit", "event"),
    [
        ("mu", 0.5, gaussian(4.0)),  # mu = 1/4, four of which are 1/2
        ("mu", 0.5, ExponentialMechanism("x", 1.0, 2 * pure_epsilon(0.25))),  # eps/2 is 1/multiplier
        ("mu", 0.5, PureDP("x", pure_epsilon(0.25))),
        ("rho", 0.125, gaussian(4.0)),  # rho = 1/32
        ("rho", 0.125, ExponentialMechanism("x", 1.0, 2 / 4.0)),
        ("rho", 0.125, PermuteAndFlip("x", 1.0, 2 / 8.0)),
    ],
)
def test_a_filter_takes_what_fits_and_refuses_the_next_draw(unit, limit, event):
    ledger = filtered(unit, limit, *[event] * 4)
    for more in (event, gaussian(1e4), Exact("x"), RandomSearch("x", 1.0, 0.5, ())):
        with pytest.raises(ValueError, match=f"exceeds the filter, {unit} <= {limit}"):
            ledger.record(more)
    assert ledger.events == (event,) * 4
    assert len(filtered(unit, limit, replace(event, count=4)).events) == 1
    with pytest.raises(ValueError, match="exceeds"):
        filtered(unit, limit, replace(event, count=5))


def test_rounding_does_not_close_a_filter_and_anything_more_does():
    third = gaussian(math.sqrt(3))
    filtered("mu", 1.0, third, third, gaussian(math.sqrt(3) * (1 - 1e-10)))
    with pytest.raises(ValueError, match="exceeds"):
        filtered("mu", 1.0, third, third, gaussian(math.sqrt(3) * (1 - 1e-8)))


def test_what_is_spent_under_a_filter_is_its_guarantee_and_what_was_drawn_is_reported():
    for ledger in (filtered("mu", 1.0, gaussian(2.0)), filtered("mu", 1.0)):
        cost = spent(ledger, 1e-5)
        assert (cost.epsilon, cost.mu, cost.rho) == (gaussian_epsilon(1.0, 1e-5), 1.0, 0.5)
        assert cost.ex_post == spent(Ledger(ledger.events), 1e-5).epsilon < cost.epsilon
    cost = spent(filtered("rho", 0.5, gaussian(2.0)), 1e-5)
    assert (cost.epsilon, cost.mu, cost.rho) == (zcdp_epsilon(0.5, 1e-5), None, 0.5)
    assert cost.ex_post == gaussian_epsilon(0.5, 1e-5)
    assert spent(Ledger([gaussian(2.0)]), 1e-5).ex_post is None


def test_a_filter_survives_being_written_down_and_an_overdrawn_one_is_not_read():
    ledger = filtered("mu", 1.0, gaussian(2.0))
    data = json.loads(json.dumps(ledger.to_list()))
    back = Ledger.from_list(data)
    assert (back.events, back.filter) == (ledger.events, ledger.filter)
    with pytest.raises(ValueError, match="exceeds"):
        Ledger.from_list([*data, gaussian(1.0).to_dict()])
    with pytest.raises(ValueError, match="before the first draw"):
        Ledger.from_list(data[::-1])


def test_a_filter_is_opened_once_with_a_limit_that_means_something():
    for unit, limit in [("mu", 0.0), ("mu", math.inf), ("rho", -1.0), ("rho", math.nan), ("epsilon", 1.0)]:
        with pytest.raises(ValueError, match="positive, finite limit on mu or rho"):
            Ledger().open_filter(unit, limit)
    for ledger in (filtered("mu", 1.0), Ledger([gaussian(1.0)])):
        with pytest.raises(ValueError, match="only once, before the first draw"):
            ledger.open_filter("mu", 1.0)
