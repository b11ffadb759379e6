"""Which stored or exported trials answer an experiment: by today's versions, and by others where that is accepted."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpbench.config import Experiment, choices
from dpbench.config.registry import folder_of
from dpbench.grid.plan import all_stays, make_plan
from dpbench.grid.records import Trial
from dpbench.grid.store import Store, of_other_code
from dpbench.report.export_file import (
    Answers,
    Cell,
    Exported,
    answers,
    exports_in,
    first_ledgers,
    load_export,
    question_of,
)
from dpbench.report.frames.ledgers import Events, FirstLedger, LedgerOf

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stored:
    """The trials found of a plan, the first `stored` of them from the store, `other_code` of all by other versions of
    the code; how many the plan has. `others`: what the store has of other plans.
    """

    trials: Sequence[Trial]
    planned: int
    stored: int
    other_code: int
    others: Iterable[Trial] = ()


def stored_trials(
    experiment: Experiment, config_dir: Path | None = None, *, paper: str = "", other_code: bool = False
) -> Stored:
    """The trials of this very plan that are stored; of cells of which none is, those that an export has.

    Exports are those of the experiment and of its paper: that in whose folder its config stands, if none is named.
    Trials by other versions of the code, stored or exported, are left out unless `other_code` accepts them. An
    experiment was not run if an export has no trial that was run for it: what it shares with others compares nothing.
    """
    store = Store(experiment.results, experiment.name)
    if not (store.folder / "trials").is_dir():
        found, others, planned = _exported(experiment, config_dir, paper, other_code)
        run = any(cell.experiment == experiment.name for cell, places in (*found.parts, *others.parts) if places)
        exported = Exported([*found.parts, *others.parts] if run else [])
        return Stored(exported, planned, stored=0, other_code=len(others) if run else 0)
    plan = make_plan(experiment)
    with all_stays():
        own = {trial.id: trial for trial in store.read_trials(plan.trials)}
    accepted = of_other_code(plan, store) if other_code else {}
    trials = [*{**accepted, **own}.values()]
    stored = len(trials)
    more: list[Trial] = []
    if stored < len(plan.trial_ids):
        found, others, _ = _exported(experiment, config_dir, paper, other_code)
        more = list(_not_stored(others, trials))
        trials += [*_not_stored(found, trials), *more]
    rest = store.all_trials(but={trial.id for trial in trials[:stored]})
    return Stored(trials, len(plan.trial_ids), stored, len(accepted) + len(more), rest)


def _exported(experiment: Experiment, config_dir: Path | None, paper: str, other_code: bool) -> Answers:
    """What exports have of the experiment; without trials by other versions of the code, unless they are accepted."""
    cells = exported_cells(experiment, config_dir, paper)
    found = answers(cells, experiment)
    if other_code or not len(found.others):
        return found
    log.warning(
        "%s: %d exported trials are by other versions of the code and left out; --other-code accepts them",
        experiment.name,
        len(found.others),
    )
    return answers(cells, experiment, today=True)


def _not_stored(exported: Exported, stored: Iterable[Trial]) -> Iterator[Trial]:
    """The exported trials of cells of which no repetition is stored."""
    asked = {question_of(key) for key in {trial.key.setting: trial.key for trial in stored}.values()}
    for cell, places in exported.parts:
        if cell.question not in asked:
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
    paths = (path for name in folders if name for path in exports_in(experiment.results / name))
    return [cell for path in paths for cell in _read(path, path.stat().st_mtime_ns)]


def exported_ledgers(
    experiments: Iterable[Experiment], config_dir: Path | None, paper: str = ""
) -> dict[str, FirstLedger]:
    """The ledgers that the exports of some experiments, and of their paper, have by the releases they stand for."""
    cells = (cell for one in experiments for cell in exported_cells(one, config_dir, paper))
    return first_ledgers({id(cell): cell for cell in cells}.values())  # experiments of a paper share its exports


@cache
def _read(path: Path, mtime: int) -> list[Cell]:
    with all_stays():
        return load_export(path)
