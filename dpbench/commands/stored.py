"""Which stored or exported trials answer a plan: those of the same code, and of other code where that is accepted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpbench.config import Experiment
from dpbench.grid.other_code import Trial, answered, of_other_code, questions
from dpbench.grid.plan import ReleaseItem, make_plan
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.report.build import export_in, load_export


@dataclass(frozen=True)
class Stored:
    """The trials found of a plan, in its order; how many it has; how many come from the store and are of other code."""

    trials: list[Trial]
    planned: int
    other_code: int


def stored_trials(experiment: Experiment, *, other_code: bool = False) -> Stored:
    """The trials of this very plan that are stored; of mechanisms of which none is, those in the export of its folder.

    An export may have been made by other code: it names the commit. With `other_code`, so may stored trials.
    """
    plan, store = make_plan(experiment), Store(experiment.results, experiment.name)
    found = {trial["id"]: trial for trial in store.read_trials(plan.trial_ids)}
    accepted: dict[str, Trial] = of_other_code(plan, store) if other_code else {}
    found = {**accepted, **found}
    export = export_in(store.folder)
    if len(found) < len(plan.trial_ids) and export is not None:
        stored = {_mechanism(item) for item in plan.releases if any(trial.id in found for trial in item.trials)}
        absent = replace(plan, releases=tuple(item for item in plan.releases if _mechanism(item) not in stored))
        found |= dict(answered(dict(questions(absent)), load_export(export)))
    trials = [found[identity] for identity in plan.trial_ids if identity in found]
    return Stored(trials, len(plan.trial_ids), len(accepted))


def _mechanism(item: ReleaseItem) -> str:
    """The mechanism of a release with its parameters: one series of the report."""
    return canonical([item.key["dataset"]["name"], item.key["mechanism"]])
