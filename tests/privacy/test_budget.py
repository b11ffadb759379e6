"""Budgets refuse what is no budget; ledgers survive being written down."""

import json
import math
from dataclasses import replace

import pytest

from dpbench.errors import UserError
from dpbench.privacy.accounting import gaussian_epsilon, spent, zcdp_epsilon
from dpbench.privacy.budget import Budget, Event, Ledger, RandomSearch
from dpbench.privacy.pure import pure_epsilon


@pytest.mark.parametrize("epsilon", [0, -1, math.nan])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(UserError, match="epsilon must be greater than 0"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2])
def test_delta_must_lie_inside_its_range(delta):
    with pytest.raises(UserError, match="delta must lie between 0 and 1"):
        Budget(1.0, delta)


def test_n_is_private_under_add_remove_only():
    assert not Budget(1.0).n_public
    assert Budget(1.0, relation="replace").n_public


def test_ledger_comes_back_from_plain_data():
    ledger = Ledger([Event("gaussian", "x", 2.0, 3.0), Event("exponential", "y", 5.0, 0.5, count=4)])
    assert Ledger.from_list(ledger.to_list()).events == ledger.events
    assert [item["norm"] for item in ledger.to_list()] == ["l2", "linf"]


@pytest.mark.parametrize("event", [("gaussian", 0.0, 1.0), ("gaussian", 1.0, 0.0), ("gaussian", math.inf, 1.0)])
def test_an_event_without_a_sound_cost_cannot_be_made(event):
    kind, sensitivity, multiplier = event
    with pytest.raises(ValueError):
        Event(kind, "x", sensitivity, multiplier)


def filtered(unit, limit, *events):
    ledger = Ledger()
    ledger.open_filter(unit, limit)
    for event in events:
        ledger.record(event)
    return ledger


def gaussian(multiplier, count=1):
    return Event("gaussian", "x", 1.0, multiplier, count)


@pytest.mark.parametrize(
    ("unit", "limit", "event"),
    [
        ("mu", 0.5, gaussian(4.0)),  # mu = 1/4, four of which are 1/2
        ("mu", 0.5, Event("exponential", "x", 1.0, 1 / pure_epsilon(0.25))),  # eps/2 is 1/multiplier
        ("mu", 0.5, Event("pure", "x", 1.0, 1 / pure_epsilon(0.25))),
        ("rho", 0.125, gaussian(4.0)),  # rho = 1/32
        ("rho", 0.125, Event("exponential", "x", 1.0, 4.0)),
        ("rho", 0.125, Event("permute_and_flip", "x", 1.0, 8.0)),
    ],
)
def test_a_filter_takes_what_fits_and_refuses_the_next_draw(unit, limit, event):
    ledger = filtered(unit, limit, *[event] * 4)
    for more in (event, gaussian(1e4), Event("exact", "x", 1.0, 0.0), RandomSearch("x", 1.0, 0.5, ())):
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


def test_what_is_spent_under_a_filter_is_its_guarantee_and_what_was_drawn_stands_beside():
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
        with pytest.raises(ValueError, match="once, and before the first draw"):
            ledger.open_filter("mu", 1.0)
