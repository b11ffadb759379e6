"""`dpbench figures` draws what is stored, `dpbench report` writes it into one HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

import pandas as pd

from dpbench.commands.run_settings import guard, recall
from dpbench.commands.stored_trials import Stored, exported_ledgers, ledgers, stored_trials
from dpbench.config import Experiment, Paper, choices, compose, paper_of
from dpbench.config.registry import folder_of, read_yaml
from dpbench.config.specs import Report
from dpbench.errors import UserError
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.build import build_report
from dpbench.report.export_file import FOLDER, SUFFIX, add_to_export, exports_in
from dpbench.report.frames.ledgers import no_ledgers, or_first
from dpbench.report.frames.results import Results
from dpbench.report.paper import start_paper, write_manifest
from dpbench.report.parallel import in_processes, started
from dpbench.report.picture.picture import Picture
from dpbench.report.picture.save import Save, check_width, save_figure, save_for_article

Read = Mapping[str, tuple[Experiment, Stored]]  # experiments, by the names of their files, with what there is of them


@contextmanager
def _python_texts() -> Iterator[None]:
    """Arrow's texts are slow in many small frames."""
    with pd.option_context("mode.string_storage", "python"):
        yield


@_python_texts()
def figures(arguments: argparse.Namespace) -> int:
    """Draw the papers or the experiment that the settings name, or what `_draw_all` finds."""
    recall(arguments)
    config_dir: Path | None = arguments.config_dir
    if arguments.width is not None:
        check_width(arguments.width)
    save = partial(_save, pdf=arguments.pdf, width=arguments.width)
    papers, overrides = papers_of(arguments.overrides)
    single = any(item.startswith(("experiment=", "name=")) for item in overrides)
    if papers and single:
        raise UserError("give either paper=... or an experiment; a paper draws its own experiments")
    if single:
        experiment = compose(overrides, config_dir)
        found = stored_trials(experiment, config_dir, other_code=arguments.other_code)
        if not found.trials:
            raise UserError(no_trial(experiment))
        _draw([(experiment, found)], save)
    elif not papers:
        _draw_all(overrides, config_dir, arguments.other_code, save)
    for name in papers:
        _draw_paper(paper_of(name, config_dir), overrides, config_dir, arguments.other_code, save)()
    return 0


def _save(picture: Picture, folder: Path, name: str, *, pdf: bool, width: float | None) -> list[Path]:
    paths = save_figure(picture, folder, name, pdf=pdf)
    return paths if width is None else [*paths, *save_for_article(picture, folder, name, width)]


def papers_of(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """The papers that settings name, and the other settings.

    >>> papers_of(["paper=binagg", "repetitions=3"])
    (['binagg'], ['repetitions=3'])
    """
    papers = [item.removeprefix("paper=") for item in overrides if item.startswith("paper=")]
    return papers, [item for item in overrides if not item.startswith("paper=")]


def _draw_all(overrides: Sequence[str], config_dir: Path | None, other_code: bool, save: Save) -> None:
    """Draw the papers that have results, each after its experiments that were run here: what is known of the others
    from the export of their paper alone is drawn in its folder.

    While the first paper is read the experiments of the others are composed, and while a paper is drawn the next one is
    read.
    """
    root = compose(overrides, config_dir).results
    known = choices("experiment", config_dir) if root.is_dir() else {}
    # an experiment is named as its file is, or by the file
    folders = {name: root / str(read_yaml(path).get("name", name)) for name, path in known.items()}
    drawn = {name for name, folder in folders.items() if (folder / "trials").is_dir() or exports_in(folder)}
    papers = [
        name
        for name in choices("paper", config_dir)
        if exports_in(root / name) or drawn & set(_experiments(name, config_dir))
    ]
    if not drawn and not papers:
        raise UserError("no experiment has results yet; dpbench run experiment=quickstart makes some")
    asked = [name for name in known if name in drawn or folder_of(known[name]).rstrip("/") in papers]
    groups = [(folder, [*names]) for folder, names in groupby(asked, key=lambda name: folder_of(known[name]))]
    first = len(groups[0][1]) if groups else 0
    made = _composed(asked[:first], overrides, config_dir)
    others = _start_composing(asked[first:], overrides, config_dir)
    finish: Callable[[], None] | None = None
    for folder, names in groups:
        made = made if names[0] in made else others()
        read = _read({name: made[name] for name in names}, config_dir, other_code)
        own = [read[name] for name in read if name in drawn]
        for experiment, found in own:
            if not found.trials:
                print(f"{experiment.name} is not drawn: {no_trial(experiment)}")
        _draw([(experiment, found) for experiment, found in own if found.trials], save)
        if (paper := folder.rstrip("/")) in papers:
            papers.remove(paper)
            finish = _draw_paper(paper_of(paper, config_dir), overrides, config_dir, other_code, save, read, finish)
    for paper in papers:
        finish = _draw_paper(paper_of(paper, config_dir), overrides, config_dir, other_code, save, before=finish)
    if finish is not None:
        finish()


def _composed(names: Sequence[str], overrides: Sequence[str], config_dir: Path | None) -> dict[str, Experiment]:
    """The experiments of these names."""
    return _start_composing(names, overrides, config_dir)()


def _start_composing(
    names: Sequence[str], overrides: Sequence[str], config_dir: Path | None
) -> Callable[[], dict[str, Experiment]]:
    """Start what `_composed` does; its experiments, waited for when they are asked for."""
    made = started([partial(compose, [*overrides, f"experiment={name}"], config_dir) for name in names])
    return lambda: dict(zip(names, made(), strict=True))


def _read(made: Mapping[str, Experiment], config_dir: Path | None, other_code: bool, paper: str = "") -> Read:
    """What there is of these experiments."""
    return {
        name: (one, stored_trials(one, config_dir, paper=paper, other_code=other_code)) for name, one in made.items()
    }


def _experiments(paper: str, config_dir: Path | None) -> list[str]:
    """Those that the figures of a paper name, and the others in its folder."""
    found = {name for name, path in choices("experiment", config_dir).items() if folder_of(path) == f"{paper}/"}
    return sorted({*paper_of(paper, config_dir).experiments, *found})


def no_trial(experiment: Experiment) -> str:
    """What to say of an experiment of which nothing is stored or exported."""
    folder = experiment.results / experiment.name
    held = f"; `dpbench figures {folder}` draws the run that it holds, if its table and its domain file did not change"
    other = held if (folder / "trials").is_dir() else ""
    return f"{folder} holds no trial of this plan; run it first: dpbench run with the same settings{other}"


def _draw(read: Sequence[tuple[Experiment, Stored]], save: Save) -> None:
    """Draw some experiments in their folders, and write the exports of what is stored of them."""
    guard(grid.dataset for experiment, _ in read for grid in experiment.grids)
    calls: list[Callable[[], tuple[str, list[Path]]]] = []
    for experiment, found in sorted(read, key=lambda one: len(one[1].trials), reverse=True):  # the longest first
        calls += [partial(_build, experiment, found, save)] + [partial(_export, experiment, found)] * bool(found.stored)
    made: dict[str, list[Path]] = {}
    for name, paths in in_processes(calls):
        made.setdefault(name, []).extend(paths)
    for experiment, found in read:
        paths, folder = made[experiment.name], experiment.results / experiment.name
        _print(paths)
        _print_not_drawn(experiment.report, paths, "no stored trial has its metric; report.figures names others")
        if exported := len(found.trials) - found.stored:
            print(f"{exported:,} of the {len(found.trials):,} trials drawn are those of an export")
            if not found.stored and (folder / "trials").is_dir():
                print(f"{folder} holds a run with other settings: `dpbench figures {folder}` draws it")


def _build(experiment: Experiment, found: Stored, save: Save) -> tuple[str, list[Path]]:
    """The figures and tables of an experiment; its name, and their paths."""
    results = _results(experiment, found)
    ledger_of = ledgers(Store(experiment.results, experiment.name))
    at_hand = or_first(ledger_of, exported_ledgers([experiment], experiment.config_dir))
    folder = experiment.results / experiment.name
    return experiment.name, build_report(results, folder, save, at_hand, found.others)


def _export(experiment: Experiment, found: Stored) -> tuple[str, list[Path]]:
    """The export of what is stored of an experiment; its name, and the path."""
    ledger_of = ledgers(Store(experiment.results, experiment.name))
    folder = experiment.results / experiment.name
    return experiment.name, [add_to_export(found.trials[: found.stored], folder, ledger_of)]


def _draw_paper(
    paper: Paper,
    overrides: Sequence[str],
    config_dir: Path | None,
    other_code: bool,
    save: Save,
    known: Read | None = None,
    before: Callable[[], None] | None = None,
) -> Callable[[], None]:
    """The figures, tables and manifest of a paper, in the folder of its name; the exports of experiments of which
    trials are stored. `known`: experiments that are read. They are drawn after `before`, by other processes where
    there are any; what is returned waits for them, and prints what was written.
    """
    root = compose(overrides, config_dir).results
    folder = root / paper.name
    results, stored = results_of(paper, overrides, config_dir, other_code, known)
    for one in results:
        one.prepare()
    if before is not None:
        before()
    drawn = start_paper(paper, results, folder, save)
    others = [write_manifest(paper, results, folder)] if any(one.trials for one in results) else []
    ledger_of = ledgers(Store(root, paper.name)) if stored else no_ledgers
    for name, own in stored.items():
        details = name not in paper.report["without_details"]
        others += [add_to_export(own, folder / FOLDER, ledger_of, name + SUFFIX, details=details)]

    def finish() -> None:
        paths = [*drawn(), *others]
        _print(paths)
        _print_not_drawn(paper.report, paths, "none of its experiments has results for it with these settings")

    return finish


def results_of(
    paper: Paper,
    overrides: Sequence[str],
    config_dir: Path | None,
    other_code: bool,
    known: Read | None = None,
    only: Sequence[str] | None = None,
) -> tuple[list[Results], dict[str, Sequence[Trial]]]:
    """What there is of every experiment of a paper (or of these `only`), some of which are `known`; and by experiment
    the trials that are stored, not exported.
    """
    names, read = _experiments(paper.name, config_dir) if only is None else only, known or {}
    others = [name for name in names if name not in read]
    read = {**read, **_read(_composed(others, overrides, config_dir), config_dir, other_code, paper.name)}
    results, stored = [], dict[str, Sequence[Trial]]()
    for experiment, found in (read[name] for name in names):
        results.append(_results(experiment, found))
        stored |= {experiment.name: found.trials[: found.stored]} if found.stored else {}
    return results, stored


def _print_not_drawn(report: Report, paths: Iterable[Path], why: str) -> None:
    stems = {path.stem for path in paths}
    for name in (str(spec["name"]) for spec in report["figures"]):
        if name not in stems:
            print(f"{name} is not drawn: {why}")


def _results(experiment: Experiment, found: Stored) -> Results:
    """An experiment by itself, with the protocol that it follows among the notes."""
    return Results(experiment, found.trials, [*experiment.follows, *notes_of(experiment, found)])


def notes_of(experiment: Experiment, found: Stored) -> list[str]:
    """What a reader must know of the stored trials of a plan."""
    notes = list(experiment.reduced)
    if not all(grid.dataset.public for grid in experiment.grids):
        notes.append("Scores compare with rows that are not public: they have no noise, and no budget protects them")
    if len(found.trials) < found.planned:
        notes.append(f"{len(found.trials)} of {found.planned} planned trials are stored")
    if found.other_code:
        notes.append(f"{found.other_code} trials are by other versions of the code than today's (--other-code)")
    return notes


def _print(paths: Iterable[Path]) -> None:
    here = Path.cwd()
    for path in paths:
        print(path.relative_to(here) if path.is_relative_to(here) else path)


@_python_texts()
def report(arguments: argparse.Namespace) -> int:
    """Write the page of the paper or the experiment that the settings name."""
    from dpbench.report.page.page import write_experiment_page, write_paper_page

    recall(arguments)
    papers, overrides = papers_of(arguments.overrides)
    single = any(item.startswith(("experiment=", "name=")) for item in overrides)
    if len(papers) + single != 1:
        raise UserError(
            "give one of paper=..., experiment=..., name=... and the folder of a paper or a run (see dpbench list)"
        )
    config_dir: Path | None = arguments.config_dir
    experiment = compose(overrides, config_dir)
    guard(grid.dataset for grid in experiment.grids)
    ledger_of = ledgers(Store(experiment.results, experiment.name))
    if papers:
        paper = paper_of(papers[0], config_dir)
        results, _ = results_of(paper, overrides, config_dir, arguments.other_code)
        kept = exported_ledgers((one.experiment for one in results), config_dir, paper.name)
        path = write_paper_page(paper, results, experiment.results / paper.name, ledger_of, kept)
    else:
        found = stored_trials(experiment, config_dir, other_code=arguments.other_code)
        one = _results(experiment, found)
        kept = exported_ledgers([experiment], config_dir)
        path = write_experiment_page(one, experiment.results / experiment.name, ledger_of, kept)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    print(f"{shown} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0
