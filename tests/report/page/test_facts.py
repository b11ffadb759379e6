"""What a cell of the page says of its trials."""

from dataclasses import replace

import pytest

from dpbench.grid.records import Failure
from dpbench.report.page.facts import Register, facts_of, marks_of, overspent

from ..made_up import make_trial

NOISE = {"kind": "gaussian", "label": "X'X", "sensitivity": 2.0, "multiplier": 11.5, "count": 1}
CLAIM = {"kind": "claimed", "label": "its own", "epsilon": 1.0, "delta": 1e-5}


def facts(trials, events=None):
    return {name: " · ".join(term.text for term in terms) for name, terms in facts_of(trials, events, [], Register())}


def test_what_a_reader_must_see_first():
    fine, failed, over = make_trial(), make_trial(status="oom"), make_trial(epsilon=1, spent=1.6)
    assert list(marks_of([fine], [NOISE])) == []
    assert list(marks_of([fine, failed], [CLAIM])) == ["failures", "privacy claimed, not proven"]
    assert list(marks_of([over], [NOISE])) == ["spent more than the target"]
    assert overspent(over) == pytest.approx(1.6) and overspent(make_trial("exact", epsilon="inf")) == 0


def test_what_is_the_target_and_the_cost_and_by_which_proof():
    found = facts([make_trial(epsilon=1, spent=0.5), make_trial(epsilon=1, spent=0.9, repetition=1)], [NOISE])
    assert found["Target"] == "ε = 1, δ = 1e-05, neighbours add/remove"
    assert found["Spent"].startswith("ε = 0.5 to 0.9 at δ = 1e-05")
    assert found["Basis of the cost"] == "the ledger of the noise that was drawn, composed by the accountant"
    assert facts([make_trial()], [CLAIM])["Basis of the cost"].startswith("a claim of third-party code")
    assert facts([make_trial("exact", epsilon="inf")])["Target"] == "none: a reference that is not private"


def test_failures_are_counted_and_no_folder_is_named():
    lost = [make_trial(status="oom", repetition=one) for one in range(2)]
    assert facts(lost)["Failures"] == "2 × oom in model: MemoryError: too big"
    few = [replace(lost[0], error=Failure("E", f"{place} bins are left")) for place in (3, 4, 4)]
    assert facts([*few, *lost])["Failures"].startswith("3 × oom in model: E: 4 bins are left, and the like · 2 × oom")
    register = Register()
    dict(facts_of([make_trial(parameters={"file": "/home/me/my.csv"})], None, [], register))
    (mechanism,) = [text for text in register.places if text.startswith("Mechanism")]
    assert "my.csv" in mechanism and "/home" not in mechanism
