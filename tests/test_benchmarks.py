"""The history of benchmarks: what became slower is found, whatever the machine."""

import pytest

from benchmarks import history
from benchmarks.harness import say


def test_what_became_slower_on_any_machine_is_found(tmp_path):
    file = tmp_path / "history.jsonl"
    history.append({"a run": (2.0, "s"), "a plan": (3.0, "s"), "two workers": (1.9, "times")}, 1.0, file)
    history.append({"a run": (4.0, "s"), "a plan": (6.0, "s"), "two workers": (1.8, "times")}, 2.0, file)
    assert history.worse(history.read(file)) == {}, "the machine was half as fast"
    history.append(
        {"a run": (6.2, "s"), "a plan": (6.0, "s"), "new": (9.0, "s"), "two workers": (1.2, "times")}, 2.0, file
    )
    assert history.worse(history.read(file)) == pytest.approx({"a run": 1.55, "two workers": 1.9 / 1.2})


def test_a_number_that_belongs_to_another_is_kept_under_its_name(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.harness.SAID", said := {})
    for what in ("a run", "  peak memory", "  again", "a plan", "  peak memory"):
        say(what, 1.0, "s", "-")
    assert [*said] == ["a run", "a run: peak memory", "a run: again", "a plan", "a plan: peak memory"]
