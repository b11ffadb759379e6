"""The settings of a run, kept beside its plan: by its name or folder alone, a later command finds them again."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpbench.config import Experiment, choices, quoted
from dpbench.errors import UserError, unknown
from dpbench.grid.store import Store
from dpbench.report.export import NAME

FILE = "experiment.yaml"
FILES, QUOTES = ("dataset.path", "dataset.domain"), "'\""
ALONE = {"name", "results", "jobs", "executor", "shards", "report", "slurm"}  # settings that leave a run what it is


def record(experiment: Experiment, store: Store, arguments: argparse.Namespace) -> None:
    """Write the settings of the line, and the configuration that they make."""
    import yaml

    own = arguments.config_dir
    content = {
        "settings": [_from_anywhere(item) for item in arguments.overrides],
        "config_dir": None if own is None else str(own.resolve()),
        "configuration": dict(experiment.configuration),
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    store.write_text(store.folder / FILE, yaml.dump(content, Dumper=dumper, sort_keys=False))


def _from_anywhere(item: str) -> str:
    """A setting that names a file, with the whole path."""
    name, _, value = item.partition("=")
    return f"{name}={quoted(str(Path(value.strip(QUOTES)).resolve()))}" if name in FILES and value else item


def recall(arguments: argparse.Namespace) -> None:
    """Let the settings of a line that gives a run by its folder, or by its name and nothing else of it, be those of the
    run, with what else the line sets.

    A folder becomes the settings `results` and `name`; one that has an export alone, `results` and the paper or the
    experiment of its name. Raises `UserError` if there is none, or the record of the run cannot be read.
    """
    import yaml

    folders = [Path(item).resolve() for item in arguments.overrides if "=" not in item and item[:1] != "~"]
    given = dict(item.split("=", 1) for item in arguments.overrides if "=" in item)
    if len(folders) > 1 or (folders and given.keys() & {"name", "results", "experiment", "paper"}):
        raise UserError("give the folder of one run, without name, results and experiment, which it stands for")
    for folder in folders:
        given |= {"results": quoted(str(folder.parent)), **_named(folder, arguments.config_dir)}
    line = [f"{name}={value}" for name, value in given.items()] if folders else arguments.overrides
    root = folders[0].parent if folders else Path(given.get("results", "results").strip(QUOTES))
    path = root / given.get("name", "").strip(QUOTES) / FILE
    alone = {name.lstrip("+").partition(".")[0] for name in given} <= ALONE
    if "name" in given and (alone or folders) and path.is_file():
        try:
            stored = yaml.safe_load(path.read_text())
            kept = [item for item in stored["settings"] if item.split("=", 1)[0] not in given]
            own = stored["config_dir"]
        except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path} cannot be read ({error}); give the settings of the run again") from error
        line = [*kept, *line]
        arguments.config_dir = arguments.config_dir or (None if own is None else Path(own))
    arguments.overrides = line


def _named(folder: Path, config_dir: Path | None) -> dict[str, str]:
    """The setting that the folder's name is the value of. Raises `UserError` if nothing is stored in the folder."""
    if not any((folder / name).exists() for name in (FILE, NAME, "trials")):
        raise UserError(f"{folder} holds neither a run nor an export of trials ({NAME})")
    if (folder / FILE).is_file() or not (folder / NAME).is_file():
        return {"name": quoted(folder.name)}
    known = {group: choices(group, config_dir) for group in ("paper", "experiment")}
    for group, names in known.items():
        if folder.name in names:
            return {group: folder.name}
    raise unknown("paper or experiment", folder.name, [name for names in known.values() for name in names])
