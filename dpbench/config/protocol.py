"""In what the settings of a line depart from the protocol that the file of an experiment declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbench.config.composition import merged
from dpbench.config.registry import PARTS, choices, read_yaml
from dpbench.errors import UserError, shown
from dpbench.files import Node

LONGEST = 60  # characters of a protocol's name
BESIDE = {"name", "title", "jobs", "executor", "results", "shards", "slurm", "report"}  # they leave all numbers as is
OWN_FILE = "the file, which builds on that of the protocol"


def departures(config: Node, overrides: Sequence[str], config_dir: Path | None = None) -> tuple[str, ...]:
    """The settings that the experiment's file alone gives another value than `config`, merged of `overrides`.

    They are compared as they are written: what follows from another setting does not count. A method may be added or
    left out: of mechanisms, models and metrics only the settings of those that the file has too count. A file that
    inherits the name of a protocol from another one departs from it.
    """
    if len(config["protocol"]) > LONGEST:
        raise UserError(f"protocol: {shown(config['protocol'])} is longer than {LONGEST} characters")
    named = [item for item in overrides if item.lstrip("+").startswith("experiment=")]
    files = (choices("experiment", config_dir).get(item.partition("=")[2]) for item in named)
    declared = [read_yaml(path).get("protocol") for path in files if path]
    beside = all(item in named or item.partition("=")[0].partition(".")[0] in BESIDE for item in overrides)
    alone = config if beside else merged(named, config_dir)
    inherited = [OWN_FILE] if None in declared and alone["protocol"] is not None else []
    return (*inherited, *(name for key in alone if key not in BESIDE for name in _of_setting(key, config, alone)))


def _of_setting(key: str, config: Node, alone: Node) -> Iterator[str]:
    mine, other = config.get(key), alone[key]
    if key in PARTS and isinstance(mine, Mapping):
        for part in (name for name in other if "_target_" in mine.get(name, ())):
            yield from differing(f"{key}.{part}", mine[part], other[part])
    else:
        yield from differing(key, mine, other)


def differing(path: str, mine: Any, other: Any) -> Iterator[str]:
    """The paths of the values that differ; that of a group alone if another of its configs was taken."""
    if not (isinstance(mine, Mapping) and isinstance(other, Mapping)) or mine.get("name") != other.get("name"):
        if mine != other:
            yield path
        return
    for name in dict.fromkeys([*other, *mine]):
        yield from differing(f"{path}.{name}", mine.get(name), other.get(name))
