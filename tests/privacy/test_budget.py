"""Budgets refuse what is no budget; ledgers survive being written down."""

import math

import pytest

from dpbench.errors import UserError
from dpbench.privacy.budget import Budget, Event, Ledger


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
