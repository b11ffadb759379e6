"""`dpbench log TRIAL`: what a trial printed."""

from __future__ import annotations

import argparse

from dpbench.config import compose
from dpbench.errors import UserError, shown
from dpbench.grid.records import PartKey, Trial
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store

SHOWN = 5  # of several trials


def log(arguments: argparse.Namespace) -> int:
    """Show a trial's ids, settings and status, then what its release, its fit and its scores printed: of each the last
    20,000 bytes. The trial may be given by the first digits of its id.

    Raises `UserError` unless exactly one stored trial is meant.
    """
    root = compose(arguments.overrides, arguments.config_dir).results
    stores = [Store(root, path.parent.name) for path in sorted(root.glob("*/trials"))]
    found = {name: store for store in stores for name in store.trials.scan() if name.startswith(arguments.trial)}
    if len(found) != 1:
        some = ": " + ", ".join([*sorted(found)[:SHOWN], *["..."] * (len(found) > SHOWN)]) if found else ""
        told = "" if found else "; dpbench export has the settings, the commit and the scores of those in an export"
        raise UserError(
            f"{len(found)} trials in {root} have an id that begins with {shown(arguments.trial)}{some}{told}"
        )
    ((identity, store),) = found.items()
    trial = next(store.all_trials(identity), None)
    if trial is None:
        raise UserError(f"the trial {identity} is damaged: run its experiment again")
    for name, value in _about(trial).items():
        print(f"{name + ':':<12}{value}")
    store.printed.scan()
    parts = {"release": trial.release_id, "model": trial.key.fit.id, "metrics": trial.id}
    texts = {phase: text for phase, identity in parts.items() if (text := store.read_printed(identity))}
    for phase, text in texts.items():
        print(f"\n--- {phase} ---\n{text.rstrip()}")
    if not texts:
        print("\nnothing was printed")
    return 0


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
    return about if trial.error is None else {**about, "error": f"{trial.error.type}: {trial.error.message}"}


def _part(part: PartKey) -> str:
    return f"{part.name} {canonical(dict(part.parameters))}" if part.parameters else part.name
