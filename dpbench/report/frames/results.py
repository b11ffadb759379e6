"""The stored trials of the experiments behind a paper's figure or table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dpbench.config import Experiment
from dpbench.config.specs import Spec
from dpbench.grid.plan import all_stays, one_repetition
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.frames.frame import TrialRows, joined_frame, rows_of
from dpbench.report.frames.settings import placed, settings_of


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

    @property
    def planned(self) -> Iterable[TrialKey]:
        """The keys of one repetition of the plan."""
        return one_repetition(self.experiment).trials


def frame_of(results: Iterable[Results], spec: Spec, reads: Sequence[str] = ()) -> pd.DataFrame:
    """The trials of several experiments as `spec` places them, with the columns that it and `reads` name."""
    return placed(joined_frame([one.rows for one in results], [*settings_of(spec), *reads]), spec)


def titles_of(results: Iterable[Results], panels: Mapping[str, str]) -> dict[str, str]:
    """The title of each data set, its name if `panels` has none, in the order of the experiments."""
    names = [grid.dataset.name for one in results for grid in one.experiment.grids]
    return {name: str(panels.get(name, name)) for name in names}


def notes_on(results: Sequence[Results]) -> list[str]:
    """What was not run, and how to read the trials of the others."""
    run = [one for one in results if one.trials]
    missing = [one.experiment.name for one in results if not one.trials]
    noted: dict[str, list[str]] = {}
    for one in run:
        for note in one.notes:
            noted.setdefault(note, []).append(one.experiment.name)
    notes = [note if len(names) == len(run) else f"{', '.join(names)}: {note}" for note, names in noted.items()]
    return [*([f"Experiments not run: {', '.join(missing)}"] if missing else []), *notes]
