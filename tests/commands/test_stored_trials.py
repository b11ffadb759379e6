"""Which stored or exported trials answer an experiment."""

from dataclasses import replace

import pytest

from dpbench.commands.stored_trials import stored_trials
from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.export_file import write_export

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


def test_results_by_another_version_are_accepted_if_asked_for(experiment, store, trials):
    def by_another(trial):
        key = replace(trial.key, fit=replace(trial.key.fit, model=replace(trial.key.fit.model, version="x")))
        return replace(trial, id=key.id, key=key)

    for trial in trials:
        store.write_trial(by_another(trial))
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


@pytest.mark.parametrize("asked", [False, True])
def test_one_rule_holds_for_exports_and_the_store(experiment, trials, asked, caplog):
    """An export by another version of a model is left out, and that is reported, unless it is accepted."""
    key = replace(trials[0].key, fit=replace(trials[0].key.fit, model=replace(trials[0].key.fit.model, version="x")))
    write_export([replace(trials[0], id=key.id, key=key), *trials[1:]], experiment.results / experiment.name)
    found = stored_trials(experiment, other_code=asked)
    assert ids(found) == {trial.id for trial in trials[1:]} | ({key.id} if asked else set())
    assert found.other_code == asked
    assert ("1 exported trials are by other versions of the code" in caplog.text) != asked


@pytest.mark.parametrize("code", ["same", "other"])
def test_what_is_stored_is_mixed_with_the_export_in_no_cell_and_with_another_version_in_no_line(
    experiment, store, trials, code
):
    def recoded(trial):
        release = replace(trial.key.release, mechanism=replace(trial.key.release.mechanism, version="x"))
        key = replace(trial.key, fit=replace(trial.key.fit, release=release))
        return replace(trial, id=key.id, release_id=release.id, key=key)

    exported = trials if code == "same" else [recoded(trial) for trial in trials]
    write_export(exported, experiment.results / experiment.name)
    mine = next(trial for trial in trials if trial.key.release.mechanism.name == "adassp")
    store.write_trial(mine)
    found = stored_trials(experiment).trials
    parameters, epsilon = mine.key.release.mechanism.parameters, mine.key.release.budget.epsilon
    line = [trial for trial in found if trial.key.release.mechanism.parameters == parameters]
    assert [trial.id for trial in line if trial.key.release.budget.epsilon == epsilon] == [mine.id]
    others = {trial.key.release.budget.epsilon for trial in line} - {epsilon}
    assert others == (set(experiment.epsilons) - {epsilon} if code == "same" else set())
    assert any(trial.key.release.mechanism.name == "exact" for trial in found) == (code == "same")
