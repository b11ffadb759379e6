"""Mechanisms, models and metrics of a configuration, with checked parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbench.config.composition import composed
from dpbench.config.registry import choices, declared
from dpbench.config.schema import LEVELS, TEST_ROWS, Parameters, Part
from dpbench.config.values import check_keys, check_reserved, listed
from dpbench.contracts import check_signature, parameters_of
from dpbench.errors import UserError, check_known, shown, unknown
from dpbench.files import Node
from dpbench.privacy.budget import CALIBRATIONS, NOISES, RELATIONS
from dpbench.privacy.discrete import is_discrete
from dpbench.releases import KINDS
from dpbench.targets import is_shipped, resolve

NAMES = {"_offers_": KINDS, "_relations_": RELATIONS, "_needs_": (*KINDS, TEST_ROWS)}  # what each may list
EVERY = {"_target_": "Target", "_version_": "int | str", "_label_": "str", "_levels_": "str"}
READER = {**EVERY, "_needs_": "list | str"}
MAKER = {**EVERY, "_label_": "str | dict", "_offers_": "list", "_relations_": "list"}
MAKER |= {"_unpaid_": "dict", "_styles_": "dict", "_hide_runtime_": "bool"}
# Keys of a part that are no parameters, and their types; `resolve` checks a target.
RESERVED = {"mechanism": MAKER, "model": READER, "metric": {**READER, "_least_": "float", "_most_": "float"}}


def part_of(group: str, name: str, config_dir: Path | None = None) -> Part:
    """One mechanism, model or metric with its default parameters."""
    if name not in choices(group, config_dir):
        raise unknown(group, name, choices(group, config_dir))
    (part,) = parts_of(group, composed([f"{group}=[{name}]"], config_dir), config_dir)
    return part


def every_part(group: str, config_dir: Path | None = None) -> dict[str, Part]:
    """All mechanisms, models or metrics with their default parameters, by name: in far less time than one by one."""
    config = composed([f"{group}=[{','.join(choices(group, config_dir))}]"], config_dir)
    return {part.name: part for part in parts_of(group, config, config_dir)}


def declared_parts(group: str, config_dir: Path | None = None) -> dict[str, Part]:
    """The parts of a group as their configs declare them, by name.

    Of what they declare, only the types of the reserved keys are checked: labels and listings of all parts read those.
    """
    nodes = declared(group, config_dir)
    for name, node in nodes.items() if config_dir is not None else ():
        check_reserved(f"{group}.{name}", node, RESERVED[group])
    return {name: Part.of(group, name, node) for name, node in nodes.items()}


def with_parameters(part: Part, given: Parameters) -> Part:
    """The part with these parameters in place of its own. Raises `UserError` as for those of a config."""
    parameters = {**part.parameters, **given}
    _check_parameters(part.group, f"{part.group}.{part.name}", part.function, parameters)
    return replace(part, parameters=parameters)


def parts_of(group: str, config: Node, config_dir: Path | None = None) -> tuple[Part, ...]:
    """The parts of a group in a composed configuration, in its order."""
    nodes = config.get(group) or {}
    if not isinstance(nodes, dict):
        raise UserError(f"{group} must name configs, such as {group}=[{_first(group)}], not {shown(nodes)}")
    if not nodes:
        raise UserError(f"name at least one {group}, such as {group}=[{_first(group)}]")
    parts = tuple(_part(group, str(name), node, config_dir) for name, node in nodes.items())
    noise = str(config.get("noise", NOISES[0]))
    return tuple(_noised(part, noise, config_dir) for part in parts) if group == "mechanism" else parts


def _noised(part: Part, noise: str, config_dir: Path | None) -> Part:
    """The mechanism with this noise, which is among its parameters unless it is the continuous one."""
    if not is_discrete(noise) or not part.private:
        return part
    if not part.takes("noise"):
        having = sorted(one.name for one in declared_parts("mechanism", config_dir).values() if _takes_noise(one))
        raise UserError(
            f"{part.name} has no discrete noise; mechanisms that have (noise=discrete): {', '.join(having)}"
        )
    return replace(part, parameters={"noise": noise, **part.parameters})


def _takes_noise(part: Part) -> bool:
    return "noise" in parameters_of("mechanism", part.function)


def _first(group: str) -> str:
    return next(iter(choices(group)))


def _part(group: str, name: str, node: Any, config_dir: Path | None) -> Part:
    known, where = choices(group, config_dir), f"{group}.{name}"
    if not isinstance(node, dict) or "_target_" not in node:
        if name not in known:
            raise unknown(group, name, known)
        if not isinstance(node, dict):
            raise UserError(f"{where} must be a mapping of its parameters, not {shown(node)}")
        if name not in declared(group, config_dir):
            raise UserError(f"{known[name]} must hold '{name}:' with a _target_ below it")
        raise UserError(
            f"{where} has settings, but {name} is not in the grid: {group}=[...,{name}] adds it, ~{where} drops them"
        )
    check_reserved(where, node, RESERVED[group])
    function = resolve(group, node["_target_"], f"{where}: _target_")
    check_signature(group, function, where)
    if "_levels_" in node:
        check_known(f"{where}._levels_", node["_levels_"], LEVELS)
    part = Part.of(group, name, node)
    _check_parameters(group, where, function, {**dict.fromkeys(node.keys() & {"calibration"}, ""), **part.parameters})
    for key, allowed in NAMES.items():
        for one in listed(node.get(key, ())):
            check_known(f"{where}.{key}", one, allowed)
    for one in part.calibrations:
        check_known(f"{where}.calibration", one, CALIBRATIONS)
    if part.test_rows and group != "metric":
        raise UserError(f"{where}._needs_: a {group} sees no {TEST_ROWS}")
    if part.version is not None and is_shipped(part.target):
        raise UserError(f"{where}._version_ is for a function of your own; {part.target} has a version: leave it out")
    return part


def _check_parameters(group: str, where: str, function: Callable[..., Any], given: Parameters) -> None:
    """Every parameter is one of the function's, of the type that its annotation names, and none is missing."""
    known = parameters_of(group, function)
    check_keys(f"parameter of {where}", where, given, {name: _written(one.annotation) for name, one in known.items()})
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in given:
            raise UserError(f"{where} needs a value for {name}, which has no default: set {where}.{name}")


def _written(annotation: Any) -> str:
    """An annotation as it stands in the source, whether or not its module postpones annotations."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
