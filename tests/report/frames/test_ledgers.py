"""What the cost of a release rests on."""

import math
from dataclasses import replace

import pytest

from dpbench.report.frames.ledgers import FirstLedger, Grounds, ex_post, grounds_of, or_first

from ..made_up import make_trial

NOISE, CLAIM = {"kind": "gaussian", "multiplier": 2.0}, {"kind": "claimed", "epsilon": 1.0}


def spending(**cost):
    trial = make_trial()
    return replace(trial, spent=replace(trial.spent, **cost))


@pytest.mark.parametrize(
    ("events", "cost", "grounds"),
    [
        ([NOISE], {}, Grounds.NOISE),
        ([NOISE], {"rho": math.inf}, Grounds.NOISE),
        ([NOISE, CLAIM], {"rho": math.inf}, Grounds.CLAIM),
        ([NOISE], {"ex_post": 0.3}, Grounds.FILTER),
        (None, {}, Grounds.NOISE),
        (None, {"ex_post": 0.3, "rho": math.inf}, Grounds.FILTER),
        (None, {"rho": math.inf}, Grounds.UNKNOWN),
    ],
)
def test_a_cost_rests_on_what_the_ledger_says_and_without_it_on_noise_if_it_has_a_rho(events, cost, grounds):
    assert grounds_of([spending(), spending(**cost)], events) is grounds


def test_the_ledger_of_an_export_stands_in_for_those_that_are_not_at_hand():
    trial, other, unknown = (make_trial(repetition=place) for place in range(3))
    kept = {one.release_id: FirstLedger(trial.release_id, 0, [CLAIM]) for one in (trial, other)}
    events = or_first(lambda one: [NOISE] if one is trial else None, kept)
    assert [events(one) for one in (trial, other, unknown)] == [[NOISE], [CLAIM], None]


def test_what_a_filter_let_pass_is_the_largest_of_the_trials():
    assert ex_post([spending(ex_post=0.3), spending(ex_post=0.5), spending()]) == 0.5
    assert ex_post([spending()]) is None
