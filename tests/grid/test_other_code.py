"""Results of other code answer the questions of a plan."""

from dataclasses import replace

from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Trial
from dpbench.grid.store import Store, of_other_code


def test_a_trial_of_other_code_stands_for_the_one_that_is_missing(bench):
    store = Store(bench.results, "grid")
    store.prepare()
    plan = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=2")))
    asked = plan.releases[0].trials[0]
    model = replace(asked.fit.model, version="another")
    other = replace(asked, fit=replace(asked.fit, model=model))
    assert of_other_code(plan, store) == {}
    store.write_trial(Trial(other.id, other.release.id, other, "grid", "done"))
    assert {wanted: trial.id for wanted, trial in of_other_code(plan, store).items()} == {asked.id: other.id}
    store.write_trial(Trial(asked.id, asked.release.id, asked, "grid", "done"))
    assert of_other_code(plan, store) == {}
