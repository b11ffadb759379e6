"""How long a run is said to take, and the shards that are made of it."""

import pytest

from dpbench.cli import main
from dpbench.commands.durations import durations
from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.grid.store import Store
from dpbench.report.export_file import Cell, add_to_export

GRID = ["mechanism=[exact,adassp]", "epsilon=[1]"]


@pytest.fixture(scope="module")
def bench(workbench, tmp_path_factory):
    """With two repetitions stored."""
    made = workbench(tmp_path_factory.mktemp("durations"))
    assert made.run(*GRID, "repetitions=2") == 0
    return made


def known(bench, *more):
    """The plan of these settings, and what is known of it."""
    experiment = compose(bench.settings(*GRID, *more))
    plan = make_plan(experiment)
    return plan, durations(experiment, plan, Store(experiment.results, experiment.name), None)


def test_what_is_missing_takes_the_mean_seconds_of_the_stored_repetitions(bench, capsys):
    spent = sum(
        sum(filter(None, (one.release_seconds, one.model_seconds, one.metrics_seconds)))
        for one in (trial.runtime for trial in Store(bench.results, "grid").all_trials())
    )
    plan, found = known(bench, "repetitions=6")
    assert found.total(plan.releases) == (pytest.approx(3 * spent), 0)
    capsys.readouterr()
    assert main(["run", "--dry-run", *bench.settings(*GRID, "repetitions=600")]) == 0
    assert f"hours:    {299 * spent / 3600:.2f} on one core" in capsys.readouterr().out
    plan, found = known(bench, "mechanism=[adassp]", "epsilon=[2]", "repetitions=3")
    assert found.total(plan.releases) == (0, 6), "nothing is guessed"
    plan, found = known(bench, "mechanism=[adassp]", "epsilon=[1,2]", "repetitions=1")
    one, two = found.predicted(plan.releases)
    assert one == two > 0, "but to share out, a release is taken to need what others of its mechanism do"


def test_what_an_export_answers_is_told_apart(bench, monkeypatch, tmp_path, capsys):
    (tmp_path / "grid").mkdir()
    add_to_export([*Store(bench.results, "grid").all_trials()], tmp_path / "grid")
    monkeypatch.setattr(bench, "results", tmp_path)
    monkeypatch.setattr(Cell, "trials", property(lambda cell: pytest.fail("only its columns are needed")))
    plan, found = known(bench, "repetitions=3")
    assert len(found.exported) == 4
    seconds, unknown = found.total(plan.releases)
    rest, _ = found.total(plan.without(found.exported).releases)
    assert rest == pytest.approx(seconds / 3)
    assert unknown == 0
    capsys.readouterr()
    assert main(["run", "--dry-run", *bench.settings(*GRID, "repetitions=3")]) == 0
    said = capsys.readouterr().out
    assert "6 planned, 0 stored here, 4 in the export" in said
    assert f"{rest / 3600:.2f} on one core for what the export does not have, {seconds / 3600:.2f} for all" in said
