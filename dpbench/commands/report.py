"""`dpbench figures`: what the stored trials show."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dpbench.commands.recorded import recall
from dpbench.commands.stored import Stored, exported_ledgers, ledgers, stored_trials
from dpbench.config import Experiment, Paper, choices, compose, paper_of
from dpbench.config.registry import folder_of, read_yaml
from dpbench.data.load import is_public
from dpbench.errors import UserError
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.build import build_report
from dpbench.report.export import NAME, add_to_export
from dpbench.report.forked import forked
from dpbench.report.frames.ledgers import or_first
from dpbench.report.frames.results import Results
from dpbench.report.manifest import write_manifest
from dpbench.report.paper import build_paper


def figures(arguments: argparse.Namespace) -> int:
    """Draw the papers or the experiment that the settings name, or all experiments and papers that have results."""
    recall(arguments)
    config_dir: Path | None = arguments.config_dir
    papers, overrides = papers_of(arguments.overrides)
    single = any(item.startswith(("experiment=", "name=")) for item in overrides)
    if papers and single:
        raise UserError("give either paper=... or an experiment; a paper draws its own experiments")
    if single:
        experiment = compose(overrides, config_dir)
        found = stored_trials(experiment, config_dir, other_code=arguments.other_code)
        if not found.trials:
            raise UserError(_no_trial(experiment))
        _draw(experiment, found)
    elif not papers:
        papers = _draw_all(overrides, config_dir, arguments.other_code)
    for name in papers:
        _draw_paper(paper_of(name, config_dir), overrides, config_dir, arguments.other_code)
    return 0


def papers_of(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """The papers that settings name, and the other settings.

    >>> papers_of(["paper=binagg", "repetitions=3"])
    (['binagg'], ['repetitions=3'])
    """
    papers = [item.removeprefix("paper=") for item in overrides if item.startswith("paper=")]
    return papers, [item for item in overrides if not item.startswith("paper=")]


def _draw_all(overrides: Sequence[str], config_dir: Path | None, other_code: bool) -> list[str]:
    """Draw every experiment that has results; the papers that have any."""
    root = compose(overrides, config_dir).results
    known = choices("experiment", config_dir) if root.is_dir() else {}
    exported = {
        name for name, path in known.items() if any((root / one / NAME).exists() for one in (name, folder_of(path)))
    }
    # an experiment is named as its file is, or by the file
    folders = {name: root / str(read_yaml(path).get("name", name)) / "trials" for name, path in known.items()}
    drawn = [name for name in known if name in exported or folders[name].is_dir()]
    if not drawn:
        raise UserError("no experiment has results yet; dpbench run experiment=quickstart makes some")
    for name in drawn:
        experiment = compose([*overrides, f"experiment={name}"], config_dir)
        found = stored_trials(experiment, config_dir, other_code=other_code)
        if found.trials:
            _draw(experiment, found)
        else:
            print(f"{name} is not drawn: {_no_trial(experiment)}")
    return [name for name in choices("paper", config_dir) if set(drawn) & set(_experiments(name, config_dir))]


def _experiments(paper: str, config_dir: Path | None) -> list[str]:
    """Those that the figures of a paper name, and the others in its folder."""
    found = {name for name, path in choices("experiment", config_dir).items() if folder_of(path) == f"{paper}/"}
    return sorted({*paper_of(paper, config_dir).experiments, *found})


def _no_trial(experiment: Experiment) -> str:
    folder = experiment.results / experiment.name
    held = f"; `dpbench figures {folder}` draws the run that it holds, if its table and its domain file did not change"
    other = held if (folder / "trials").is_dir() else ""
    return f"{folder} holds no trial of this plan; run it first: dpbench run with the same settings{other}"


def _draw(experiment: Experiment, found: Stored) -> None:
    results = Results(experiment, found.trials, notes_of(experiment, found))
    folder = experiment.results / experiment.name
    ledger_of = ledgers(Store(experiment.results, experiment.name))
    at_hand = or_first(ledger_of, exported_ledgers([experiment], experiment.config_dir))
    calls: list[Callable[[], list[Path]]] = [
        partial(build_report, results, folder, ledger_of=at_hand, others=found.others)
    ]
    if found.stored:
        calls.append(lambda: [add_to_export(found.trials[: found.stored], folder, ledger_of)])
    paths = list(chain(*forked(calls)))
    _print(paths)
    _print_not_drawn(experiment.report, paths, "no stored trial has its metric; report.figures names others")
    if exported := len(found.trials) - found.stored:
        print(f"{exported:,} of the {len(found.trials):,} trials drawn are those of an export")
        if not found.stored and (folder / "trials").is_dir():
            print(f"{folder} holds a run with other settings: `dpbench figures {folder}` draws it")


def _draw_paper(paper: Paper, overrides: Sequence[str], config_dir: Path | None, other_code: bool) -> None:
    """The figures, tables and manifest of a paper, in the folder of its name; its export if trials are newly stored."""
    root = compose(overrides, config_dir).results
    folder = root / paper.name
    results, stored = results_of(paper, overrides, config_dir, other_code)
    paths = build_paper(paper, results, folder)
    if any(one.trials for one in results):
        paths.append(write_manifest(paper, results, folder))
    if stored:
        paths.append(add_to_export(stored, folder, ledgers(Store(root, paper.name))))
    _print(paths)
    _print_not_drawn(paper.report, paths, "none of its experiments has results for it with these settings")


def results_of(
    paper: Paper, overrides: Sequence[str], config_dir: Path | None, other_code: bool
) -> tuple[list[Results], list[Trial]]:
    """What there is of every experiment of a paper, and the trials of it that are stored, not exported."""
    results, stored = [], list[Trial]()
    lines = ([*overrides, f"experiment={name}"] for name in _experiments(paper.name, config_dir))
    for experiment in forked([partial(compose, line, config_dir) for line in lines]):
        found = stored_trials(experiment, config_dir, paper=paper.name, other_code=other_code)
        results.append(Results(experiment, found.trials, notes_of(experiment, found)))
        stored += found.trials[: found.stored] if found.stored else []
    return results, stored


def _print_not_drawn(report: Mapping[str, Any], paths: Iterable[Path], why: str) -> None:
    stems = {path.stem for path in paths}
    for name in (str(spec["name"]) for spec in report["figures"]):
        if name not in stems:
            print(f"{name} is not drawn: {why}")


def notes_of(experiment: Experiment, found: Stored) -> list[str]:
    """What a reader must know of the stored trials of a plan."""
    notes = list(experiment.reduced)
    if not all(is_public(grid.dataset) for grid in experiment.grids):
        notes.append("Scores compare with rows that are not public: they have no noise, and no budget protects them")
    if len(found.trials) < found.planned:
        notes.append(f"{len(found.trials)} of {found.planned} planned trials are stored")
    if found.other_code:
        notes.append(f"{found.other_code} trials are results of other code than is installed here (--other-code)")
    return notes


def _print(paths: Iterable[Path]) -> None:
    here = Path.cwd()
    for path in paths:
        print(path.relative_to(here) if path.is_relative_to(here) else path)
