"""`dpbench log TRIAL`: what a trial printed."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpbench.config import compose
from dpbench.errors import UserError, shown
from dpbench.grid.plan import all_stays
from dpbench.grid.records import PartKey, Trial
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.report.export_file import Cell, exports_in, load_export

SHOWN = 5  # of several trials


def log(arguments: argparse.Namespace) -> int:
    """Show a trial's ids, settings and status, then what its release, its fit and its scores printed: of each the last
    20,000 bytes. The trial may be given by the first digits of its id. One that no run of the results folder stored is
    looked for in the exports there, which do not keep what was printed.

    Raises `UserError` unless exactly one trial is meant.
    """
    root = compose(arguments.overrides, arguments.config_dir).results
    stores = [Store(root, path.parent.name) for path in sorted(root.glob("*/trials"))]
    stored = {name: store for store in stores for name in store.trials.scan() if name.startswith(arguments.trial)}
    exported = {} if stored else _exported(root, arguments.trial)
    found = sorted({**stored, **exported})
    if len(found) != 1:
        some = ": " + ", ".join([*found[:SHOWN], *["..."] * (len(found) > SHOWN)]) if found else ""
        where = f"{root} and its exports" if not stored else root
        raise UserError(f"{len(found)} trials in {where} have an id that begins with {shown(arguments.trial)}{some}")
    (identity,) = found
    if identity in stored:
        _print_stored(stored[identity], identity)
    else:
        path, cell, place = exported[identity]
        _print_about(cell.trials[place])
        note = "which does not keep what a trial printed; the results folder of its run does"
        print(f"\nit stands in {path}, an export, {note}")
    return 0


def _exported(root: Path, digits: str) -> dict[str, tuple[Path, Cell, int]]:
    """The trials of the exports whose ids begin with these digits: the export, the cell, the place in it."""
    with all_stays():
        paths = [path for folder in sorted(root.glob("*")) for path in exports_in(folder)]
        cells = [(path, cell) for path in paths for cell in load_export(path)]
    return {
        name: (path, cell, place)
        for path, cell in cells
        for place, name in enumerate(cell.ids)
        if name.startswith(digits)
    }


def _print_stored(store: Store, identity: str) -> None:
    trial = next(store.all_trials(identity), None)
    if trial is None:
        raise UserError(f"the trial {identity} is damaged: run its experiment again")
    _print_about(trial)
    store.printed.scan()
    parts = {"release": trial.release_id, "model": trial.key.fit.id, "metrics": trial.id}
    texts = {phase: text for phase, identity in parts.items() if (text := store.read_printed(identity))}
    for phase, text in texts.items():
        print(f"\n--- {phase} ---\n{text.rstrip()}")
    if not texts:
        print("\nnothing was printed")


def _print_about(trial: Trial) -> None:
    for name, value in _about(trial).items():
        print(f"{name + ':':<12}{value}")


def _about(trial: Trial) -> dict[str, object]:
    release, budget = trial.key.release, trial.key.release.budget
    about: dict[str, object] = {
        "trial": f"{trial.id} of {trial.experiment}",
        "release": trial.release_id,
        "dataset": release.dataset["name"],
        "mechanism": _part(release.mechanism),
        "model": _part(trial.key.fit.model),
        "budget": f"epsilon={budget.epsilon:g} delta={budget.delta:g} relation={budget.relation}",
        "repetition": f"{release.repetition}, seed {release.seed}",
        "status": trial.status + (f" in {trial.phase}" if trial.phase else ""),
    }
    if trial.error is None:
        return about
    kind = f"{trial.error.type}: "
    return {**about, "error": kind + trial.error.message.removeprefix(kind)}


def _part(part: PartKey) -> str:
    return f"{part.name} {canonical(dict(part.parameters))}" if part.parameters else part.name
