"""The config files: those of the project, and over them those of the user's own folder."""

from __future__ import annotations

import pickle
from functools import cache, lru_cache
from pathlib import Path

from dpbench.config.values import DEEPEST, MOST_VALUES
from dpbench.errors import UserError, bounded
from dpbench.files import Json, Node
from dpbench.resources import conf_dir

PARTS = ("mechanism", "model", "metric")  # groups whose configs name functions, of which a grid has several
NAMED = ("dataset", "experiment")  # groups whose configs have a name, under which their results are kept
LARGEST = 2**20  # bytes of a config file


def choices(group: str, config_dir: Path | None = None) -> dict[str, Path]:
    """The configs of a group, by name; those of `config_dir` come over the project's.

    Experiments may stand in folders, by paper; one whose name begins with "_" is a base of others and not listed.
    """
    return _shipped(group) | (_configs(config_dir, group) if config_dir else {})


@cache
def _shipped(group: str) -> dict[str, Path]:
    return _configs(conf_dir(), group)


def _configs(folder: Path, group: str) -> dict[str, Path]:
    patterns = ("[!_]*.yaml", "*/[!_]*.yaml") if group == "experiment" else ("*.yaml",)
    return {path.stem: path for one in patterns for path in sorted((folder / group).glob(one))}


def folder_of(experiment: Path) -> str:
    """The folder of an experiment's file below conf/experiment, such as "dd_ssp/"; empty if it is in none."""
    return "" if experiment.parent.name == "experiment" else f"{experiment.parent.name}/"


def experiments_of(folder: str, config_dir: Path | None = None) -> list[str]:
    """The experiments whose files are in this folder below conf/experiment, such as "dd_ssp"; none if there is none."""
    found = choices("experiment", config_dir)
    return sorted(name for name, path in found.items() if folder_of(path) == f"{folder}/")


def declared(group: str, config_dir: Path | None = None) -> dict[str, Node]:
    """What the configs of a group of parts or kinds say, by name, before Hydra fills in their interpolations."""
    found = {name: read_yaml(path).get(name) for name, path in choices(group, config_dir).items()}
    return {name: node for name, node in found.items() if isinstance(node, dict)}


def read_yaml(path: Path) -> Json:
    """The mapping in a YAML file. Raises `UserError`, which names file and line, if it holds none."""
    import yaml

    if conf_dir() not in path.parents:  # the project's own are known
        check_file(path)
    try:
        found = pickle.loads(_loaded(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise yaml_error(error, path) from error
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a mapping (name: value), not {type(found).__name__}")
    return found


@lru_cache(2000)
def _loaded(text: str) -> bytes:
    """What YAML says, pickled: of the same text each reader gets a copy of its own."""
    import yaml

    return pickle.dumps(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def yaml_error(error: Exception, path: Path | None = None) -> UserError:
    """What is wrong with a YAML file in one line, with file, line and column."""
    mark = getattr(error, "problem_mark", None)
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    name = path or (mark.name if mark else "a config file")
    if isinstance(error, RecursionError):
        return UserError(f"{name} is nested too deep")
    text = getattr(error, "problem", None) or " ".join(str(error).split())
    return UserError(bounded(f"{name}{place}: {str(text)[:300]}"))


def check_own_files(folder: Path) -> None:
    """`UserError` for a config file in the user's folder that is too large or too deep, or that would run as another
    one, of which it is a copy; and for a folder that cannot be read.
    """
    try:
        paths = [path for pattern in ("*.yaml", "*/*.yaml", "*/*/*.yaml") for path in sorted(folder.glob(pattern))]
    except OSError as error:
        raise UserError(f"--config-dir {folder} cannot be read: {error.filename}: {error.strerror}") from error
    for path in paths:
        check_file(path)
        group = path.relative_to(folder).parts[0]
        if group in PARTS:
            _check_key(path)
        elif group in NAMED:
            _check_name(path, group, folder)


def _check_key(path: Path) -> None:
    """`UserError` for a function under another key than the file's name."""
    other = [key for key, node in read_yaml(path).items() if isinstance(node, dict) and "_target_" in node]
    if other and other != [path.stem]:
        raise UserError(
            f"{path} declares {' and '.join(f'{key}:' for key in other)} and would run as that: rename the key to "
            f"{path.stem}:, as the file is called, or the file"
        )


def _check_name(path: Path, group: str, folder: Path) -> None:
    """`UserError` for a file with the name of another config of its group."""
    name = read_yaml(path).get("name", path.stem)
    if name != path.stem and name in choices(group, folder):
        raise UserError(
            f"{path} has the name of another {group}, name: {name}, and would run as that: give it its own, such as "
            f"name: {path.stem}"
        )


def check_file(path: Path) -> None:
    """`UserError` for a file that is too large or too deep, with its aliases written out.

    Invalid YAML passes: it is reported when the file is read.
    """
    import yaml

    try:
        if path.stat().st_size > LARGEST or _too_large(path.read_bytes()):
            raise UserError(
                f"{path} is too large for a configuration: at most {LARGEST:,} bytes, {DEEPEST} levels and "
                f"{MOST_VALUES:,} values, aliases written out"
            )
    except (OSError, yaml.YAMLError, ValueError):
        return


@lru_cache(2000)
def _too_large(text: bytes) -> bool:
    """Whether a YAML file has too many levels or values, found without building it: aliases multiply."""
    import yaml
    from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent

    sizes: dict[str, int] = {}
    counts, anchors = [0], [""]
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, CollectionStartEvent):
            counts.append(1)
            anchors.append(event.anchor or "")
            sizes[anchors[-1]] = MOST_VALUES + 1  # should it be met below itself
        elif isinstance(event, CollectionEndEvent):
            size, sizes[anchors.pop()] = counts[-1], counts.pop()
            counts[-1] += size
        elif isinstance(event, AliasEvent):
            counts[-1] += sizes.get(event.anchor or "", 1)
        elif isinstance(event, ScalarEvent):
            counts[-1] += 1
            sizes[event.anchor or ""] = 1
        if len(counts) > DEEPEST or counts[-1] > MOST_VALUES:
            return True
    return False
