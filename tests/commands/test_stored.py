"""Which stored or exported trials answer an experiment."""

from dataclasses import replace

import pytest

from dpbench.commands.stored import stored_trials
from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.export import write_export

SETTINGS = ["experiment=quickstart", "mechanism=[exact,adassp]", "model=[linear_statistics]", "repetitions=2"]


@pytest.fixture
def experiment(tmp_path):
    return compose([*SETTINGS, f"results={tmp_path}"])


@pytest.fixture
def trials(experiment):
    keys = (key for item in make_plan(experiment).releases for key in item.trials)
    return [Trial(key.id, key.release.id, key, "quickstart", "done") for key in keys]


@pytest.fixture
def store(experiment):
    store = Store(experiment.results, experiment.name)
    store.prepare()
    return store


def ids(found):
    return {trial.id for trial in found.trials}


def test_stored_trials_of_the_plan_are_found_and_no_others(experiment, store, trials):
    for trial in trials[:-1]:
        store.write_trial(trial)
    store.write_trial(replace(trials[-1], id="0" * 16))
    found = stored_trials(experiment)
    assert ids(found) == {trial.id for trial in trials[:-1]}
    assert (found.planned, found.other_code) == (len(trials), 0)


def test_results_of_other_code_are_accepted_if_asked_for(experiment, store, trials):
    def of_other_code(trial):
        key = replace(trial.key, fit=replace(trial.key.fit, model=replace(trial.key.fit.model, code="x")))
        return replace(trial, id=key.id, key=key)

    for trial in trials:
        store.write_trial(of_other_code(trial))
    assert ids(stored_trials(experiment)) == set()
    found = stored_trials(experiment, other_code=True)
    assert len(found.trials) == found.other_code == len(trials)


def test_an_export_answers_where_nothing_is_stored(experiment, trials):
    write_export(trials, experiment.results / experiment.name)
    found = stored_trials(experiment)
    assert ids(found) == {trial.id for trial in trials}
    assert found.stored == 0


def test_an_experiment_of_which_only_others_ran_some_cells_was_not_run(experiment, trials):
    write_export([replace(trial, experiment="other") for trial in trials], experiment.results / experiment.name)
    assert not stored_trials(experiment).trials


def test_a_mechanism_that_is_stored_is_not_mixed_with_its_export(experiment, store, trials):
    write_export(trials, experiment.results / experiment.name)
    mine = [trial for trial in trials if trial.key.release.mechanism.name == "adassp"][:1]
    store.write_trial(mine[0])
    found = stored_trials(experiment)
    kept = [trial for trial in found.trials if trial.key.release.mechanism.name == "adassp"]
    parameters = mine[0].key.release.mechanism.parameters
    assert [trial.id for trial in kept if trial.key.release.mechanism.parameters == parameters] == [mine[0].id]
    assert any(trial.key.release.mechanism.name == "exact" for trial in found.trials)
