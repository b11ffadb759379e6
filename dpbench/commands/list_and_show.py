"""`dpbench list` and `dpbench show`: what the config folders hold."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path

from dpbench.config import choices, compose, composed, paper_of, part_of
from dpbench.config.catalogue import catalogue
from dpbench.config.composition import hydra_text
from dpbench.config.registry import PARTS, experiments_of, folder_of
from dpbench.config.reports import GROUPS, kind_of, kinds
from dpbench.config.specs import Report
from dpbench.data.dataset import Dataset
from dpbench.data.load import card
from dpbench.errors import UserError, check_known
from dpbench.grid.versions import versions_of

LISTED = ("paper", "task", "privacy")  # facts that a listing shows


def listing(arguments: argparse.Namespace) -> int:
    """Print the names of a group, each with some facts and the first comment or the title of its config."""
    group = arguments.group if arguments.group in ("limits", "as") else arguments.group.removesuffix("s")
    entries = catalogue(group, arguments.config_dir)
    rows = [(one.name, *(value for fact, value in one.facts.items() if fact in LISTED), one.about) for one in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True) if width).rstrip())
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Print what each config that the settings name is: of a part its docstring and parameters, of an experiment what
    runs, of a paper what is drawn.
    """
    named = [item.lstrip("+").split("=", 1) for item in arguments.overrides if "=" in item]
    if not named:
        raise UserError(f"say what to show, such as dpbench show mechanism=aim (or {', '.join(list(SHOWN)[1:])})")
    for group, names in named:
        check_known("setting to show", group, SHOWN)
        for name in names.strip("[]").split(","):
            SHOWN[group](group, name, arguments.config_dir)
    return 0


def _show_part(group: str, name: str, config_dir: Path | None) -> None:
    part = part_of(group, name, config_dir)
    (version,) = versions_of([part]).values()
    print(f"{group} {name}  ({part.target}, version {version})\n")
    print(inspect.getdoc(part.function) or "")
    reads = f"reads {' or '.join(part.needs)}" if part.needs else ""
    offers = f"offers {', '.join(part.offers)}" if part.offers else ""
    proves = f"private under {' and '.join(part.relations)}" if part.relations and part.private else ""
    print("\n" + ", ".join(filter(None, [offers, proves, reads])) if offers or reads else "")
    for parameter, value in part.parameters.items():
        print(f"  {group}.{name}.{parameter}={'null' if value is None else value}")
    if group == "mechanism" and part.takes("calibration") and "calibration" not in part.parameters:
        print(f"  calibration=[{','.join(part.calibrations)}] is an axis of the grid")


def _show_kind(group: str, name: str, config_dir: Path | None) -> None:
    known = {found.name: found for found in kinds().values() if found.group == group}
    check_known(group, name, known)
    kind = known[name]
    print(f"{group} {name}  ({kind.target})\n")
    print(inspect.getdoc(kind.function) or "")
    for verb, keys in (("needs", kind.required), ("may have", kind.optional)):
        if keys:
            print(f"\na spec {verb} " + ", ".join(f"{key} ({one.replace('|', 'or')})" for key, one in keys.items()))


def _show_dataset(group: str, name: str, config_dir: Path | None) -> None:
    print(card(Dataset.of(composed([f"{group}={name}"], config_dir)[group])))


def _show_experiment(group: str, name: str, config_dir: Path | None) -> None:
    experiment = compose([f"{group}={name}"], config_dir)
    known = choices(group, config_dir)
    paper = folder_of(known[name]).rstrip("/") if name in known else ""
    print(f"{group} {name}{f'  ({paper})' if paper else ''}\n\n{experiment.title}\n")
    datasets = dict.fromkeys(grid.dataset.name for grid in experiment.grids)
    print(f"  dataset={', '.join(datasets)}")
    for part in PARTS:
        names = dict.fromkeys(one.name for grid in experiment.grids for one in getattr(grid, f"{part}s"))
        print(f"  {part}=[{','.join(names)}]")
    epsilons = dict.fromkeys(f"{epsilon:g}" for grid in experiment.grids for epsilon in grid.epsilons)
    print(f"  epsilon=[{','.join(epsilons)}]")
    own = {one.name: experiment.repetitions_of(one.name) for one in experiment.mechanisms}
    own = {name: number for name, number in own.items() if number != experiment.repetitions}
    repetitions = {**own, "others": experiment.repetitions} if own else experiment.repetitions
    print(f"  relation={experiment.relation}\n  repetitions={hydra_text(repetitions)}")
    for setting, values in (experiment.configuration.get("sweep") or {}).items():
        print(f"  over {setting}: {', '.join(map(str, values))}")
    _print_figures(experiment.report)
    print(f"\ndpbench run {group}={name} --dry-run says how much there is to run, --show gives all settings")


def _show_paper(group: str, name: str, config_dir: Path | None) -> None:
    paper = paper_of(name, config_dir)
    print(f"{group} {name}\n\n{paper.title}\n")
    print(f"  experiments: {', '.join(dict.fromkeys([*paper.experiments, *experiments_of(name, config_dir)]))}")
    _print_figures(paper.report)
    print(f"\ndpbench figures {group}={name} draws them from what is stored; dpbench run experiment=... runs one")


def _print_figures(report: Report) -> None:
    for spec in report["figures"]:
        print(f"  {kind_of(spec).group} {spec['name']}{': ' if spec.get('title') else ''}{spec.get('title', '')}")


def _show_file(group: str, name: str, config_dir: Path | None) -> None:
    """Of settings without a function there is nothing to say but what they set."""
    known = choices(group, config_dir)
    check_known(group, name, known)
    print(known[name].read_text(encoding="utf-8", errors="replace"), end="")


SHOWN: dict[str, Callable[[str, str, Path | None], None]] = {
    **dict.fromkeys(PARTS, _show_part),
    **dict.fromkeys(GROUPS, _show_kind),
    "dataset": _show_dataset,
    "experiment": _show_experiment,
    "paper": _show_paper,
    **dict.fromkeys(("sample", "limits", "as"), _show_file),
}
