"""What the cost of a release rests on."""

from dataclasses import replace

import pytest

from dpbench.report.frames.ledgers import ex_post, is_claimed, may_be_claimed

from ..made_up import make_trial

NOISE, CLAIM = {"kind": "gaussian", "multiplier": 2.0}, {"kind": "claimed", "epsilon": 1.0}


def spending(**cost):
    trial = make_trial()
    return replace(trial, spent=replace(trial.spent, **cost))


@pytest.mark.parametrize(("events", "claimed"), [([NOISE], False), ([NOISE, CLAIM], True), ([], False), (None, False)])
def test_noise_is_claimed_where_the_ledger_says_so(events, claimed):
    assert is_claimed(events) == claimed


def test_without_a_ledger_a_cost_without_a_rho_may_be_a_claim():
    proven, other = spending(rho=0.1), spending(rho=float("inf"))
    assert may_be_claimed([proven, other], None)
    assert not may_be_claimed([proven], None)
    assert not may_be_claimed([other], [NOISE]), "the ledger is there, and says"


def test_what_a_filter_let_pass_is_the_largest_of_the_trials():
    assert ex_post([spending(ex_post=0.3), spending(ex_post=0.5), spending()]) == 0.5
    assert ex_post([spending()]) is None
