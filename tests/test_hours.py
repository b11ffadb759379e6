"""scripts/hours.py: what a larger run of a stored experiment is said to need."""

import runpy

import pytest

from dpbench.cli import main
from dpbench.report.export import load_export
from dpbench.resources import PACKAGE

hours = runpy.run_path(str(PACKAGE.parent / "scripts" / "hours.py"))["hours"]


def test_hours_are_the_mean_stored_seconds_of_each_release_and_fit_that_is_missing(bench):
    assert bench.run("mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2") == 0
    assert (
        main(["figures", *bench.settings("name=grid", "mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2")]) == 0
    )
    stored = load_export(bench.results / "grid" / "trials.jsonl.xz")
    spent = sum(
        sum(filter(None, (one.release_seconds, one.model_seconds, one.metrics_seconds)))
        for one in (trial.runtime for cell in stored for trial in cell.trials)
    )
    settings = bench.settings("mechanism=[exact,adassp]", "epsilon=[1]")
    assert hours([*settings, "repetitions=2"], stored) == (0, 0, 0)
    time, releases, unknown = hours([*settings, "repetitions=6"], stored)
    assert (time, releases, unknown) == (pytest.approx(2 * spent / 3600), 8, 0)
    assert hours([*settings[:-1], "epsilon=[2]", "mechanism=[adassp]", "repetitions=1"], stored)[1:] == (1, 2)
