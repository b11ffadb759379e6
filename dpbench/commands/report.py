"""`dpbench status` and `dpbench figures`: what is stored, and what it shows."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbench.commands.stored import Stored, stored_trials
from dpbench.config import Experiment, Paper, choices, compose, composed, paper_of
from dpbench.errors import UserError
from dpbench.grid.other_code import of_other_code
from dpbench.grid.plan import read_plan
from dpbench.grid.store import Store
from dpbench.report.build import build_report, export_in
from dpbench.report.frame import mixed_code
from dpbench.report.paper import build_paper
from dpbench.report.results import Results


def status(arguments: argparse.Namespace) -> int:
    """Print, for each experiment of the results folder, the trials planned by its last run, stored and failed.

    Trials that are missing, but stored as results of other code, are told apart.
    """
    root = compose(arguments.overrides, arguments.config_dir).results
    plans = sorted(root.glob("*/plan.jsonl"))
    if not plans:
        print(f"nothing was run in {root} yet")
    for path in plans:
        plan = read_plan(path)
        store = Store(root, plan.name)
        trials = store.read_trials(plan.trial_ids)
        counts = Counter(trial["status"] for trial in trials)
        states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none stored"
        left = len(plan.trial_ids) - len(trials)
        print(f"{plan.name}: {len(plan.trial_ids)} trials planned (limits {plan.limits}), {states}, {left} left")
        if other := of_other_code(plan, store):
            print(f"  {len(other)} of those left are stored as results of other code; --other-code accepts them")
    return 0


def figures(arguments: argparse.Namespace) -> int:
    """Draw the papers or the experiment that the settings name, or all experiments and papers that have results."""
    config_dir: Path | None = arguments.config_dir
    papers = [item.removeprefix("paper=") for item in arguments.overrides if item.startswith("paper=")]
    overrides = [item for item in arguments.overrides if not item.startswith("paper=")]
    single = any(item.startswith(("experiment=", "name=")) for item in overrides)
    if papers and single:
        raise UserError("give either paper=... or an experiment; a paper draws its own experiments")
    if single:
        _draw(compose(overrides, config_dir), arguments.other_code)
    elif not papers:
        papers = _draw_all(overrides, config_dir, arguments.other_code)
    for name in papers:
        _draw_paper(paper_of(name, config_dir), overrides, config_dir, arguments.other_code)
    return 0


def _draw_all(overrides: Sequence[str], config_dir: Path | None, other_code: bool) -> list[str]:
    """Draw every experiment that has results; the papers that have any."""
    root = compose(overrides, config_dir).results
    known = choices("experiment", config_dir) if root.is_dir() else {}
    drawn = [name for name in known if _has_results(name, overrides, config_dir)]
    if not drawn:
        raise UserError("no experiment has results yet; dpbench run experiment=quickstart makes some")
    for name in drawn:
        _draw(compose([*overrides, f"experiment={name}"], config_dir), other_code)
    return [name for name in choices("paper", config_dir) if set(drawn) & set(paper_of(name, config_dir).experiments)]


def _has_results(name: str, overrides: Sequence[str], config_dir: Path | None) -> bool:
    config = composed([*overrides, f"experiment={name}"], config_dir)
    folder = Path(str(config["results"])) / str(config["name"])
    return export_in(folder) is not None or (folder / "trials").is_dir()


def _draw(experiment: Experiment, other_code: bool) -> None:
    found = stored_trials(experiment, other_code=other_code)
    if not found.trials:
        raise UserError(
            f"{experiment.results / experiment.name} holds no trial of this plan; run it first, with the same "
            f"settings: dpbench run experiment={experiment.name}"
        )
    notes = "; ".join(_notes(experiment, found))
    paths = build_report(found.trials, experiment.report, experiment.results / experiment.name, notes)
    _print(paths)
    _print_not_drawn(experiment.report, paths, "no stored trial has its metric")


def _draw_paper(paper: Paper, overrides: Sequence[str], config_dir: Path | None, other_code: bool) -> None:
    """The figures and tables of a paper, in the folder of its name beside those of its experiments."""
    results = []
    for name in paper.experiments:
        experiment = compose([*overrides, f"experiment={name}"], config_dir)
        found = stored_trials(experiment, other_code=other_code)
        results.append(Results(experiment, found.trials, _notes(experiment, found)))
    paths = build_paper(paper, results, compose(overrides, config_dir).results / paper.name)
    _print(paths)
    _print_not_drawn(paper.report, paths, "none of its experiments has results for it with these settings")


def _print_not_drawn(report: Mapping[str, Any], paths: Iterable[Path], why: str) -> None:
    stems = {path.stem for path in paths}
    for name in (str(spec["name"]) for spec in report["figures"]):
        if name not in stems:
            print(f"{name} is not drawn: {why}")


def _notes(experiment: Experiment, found: Stored) -> list[str]:
    """What a reader must know of the stored trials of a plan."""
    notes = [] if experiment.limits.name == "full" else [f"limits: {experiment.limits.name}"]
    if len(found.trials) < found.planned:
        notes.append(f"{len(found.trials)} of {found.planned} planned trials are stored")
    if found.other_code:
        notes.append(f"{found.other_code} trials are results of other code than is installed here (--other-code)")
    if mixed := mixed_code(found.trials):
        notes.append(f"more than one version of the code made the results of {', '.join(mixed)}")
    return notes


def _print(paths: Iterable[Path]) -> None:
    for path in paths:
        print(_shown(path))


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
