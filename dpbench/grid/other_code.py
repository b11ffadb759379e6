"""Results of the same settings by another version of a mechanism, model or metric."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.grid.plan import Plan
from dpbench.grid.records import Trial
from dpbench.grid.store import Store


def of_other_code(plan: Plan, store: Store) -> dict[str, Trial]:
    """Trials of the plan that are not stored -> stored ones that other versions of the code made."""
    stored, planned = store.trials.scan(), set(plan.trial_ids)
    if planned <= stored.keys() or stored.keys() <= planned:
        return {}
    missing = {asked: identity for asked, identity in questions(plan) if identity not in stored}
    asked = ((missing.get(trial.key.unversioned().id), trial) for trial in store.all_trials())
    return {identity: trial for identity, trial in asked if identity is not None}


def questions(plan: Plan) -> Iterator[tuple[str, str]]:
    """The identity of what each trial of a plan asks, whichever version answers it, and that of the trial."""
    for item in plan.releases:
        for trial in item.trials:
            yield trial.unversioned().id, trial.id
