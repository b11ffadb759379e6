"""The stored trials of the experiments behind a figure or table, and the note on methods of several versions of
code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from dpbench.config import Experiment, left_for_training
from dpbench.config.reports import OTHER_METRICS
from dpbench.config.specs import Spec
from dpbench.grid.plan import all_stays, one_repetition
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.frames.frame import TrialRows, joined_frame, rows_of
from dpbench.report.frames.series import series_among
from dpbench.report.frames.settings import calibration_of, is_placed, placed, settings_of

NAMED = 4  # up to this many methods are named, more are counted


@dataclass(frozen=True)
class Results:
    """One experiment with its stored trials, none if it was not run; `notes` say how to read them."""

    experiment: Experiment
    trials: Sequence[Trial]
    notes: Sequence[str] = ()

    @cached_property
    def rows(self) -> TrialRows:
        """The trials as rows, made once for all figures."""
        with all_stays():
            return rows_of(self.trials)

    def prepare(self) -> None:
        """Make what all figures read, for processes that are forked afterwards."""
        if self.trials:
            _ = self.rows, self.planned

    @property
    def planned(self) -> Iterable[TrialKey]:
        """The keys of one repetition of the plan."""
        return one_repetition(self.experiment).trials


def frame_of(results: Iterable[Results], spec: Spec, reads: Sequence[str] = ()) -> pd.DataFrame:
    """The trials of several experiments as `spec` places them, with the columns that it and `reads` name, and the
    `training_rows`: those asked for, or that the data set has after those for testing, if there are fewer.
    """
    run = [one for one in results if one.trials]
    columns = dict.fromkeys([*settings_of(spec), *reads])  # a setting may be named by both
    frame = placed(_joined(tuple(one.rows for one in run), tuple(columns)), spec)
    declared = {
        grid.dataset.name: left_for_training(grid.dataset, grid.sample) for one in run for grid in one.experiment.grids
    }
    most = frame["dataset"].map({name: rows for name, rows in declared.items() if rows is not None}).astype("float64")
    return frame.assign(training_rows=np.fmin(frame["train_rows"], most).astype("int64"))


@lru_cache(maxsize=4)
def _joined(parts: Sequence[TrialRows], by: Sequence[str]) -> pd.DataFrame:
    """Kept for the next figures, which often show the same trials."""
    return joined_frame(parts, by)


def titles_of(results: Iterable[Results], panels: Mapping[str, str]) -> dict[str, str]:
    """The title of each data set, its name if `panels` has none, in the order of the experiments."""
    names = [grid.dataset.name for one in results for grid in one.experiment.grids]
    return {name: str(panels.get(name, name)) for name in names}


def notes_on(results: Sequence[Results]) -> list[str]:
    """What was not run, and how to read the trials of the others."""
    return merged_notes({one.experiment.name: one.notes if one.trials else None for one in results})


def merged_notes(of: Mapping[str, Sequence[str] | None]) -> list[str]:
    """The notes on some experiments (None: not run), each once, with the names of those that it is on unless on all."""
    missing, noted = [name for name, notes in of.items() if notes is None], dict[str, list[str]]()
    for name, notes in of.items():
        for note in notes or ():
            noted.setdefault(note, []).append(name)
    run = len(of) - len(missing)
    found = [note if len(names) == run else f"{', '.join(names)}: {note}" for note, names in noted.items()]
    return [*([f"Experiments not run: {', '.join(missing)}"] if missing else []), *found]


def choice_of_setting(spec: Spec) -> list[str]:
    """The sentence on a choice by the scores that are shown; none where each setting is a series."""
    choice = "Of each method's settings the best mean is shown, chosen by these scores, outside the budget"
    return [choice] if spec.get("best_setting") else []


def several_versions(chosen: Sequence[Results], labels: Mapping[str, str], spec: Spec) -> list[str]:
    """The sentence on methods for which several versions of the mechanism's code made the trials on a data set that a
    figure or table shows; none if there are none. An empty `spec` shows all trials.
    """
    codes: dict[tuple[str, ...], dict[str, set[str | None]]] = {}
    for key in (key for one in chosen for key in _keys_shown(one, spec)):
        mechanism, dataset = key.release.mechanism, str(key.release.dataset["name"])
        of_method = codes.setdefault((mechanism.name, calibration_of(key), "", key.fit.model.name), {})
        of_method.setdefault(dataset, set()).add(mechanism.version)
    known = series_among(codes, labels)
    names = spec.get("show")
    every = [one for one in known if names is None or one.name in names]
    mixed = [one.label for one in every if any(len(made) > 1 for made in codes[one.identity].values())]
    if not mixed:
        return []
    named = "; ".join(mixed) if len(mixed) <= NAMED else f"{len(mixed)} of {len(every)} methods"
    return [f"More than one version of the code made what is shown{'' if len(mixed) == len(every) else f' of {named}'}"]


def _keys_shown(one: Results, spec: Spec) -> Iterator[TrialKey]:
    """The keys of the trials that the figure places and that have its metric, one of each setting."""
    rows, metric = one.rows.scores, spec.get("metric")
    settings = rows["setting"]
    if metric is not None and metric not in OTHER_METRICS:
        settings = settings[rows["metric"] == metric]
    keys = (one.rows.keys[place] for place in settings.unique())
    return (key for key in keys if is_placed(key, spec))
