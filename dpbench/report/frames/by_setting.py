"""Trials of one setting, field by field: a stored trial has each field, a cell of an export its column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpbench.grid.plan import Plan
from dpbench.grid.records import ScoreData, Trial, TrialKey, score_to_dict
from dpbench.grid.store import Store
from dpbench.report.export_file import Cell, Exported

OF_TRIAL = {
    "trial": "str",
    "release": "str",
    "experiment": "str",
    "repetition": "int64",
    "status": "str",
    "spent_epsilon": "float64",
    "nonprivate_inputs": "object",
    "unfinished": "int64",
    "release_seconds": "float64",
    "model_seconds": "float64",
    "metrics_seconds": "float64",
    "peak_mb": "float64",
}


@dataclass(frozen=True)
class OneSetting:
    """Trials that differ in their repetition alone.

    `key` is that of one of them, `fields` has columns of `OF_TRIAL`, `scores` the scores of each.
    """

    key: TrialKey
    fields: Mapping[str, Sequence[Any]]
    scores: Sequence[Sequence[ScoreData]]

    @cached_property
    def scored(self) -> dict[str, ScoreData]:
        """The last score of each name among those of `done`."""
        return {score["name"]: score for _, score in self.done}

    @property
    def done(self) -> Iterator[tuple[int, ScoreData]]:
        """The place of each trial that is done, and each of its scores."""
        for place, (status, scores) in enumerate(zip(self.fields["status"], self.scores, strict=True)):
            if status == "done":
                for score in scores:
                    yield place, score


def by_setting(trials: Iterable[Trial]) -> list[OneSetting]:
    """The trials by their settings; trials of an export are not built for it."""
    if isinstance(trials, Exported):
        return [_of_cell(cell, places) for cell, places in trials.parts if len(places)]
    groups: dict[object, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.key.setting, []).append(trial)
    return [_of_trials(group) for group in groups.values()]


def _of_trials(trials: Sequence[Trial]) -> OneSetting:
    fields: dict[str, Sequence[Any]] = {
        "trial": [trial.id for trial in trials],
        "release": [trial.release_id for trial in trials],
        "experiment": [trial.experiment for trial in trials],
        "repetition": [trial.key.release.repetition for trial in trials],
        "status": [trial.status for trial in trials],
        "spent_epsilon": [np.nan if trial.spent is None else trial.spent.epsilon for trial in trials],
        "nonprivate_inputs": [tuple(sorted(trial.nonprivate_inputs)) for trial in trials],
        "unfinished": [unfinished(trial.notes.get("unfinished")) for trial in trials],
        "release_seconds": [trial.runtime.release_seconds for trial in trials],
        "model_seconds": [trial.runtime.model_seconds for trial in trials],
        "metrics_seconds": [trial.runtime.metrics_seconds for trial in trials],
        "peak_mb": [_peak(trial.runtime.release_peak_mb, trial.runtime.peak_mb) for trial in trials],
    }
    return OneSetting(trials[0].key, fields, [[score_to_dict(score) for score in trial.scores] for trial in trials])


def _of_cell(cell: Cell, places: Sequence[int]) -> OneSetting:
    def chosen(found: Sequence[Any]) -> Sequence[Any]:
        return found if len(places) == cell.count else [found[place] for place in places]

    def column(*path: str) -> Sequence[Any]:
        return chosen(cell.column(*path))

    fields: dict[str, Sequence[Any]] = {
        "trial": chosen(cell.ids),
        "release": chosen(cell.release_ids),
        "experiment": [cell.experiment] * len(places),
        "repetition": column("repetition"),
        "status": column("status"),
        "spent_epsilon": [np.nan if epsilon is None else float(epsilon) for epsilon in column("spent", "epsilon")],
        "nonprivate_inputs": [tuple(sorted(inputs)) for inputs in column("nonprivate_inputs")],
        "unfinished": list(map(unfinished, column("notes", "unfinished"))),
        "release_seconds": column("runtime", "release_seconds"),
        "model_seconds": column("runtime", "model_seconds"),
        "metrics_seconds": column("runtime", "metrics_seconds"),
        "peak_mb": list(map(_peak, column("runtime", "release_peak_mb"), column("runtime", "peak_mb"))),
    }
    return OneSetting(cell.key, fields, column("scores"))


def stored_by_setting(plan: Plan, store: Store) -> list[OneSetting]:
    """The stored trials of a plan by their settings, with what a table of the store's `metric` needs of them."""
    groups = []
    for group in plan.groups:
        for key, ids in zip(group.item.trials, group.trial_ids, strict=True):
            found = store.read_scores(key, ids)
            scored = [one for one in found if one is not None]
            fields: dict[str, Sequence[Any]] = {
                "repetition": [n for n, one in zip(group.repetitions, found, strict=True) if one is not None],
                "status": [one.status for one in scored],
                "spent_epsilon": [one.spent_epsilon for one in scored],
            }
            if scored:
                groups.append(OneSetting(key, fields, [() if one.score is None else (one.score,) for one in scored]))
    return groups


def unfinished(note: object) -> int:
    """How many integer programmes of a release were stopped by the time limit, from the notes of a trial, if any."""
    return note if isinstance(note, int) else 0


def _peak(*measured: float | None) -> float | None:
    return max((peak for peak in measured if peak is not None), default=None)
