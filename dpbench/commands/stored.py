"""Which stored or exported trials answer a plan: those of the same code, and of other code where that is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dpbench.config import Experiment
from dpbench.grid.identity import question
from dpbench.grid.plan import Plan, make_plan
from dpbench.grid.store import Store
from dpbench.report.build import export_in, load_export

Trial = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """The trials found of a plan, in its order; how many it has; how many come from the store and are of other code."""

    trials: list[Trial]
    planned: int
    other_code: int


def stored_trials(experiment: Experiment, *, other_code: bool = False) -> Stored:
    """The trials of this very plan that are stored or, where they are not, stand in the export of its folder.

    An export may have been made by other code: it names the commit. With `other_code`, so may stored trials.
    """
    plan, store = make_plan(experiment), Store(experiment.results, experiment.name)
    found = {trial["id"]: trial for trial in store.read_trials(plan.trial_ids)}
    accepted: dict[str, Trial] = of_other_code(plan, store) if other_code else {}
    found = {**accepted, **found}
    export = export_in(store.folder)
    if len(found) < len(plan.trial_ids) and export is not None:
        missing = {asked: identity for asked, identity in questions(plan) if identity not in found}
        found |= dict(_answered(missing, load_export(export)))
    trials = [found[identity] for identity in plan.trial_ids if identity in found]
    return Stored(trials, len(plan.trial_ids), len(accepted))


def of_other_code(plan: Plan, store: Store) -> dict[str, Trial]:
    """Trials of the plan that are not stored -> stored ones that answer the same question by other code."""
    stored = store.trial_ids()
    missing = {asked: identity for asked, identity in questions(plan) if identity not in stored}
    if not missing or stored <= set(plan.trial_ids):
        return {}
    return dict(_answered(missing, store.all_trials()))


def questions(plan: Plan) -> Iterator[tuple[str, str]]:
    """What each trial of a plan asks (`identity.question`), and its id."""
    for item in plan.releases:
        for trial in item.trials:
            yield question({"release": item.key, **trial.key}), trial.id


def _answered(missing: dict[str, str], trials: Iterable[Trial]) -> Iterator[tuple[str, Trial]]:
    for trial in trials:
        if (identity := missing.get(question(trial["key"]))) is not None:
            yield identity, trial
