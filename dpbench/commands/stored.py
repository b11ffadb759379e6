"""Which stored or exported trials answer an experiment: of the same code, and of other code where that is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpbench.config import Experiment, choices
from dpbench.config.registry import folder_of
from dpbench.grid.other_code import of_other_code
from dpbench.grid.plan import all_stays, make_plan
from dpbench.grid.records import Trial, TrialKey
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.report.export import NAME, Cell, Exported, answers, first_ledgers, load_export, question_of
from dpbench.report.frames.ledgers import Events, FirstLedger, LedgerOf


@dataclass(frozen=True)
class Stored:
    """The trials found of a plan, the first `stored` of them from the store and `other_code` of those of other code;
    how many the plan has. `others`: what the store has of other plans.
    """

    trials: Sequence[Trial]
    planned: int
    stored: int
    other_code: int
    others: Iterable[Trial] = ()


def stored_trials(
    experiment: Experiment, config_dir: Path | None = None, *, paper: str = "", other_code: bool = False
) -> Stored:
    """The trials of this very plan that are stored; of cells of which none is, those that an export has (`_beside`).

    Exports are those of the experiment and of its paper: that in whose folder its config stands, if none is named. An
    export may have been made by other code: it names the commit. With `other_code`, so may stored trials. An experiment
    was not run if an export has no trial that was run for it: what it shares with others compares nothing.
    """
    store = Store(experiment.results, experiment.name)
    if not (store.folder / "trials").is_dir():
        found, planned = answers(exported_cells(experiment, config_dir, paper), experiment)
        run = any(cell.experiment == experiment.name for cell, places in found.parts if places)
        return Stored(found if run else Exported([]), planned, stored=0, other_code=0)
    plan = make_plan(experiment)
    with all_stays():
        own = {trial.id: trial for trial in store.read_trials(plan.trials)}
    accepted = of_other_code(plan, store) if other_code else {}
    trials = [*{**accepted, **own}.values()]
    stored = len(trials)
    if stored < len(plan.trial_ids):
        exported, _ = answers(exported_cells(experiment, config_dir, paper), experiment)
        trials += _beside(trials, exported)
    others = store.all_trials(but={trial.id for trial in trials[:stored]})
    return Stored(trials, len(plan.trial_ids), stored, len(accepted), others)


def _beside(stored: Iterable[Trial], exported: Exported) -> Iterator[Trial]:
    """The exported trials of cells of which no repetition is stored; but of a mechanism that is stored by another
    version of its code none, so that a line of a figure is of one version.
    """
    keys = list({trial.key.setting: trial.key for trial in stored}.values())
    asked, codes = {question_of(key) for key in keys}, {_mechanism(key): key.release.mechanism.code for key in keys}
    for cell, places in exported.parts:
        code = cell.key.release.mechanism.code
        if cell.question not in asked and codes.get(_mechanism(cell.key), code) == code:
            yield from (cell.trials[place] for place in places)


def ledgers(store: Store) -> LedgerOf:
    """The events of a release, if it is stored; its arrays are not read for them."""
    store.releases.scan()

    def events(trial: Trial) -> Events | None:
        found = next(store.releases.records([trial.release_id]), None)
        return None if found is None else found["release"]["ledger"]

    return events


def exported_cells(experiment: Experiment, config_dir: Path | None, paper: str = "") -> list[Cell]:
    """What the exports of the experiment and of its paper hold."""
    config = choices("experiment", config_dir).get(experiment.name)
    folders = dict.fromkeys([experiment.name, paper or (folder_of(config) if config else "")])
    paths = (experiment.results / name / NAME for name in folders if name)
    return [cell for path in paths if path.exists() for cell in _read(path, path.stat().st_mtime_ns)]


def exported_ledgers(
    experiments: Iterable[Experiment], config_dir: Path | None, paper: str = ""
) -> dict[str, FirstLedger]:
    """The ledgers that the exports of some experiments, and of their paper, have by the releases they stand for."""
    cells = (cell for one in experiments for cell in exported_cells(one, config_dir, paper))
    return first_ledgers({id(cell): cell for cell in cells}.values())  # experiments of a paper share its export


@cache
def _read(path: Path, mtime: int) -> list[Cell]:
    with all_stays():
        return load_export(path)


def _mechanism(key: TrialKey) -> str:
    """The mechanism of a release with its parameters: one series of the report."""
    return canonical([key.release.dataset["name"], key.release.mechanism.uncoded().to_dict()])
