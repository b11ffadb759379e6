"""How long releases and fits take, from the seconds of stored and exported trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean

from dpbench.commands.stored_trials import exported_cells
from dpbench.config import Experiment
from dpbench.grid.plan import Plan, ReleaseItem
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.export_file import Cell

Work = tuple[str, ...]  # what a release asks, whatever its code and repetition; and the name of a model fitted to it
Timed = tuple[Work, int, str, str, Mapping[str, float | None]]  # repetition, ids of release and trial, runtime


@dataclass(frozen=True)
class Durations:
    """Seconds of each release, and of each fit with its scores: of its repetitions that are known, and their mean.

    `questions`: of each release of the plan, by its id. `exported`: the trials of the plan that an export answers.
    """

    seconds: Mapping[tuple[Work, int], float]
    means: Mapping[Work, float]
    questions: Mapping[str, str]
    exported: frozenset[str]

    def known(self, item: ReleaseItem) -> list[float | None]:
        """Seconds of a release and of each fit to it, or the means of other repetitions; None if none is known.

        A repetition that is run again draws the same noise, and takes as long.
        """
        question, repetition = self.questions[item.key.id], item.key.repetition
        works: list[Work] = [(question,), *((question, trial.fit.model.name) for trial in item.trials)]
        return [self.seconds.get((work, repetition), self.means.get(work)) for work in works]

    def total(self, items: Iterable[ReleaseItem]) -> tuple[float, int]:
        """Seconds of all that are known, and how many are not."""
        each = list(chain.from_iterable(map(self.known, items)))
        return sum(filter(None, each)), each.count(None)

    def predicted(self, items: Sequence[ReleaseItem]) -> list[float]:
        """Seconds of each release with its fits. One of which nothing is known is taken to need the mean of its
        mechanism, or of all that are known.
        """
        by_mechanism: dict[str, list[float]] = {}
        for item in items:
            known = self.known(item)
            if None not in known:
                by_mechanism.setdefault(item.key.mechanism.name, []).append(sum(filter(None, known)))
        whole = fmean(chain.from_iterable(by_mechanism.values())) if by_mechanism else 1.0
        means = {name: fmean(seconds) for name, seconds in by_mechanism.items()}
        each = ((self.known(item), means.get(item.key.mechanism.name, whole)) for item in items)
        return [mean if None in known else sum(filter(None, known)) for known, mean in each]


def durations(experiment: Experiment, plan: Plan, store: Store, config_dir: Path | None) -> Durations:
    """What is known from the stored trials of the plan, and from the exports of the experiment and of its paper."""
    questions: dict[str, str] = {}
    asked: dict[str, tuple[str, int]] = {}
    for group in plan.groups:
        questions |= dict.fromkeys(group.release_ids, group.item.key.unversioned().id)
        for trial, ids in zip(group.item.trials, group.trial_ids, strict=True):
            question = trial.unversioned().id
            asked |= {identity: (question, n) for identity, n in zip(ids, group.repetitions, strict=True)}
    cells = exported_cells(experiment, config_dir)
    answered = {(cell.question, repetition) for cell in cells for repetition in cell.column("repetition")}
    exported = frozenset(identity for identity, question in asked.items() if question in answered)
    stored = (_timed(questions[trial.key.release.id], trial) for trial in store.read_trials(plan.trials))
    seconds = _seconds(chain(_of_cells(cells), stored))
    return Durations(seconds, _means(seconds), questions, exported)


def _timed(release: str, trial: Trial) -> Timed:
    """A trial on a release that asks this."""
    key = trial.key
    return (release, key.fit.model.name), key.release.repetition, trial.release_id, trial.id, vars(trial.runtime)


def _of_cells(cells: Iterable[Cell]) -> Iterator[Timed]:
    """The trials of an export, which need not be made for it."""
    for cell in cells:
        work = (cell.key.release.unversioned().id, cell.key.fit.model.name)
        for key, runtime in zip(cell.keys, cell.column("runtime"), strict=True):
            yield work, key.release.repetition, key.release.id, key.id, runtime


def _seconds(trials: Iterable[Timed]) -> dict[tuple[Work, int], float]:
    """Seconds of each repetition; of fits to several draws, their mean. A release that several trials are on counts
    once.
    """
    found: dict[tuple[Work, int], dict[str, float]] = {}
    for work, repetition, release_id, identity, runtime in trials:
        if (seconds := runtime.get("release_seconds")) is not None:
            found.setdefault((work[:1], repetition), {})[release_id] = seconds
        fit = (runtime.get("model_seconds") or 0.0) + (runtime.get("metrics_seconds") or 0.0)
        found.setdefault((work, repetition), {})[identity] = fit
    return {place: fmean(each.values()) for place, each in found.items()}


def _means(seconds: Mapping[tuple[Work, int], float]) -> dict[Work, float]:
    found: dict[Work, list[float]] = {}
    for (work, _), value in seconds.items():
        found.setdefault(work, []).append(value)
    return {work: fmean(each) for work, each in found.items()}
