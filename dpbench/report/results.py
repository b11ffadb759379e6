"""What is stored of the experiments that a paper's figure or table is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dpbench.config import Experiment
from dpbench.report.frame import Trial, trial_frame


@dataclass(frozen=True)
class Results:
    """One experiment with its stored trials, none if it was not run; `notes` say how they must be read."""

    experiment: Experiment
    trials: Sequence[Trial]
    notes: Sequence[str] = ()


def frame_of(results: Iterable[Results], by: Sequence[str] = ()) -> pd.DataFrame:
    """The trials of several experiments in one frame, told apart by these settings too."""
    return trial_frame((trial for one in results for trial in one.trials), by)


def titles_of(results: Iterable[Results], panels: Mapping[str, str]) -> dict[str, str]:
    """The title of each data set, its name if `panels` has none, in the order of the experiments."""
    names = [str(grid.dataset["name"]) for one in results for grid in one.experiment.grids]
    return {name: str(panels.get(name, name)) for name in names}


def notes_on(results: Sequence[Results]) -> list[str]:
    """What was not run, and how the trials of the others must be read."""
    run = [one for one in results if one.trials]
    missing = [one.experiment.name for one in results if not one.trials]
    told: dict[str, list[str]] = {}
    for one in run:
        for note in one.notes:
            told.setdefault(note, []).append(one.experiment.name)
    notes = [note if len(names) == len(run) else f"{', '.join(names)}: {note}" for note, names in told.items()]
    return [*([f"Experiments not run: {', '.join(missing)}"] if missing else []), *notes]
