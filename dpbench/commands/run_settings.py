"""The settings of a run, kept next to its plan: by its name or folder alone, a later command finds them again.

They can name code to import, a scheduler to work for, and lines of a script. So they are signed with the user's secret
salt: those that somebody else wrote are shown, and obeyed only if the user gives them again.
"""

from __future__ import annotations

import argparse
import hmac
import shlex
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from dpbench.config import Experiment, choices, quoted
from dpbench.data.dataset import Dataset
from dpbench.errors import UserError, bounded, unknown
from dpbench.files import for_owner_alone
from dpbench.grid.seeds import canonical, signature
from dpbench.grid.store import Store
from dpbench.report.export_file import FOLDER, NAME, exports_in

FILE = "experiment.yaml"
FILES, QUOTES = ("dataset.path", "dataset.domain"), "'\""
ALONE = {"name", "results", "jobs", "executor", "shards", "report", "slurm"}  # settings that leave a run what it is


def guard(datasets: Iterable[Dataset]) -> None:
    """Have nobody else read what this command writes, if not all of these data sets are public."""
    if not all(dataset.public for dataset in datasets):
        for_owner_alone()


def record(experiment: Experiment, store: Store, arguments: argparse.Namespace) -> None:
    """Write the settings of the line, signed if there is a salt to sign with, the configuration that they make, and
    which protocol that follows.
    """
    import yaml

    own = None if arguments.config_dir is None else str(arguments.config_dir.resolve())
    settings = [_from_anywhere(item) for item in arguments.overrides]
    content = {"settings": settings, "config_dir": own, "configuration": dict(experiment.configuration)}
    content["follows"] = experiment.follows
    with suppress(UserError):
        content["signed"] = _signature(settings, own)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    store.write_text(store.folder / FILE, yaml.dump(content, Dumper=dumper, sort_keys=False))


def _from_anywhere(item: str) -> str:
    """A setting that names a file, with the whole path."""
    name, _, value = item.partition("=")
    return f"{name}={quoted(str(Path(value.strip(QUOTES)).resolve()))}" if name in FILES and value else item


def _signature(settings: Sequence[str], config_dir: str | None) -> str:
    return signature("experiment", canonical([*settings, config_dir]))


def recall(arguments: argparse.Namespace, *, settings: bool = True) -> None:
    """Let the settings of a line that gives a run by its folder, or by its name and nothing else of it, be those of the
    run, with what else the line sets.

    A folder becomes the settings `results` and `name`; one that has an export alone, `results` and the paper or the
    experiment of its name. Without `settings`, those of the run stay where they are.

    Raises `UserError` if there is none, or the record of the run cannot be read, or is not this user's.
    """
    folders = [Path(item).resolve() for item in arguments.overrides if "=" not in item and item[:1] != "~"]
    given = dict(item.split("=", 1) for item in arguments.overrides if "=" in item)
    if len(folders) > 1 or (folders and given.keys() & {"name", "results", "experiment", "paper"}):
        raise UserError("give the folder of one run, without name, results, experiment and paper: it determines them")
    for folder in folders:
        given |= {"results": quoted(str(folder.parent)), **_named(folder, arguments.config_dir)}
    line = [f"{name}={value}" for name, value in given.items()] if folders else arguments.overrides
    root = folders[0].parent if folders else Path(given.get("results", "results").strip(QUOTES))
    path = root / given.get("name", "").strip(QUOTES) / FILE
    alone = {name.lstrip("+").partition(".")[0] for name in given} <= ALONE
    if settings and "name" in given and (alone or folders) and path.is_file():
        kept, arguments.config_dir = _recorded(path, given, arguments.config_dir)
        line = [*kept, *line]
    arguments.overrides = line


def check_asked(arguments: argparse.Namespace, verb: str = "run") -> None:
    """`UserError` for a line that names nothing: the defaults of all settings are a grid that nobody means."""
    names = {item.lstrip("+~").partition("=")[0].partition(".")[0] for item in arguments.overrides}
    if names <= ALONE:
        example = "dataset=adult_synth mechanism=[exact,adassp] epsilon=[0.1,1]"
        raise UserError(
            f"say what to {verb}: an experiment, such as experiment=quickstart (dpbench list experiments has all), a "
            f"grid of your own, such as {example}, or the folder of an earlier run; "
            "dpbench run --show gives the defaults"
        )


def _recorded(path: Path, given: Collection[str], config_dir: Path | None) -> tuple[list[str], Path | None]:
    """The settings of a run that are not given, and its --config-dir if none is.

    Raises `UserError` for a record that cannot be read, or says more than is given and was not written by this user.
    """
    import yaml

    try:
        stored = yaml.safe_load(path.read_text())
        settings, own, signed = stored["settings"], stored["config_dir"], stored.get("signed", "")
        kept = [item for item in settings if item.split("=", 1)[0] not in given]
        genuine = hmac.compare_digest(signed, _signature(settings, own))
        found = config_dir or (None if own is None else Path(own))
    except (OSError, ValueError, yaml.YAMLError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} cannot be read ({error}); give the settings of the run again") from error
    if not genuine and (kept or found != config_dir):
        line = shlex.join([*kept, *([] if found == config_dir else ["--config-dir", str(own)])])
        raise UserError(
            f"{path} is not signed with your secret salt: an earlier version, another machine or somebody else wrote "
            f"it, and its settings may run code. Give those that you trust: {bounded(line)}"
        )
    return kept, found


def _named(folder: Path, config_dir: Path | None) -> dict[str, str]:
    """The setting that the folder's name is the value of. Raises `UserError` if nothing is stored in the folder."""
    exported, run = bool(exports_in(folder)), (folder / FILE).exists() or (folder / "trials").exists()
    if not (exported or run):
        raise UserError(f"{folder} holds neither a run nor an export of trials ({NAME}, or a folder {FOLDER})")
    if (folder / FILE).is_file() or not exported:
        return {"name": quoted(folder.name)}
    known = {group: choices(group, config_dir) for group in ("paper", "experiment")}
    for group, names in known.items():
        if folder.name in names:
            return {group: folder.name}
    raise unknown("paper or experiment", folder.name, [name for names in known.values() for name in names])
