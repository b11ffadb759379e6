"""`dpbench status` and `dpbench figures`: what is stored, and what it shows."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from dpbench.config import Experiment, choices, compose
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan, read_plan
from dpbench.grid.store import Store
from dpbench.report.build import EXPORT, build_report, load_export


def status(arguments: argparse.Namespace) -> int:
    """Print, for each experiment of the results folder, the trials planned by its last run, stored and failed."""
    root = compose(arguments.overrides, arguments.config_dir).results
    plans = sorted(root.glob("*/plan.jsonl"))
    if not plans:
        print(f"nothing was run in {root} yet")
    for path in plans:
        plan = read_plan(path)
        trials = Store(root, plan.name).read_trials(plan.trial_ids)
        counts = Counter(trial["status"] for trial in trials)
        states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none stored"
        left = len(plan.trial_ids) - len(trials)
        print(f"{plan.name}: {len(plan.trial_ids)} trials planned (limits {plan.limits.name}), {states}, {left} left")
    return 0


def figures(arguments: argparse.Namespace) -> int:
    """Draw the experiment that the settings name, or every experiment that has results."""
    if any(item.startswith(("experiment=", "name=")) for item in arguments.overrides):
        _draw(compose(arguments.overrides, arguments.config_dir))
        return 0
    named = (
        compose([*arguments.overrides, f"experiment={name}"], arguments.config_dir)
        for name in choices("experiment", arguments.config_dir)
    )
    with_results = [experiment for experiment in named if _has_results(experiment)]
    if not with_results:
        raise UserError("no experiment has results yet; dpbench run experiment=quickstart makes some")
    for experiment in with_results:
        _draw(experiment)
    return 0


def _has_results(experiment: Experiment) -> bool:
    folder = experiment.results / experiment.name
    return (folder / EXPORT).exists() or (folder / "trials").is_dir()


def _draw(experiment: Experiment) -> None:
    trials, planned = stored_trials(experiment)
    notes = [] if experiment.limits.name == "full" else [f"limits: {experiment.limits.name}"]
    if len(trials) < planned:
        notes.append(f"{len(trials)} of {planned} planned trials are stored")
    folder = experiment.results / experiment.name
    for path in build_report(trials, experiment.report, folder, "; ".join(notes)):
        print(_shown(path))


def stored_trials(experiment: Experiment) -> tuple[list[dict[str, Any]], int]:
    """The trials of this very plan that are stored, or stand in the export, and how many the plan has.

    Raises `UserError` if there are none.
    """
    store = Store(experiment.results, experiment.name)
    planned = make_plan(experiment).trial_ids
    trials = store.read_trials(planned)
    if not trials and (store.folder / EXPORT).exists():
        wanted = set(planned)
        trials = [trial for trial in load_export(store.folder / EXPORT) if trial["id"] in wanted]
    if not trials:
        raise UserError(
            f"{store.folder} holds no trial of this plan; run it first, with the same settings: "
            f"dpbench run experiment={experiment.name}"
        )
    return trials, len(planned)


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
