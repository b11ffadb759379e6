"""Whose ledger a cell shows, and in which words."""

from dataclasses import replace

import pytest

from dpbench.report.frames.ledgers import FirstLedger
from dpbench.report.page.shown_ledgers import MANY, Ledgers, lines_of

from ..made_up import make_trial

NOISE = {"kind": "gaussian", "label": "X'X", "sensitivity": 2.0, "multiplier": 11.5, "count": 1}
TRIALS = [make_trial("aim", repetition=place) for place in range(3)]


def noise(multiplier):
    return [{**NOISE, "multiplier": multiplier}]


def reported(stored, kept=None, trials=TRIALS):
    """What a cell of these trials says, some of whose ledgers are stored, by repetition."""
    ledgers = Ledgers(lambda trial: stored.get(trial.key.release.repetition), kept or {})
    found = ledgers.shown_for(trials)
    return found, ledgers.events


def test_draws_that_ledgers_share_are_stored_once():
    first, second = [NOISE, *noise(2.0), NOISE], [*noise(3.0), NOISE]
    ledgers = Ledgers(lambda trial: {0: first, 1: second}.get(trial.key.release.repetition, first))
    assert ledgers.shown_for(TRIALS).own == [0, 1, 0]
    data = ledgers.data
    assert data["draws"] == [NOISE, *noise(2.0), *noise(3.0)]
    assert [[data["draws"][place] for place in places] for places in data["ledgers"]] == [first, second]


@pytest.mark.parametrize(
    ("stored", "whose", "own"),
    [
        ({0: noise(2.0), 1: noise(2.0), 2: noise(2.0)}, "0; of the others listed: 2 the same", [0, 0, 0]),
        ({0: noise(2.0), 1: noise(3.0), 2: noise(2.0)}, "0; of the others listed: 1 the same, 1 different", [0, 1, 0]),
        ({1: noise(3.0), 2: noise(2.0)}, "1; of the others listed: 1 different, 1 not stored", [None, 0, 1]),
    ],
)
def test_a_trial_has_its_own_ledger_where_its_release_is_at_hand(stored, whose, own):
    found, events = reported(stored)
    assert found.whose == f"Ledger of the release of repetition {whose}" and found.own == own and found.first is None
    assert found.events == events[0] and len(events) == len({*own} - {None}), "equal ones stand there once"


def test_else_that_of_the_first_release_of_its_cell_which_is_said():
    first = FirstLedger(TRIALS[0].release_id, 0, noise(2.0))
    kept = {trial.release_id: first for trial in TRIALS}
    found, _ = reported({}, kept)
    assert found.own == [0, None, None] and found.events == first.events
    assert found.whose == "Ledger of the release of repetition 0; of the others listed: 2 not stored"
    mixed, events = reported({2: noise(4.0)}, kept)
    assert mixed.own == [0, None, 1] and events == [noise(2.0), noise(4.0)]
    others, _ = reported({}, kept, TRIALS[1:])
    assert others.own == [None, None] and others.events == first.events
    assert others.first == {"release": first.release, "repetition": 0, "ledger": 0}
    assert others.whose == "Ledger of the release of repetition 0; of the others listed: 2 not stored"


def test_without_any_it_says_nothing_and_what_failed_misses_none():
    assert reported({}) == (None, [])
    alone, _ = reported({0: noise(2.0)}, trials=TRIALS[:1])
    assert alone.whose == "Ledger of the release of repetition 0"
    failed = make_trial("aim", repetition=5, status="failed")
    assert reported({0: noise(2.0)}, trials=[failed, TRIALS[0]])[0].whose == alone.whose
    model = make_trial("aim", "linear_rows")  # on the same release
    assert reported({0: noise(2.0)}, trials=[TRIALS[0], replace(model, release_id=TRIALS[0].release_id)])[0] == replace(
        alone, own=[0, 0]
    )


def test_equal_draws_stand_together():
    (line,) = lines_of([NOISE, {**NOISE, "label": "X'y"}])
    assert line == ("X'X, X'y", "2 × gaussian: sensitivity 2, multiplier 11.5")
    assert list(lines_of([{**NOISE, "count": 3, "rate": 0.5}])) == [
        ("X'X", "gaussian: sensitivity 2, multiplier 11.5, count 3, rate 0.5")
    ]
    assert list(lines_of([{"kind": "filter", "unit": "rho", "limit": 0.5}])) == [("", "filter: unit rho, limit 0.5")]


def test_of_many_different_draws_of_a_kind_the_ranges_are_reported():
    many = [{**NOISE, "multiplier": float(one), "label": f"marginal {one}"} for one in range(1, MANY + 2)]
    choice = {"kind": "exponential", "label": "choice", "epsilon": 0.1}
    lines = list(lines_of([*many, choice, *many[:1]]))
    labels = "marginal 1, marginal 2, marginal 3, marginal 4"
    assert lines == [(labels, "5 × gaussian: sensitivity 2, multiplier 1 to 4"), ("choice", "exponential: epsilon 0.1")]
    assert len(list(lines_of(many[:MANY]))) == MANY
