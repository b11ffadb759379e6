"""The history of benchmarks: what became slower is found, whatever the machine."""

import pytest

from benchmarks import history
from benchmarks.harness import say
from dpbench.report.site.rendering import Site
from dpbench.report.site.speed import FILE, WORSE, read_runs, rows_of, write_speed


def test_what_became_slower_on_any_machine_is_found(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    file = tmp_path / FILE

    def slower(reference, **values):
        history.append(
            {name: (value, "times" if name == "pair" else "s") for name, value in values.items()}, reference, file
        )
        return {row.what: row.times for row in rows_of(read_runs(file)) if row.times and row.times >= WORSE}

    assert slower(1.0, run=2.0, plan=3.0, pair=1.9) == {}
    assert slower(2.0, run=4.0, plan=6.0, pair=1.8) == {}, "the machine was half as fast"
    assert slower(2.0, run=6.2, plan=6.0, new=9.0, pair=1.2) == pytest.approx({"run": 1.55, "pair": 1.9 / 1.2})
    write_speed(site := Site(tmp_path / "pages"), tmp_path)
    page = (tmp_path / "pages" / "speed.md").read_text()
    assert site.pages == ["speed.md"] and page.count(", slower") == 2 and page.count("<polyline") == 4


def test_a_number_that_belongs_to_another_is_kept_under_its_name(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.harness.SAID", said := {})
    for what in ("a run", "  peak memory", "  again", "a plan", "  peak memory"):
        say(what, 1.0, "s", "-")
    assert [*said] == ["a run", "a run: peak memory", "a run: again", "a plan", "a plan: peak memory"]
