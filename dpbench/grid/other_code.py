"""Results of other code: the same settings, run by another version of a mechanism, model or metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dpbench.grid.identity import question
from dpbench.grid.plan import Plan
from dpbench.grid.store import Store

Trial = dict[str, Any]


def of_other_code(plan: Plan, store: Store) -> dict[str, Trial]:
    """Trials of the plan that are not stored -> stored ones that answer the same question by other code."""
    stored = store.trial_ids()
    missing = {asked: identity for asked, identity in questions(plan) if identity not in stored}
    if not missing or stored <= set(plan.trial_ids):
        return {}
    return dict(answered(missing, store.all_trials()))


def questions(plan: Plan) -> Iterator[tuple[str, str]]:
    """What each trial of a plan asks (`identity.question`), and its id."""
    for item in plan.releases:
        for trial in item.trials:
            yield question({"release": item.key, **trial.key}), trial.id


def answered(missing: dict[str, str], trials: Iterable[Trial]) -> Iterator[tuple[str, Trial]]:
    """The trials that answer a missing question, each with the id of the trial of the plan that asks it."""
    for trial in trials:
        if (identity := missing.get(question(trial["key"]))) is not None:
            yield identity, trial
