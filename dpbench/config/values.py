"""Checks of single values: numbers within bounds, names, types. Each raises `UserError` with what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from dpbench.errors import UserError, shown, unknown
from dpbench.files import Node

DEEPEST, MOST_VALUES, LONGEST = 30, 100_000, 10_000  # levels, values and characters of a configuration
TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "list": (list,),
    "Sequence": (list,),
    "tuple": (list,),
    "dict": (dict,),
    "Mapping": (dict,),
    "None": (type(None),),
}
WORDS = {"Sequence": "list", "tuple": "list", "dict": "mapping", "Mapping": "mapping", "None": "null"}

_SPEC = "name each key of a spec with its type, such as metric: str, or xlabel: str | None if it may be left out"
FORMER = {  # reserved keys that there were, and what is written in their place
    "_private_": "a mechanism that is not private has _relations_: []",
    "_methods_": "write _label_: {rows: AIM-Synth, others: AIM}, by model or kind of release",
    "_calibrations_": "write calibration: [tight, paper, authors], without those that it has not",
    "_test_rows_": "write _needs_: [test_rows], along with the kinds of release",
    "_required_": _SPEC,
    "_optional_": _SPEC,
    "_reads_": "give the function a keyword-only parameter whose default is the path",
}


def listed(value: Any) -> list[Any]:
    """A list as it is, and anything else as the list of it."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def number(name: str, value: Any, *, above: float, below: float = math.inf, most: float = math.inf) -> float:
    """A float within (above, below), and at most `most`."""
    bounds = f"greater than {above:g}" if math.isinf(below) else f"between {above:g} and {below:g}, both excluded"
    bounds += f" and at most {most:,.0f}" if math.isfinite(most) else ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name} must be a number {bounds}, not {shown(value)}")
    if not (above < value < below and value <= most):
        raise UserError(f"{name} must be {bounds}, not {value if abs(value) < 1e15 else shown(value)}")
    return float(value)


def integer(name: str, value: Any, least: int, most: int) -> int:
    """A whole number within [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name} must be a whole number of at least {least} and at most {most:,}, not {shown(value)}")
    return value


def checked_name(value: Any) -> str:
    """A name that may be that of a folder or file."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", str(value)) or isinstance(value, bool):
        raise UserError(
            f"name must consist of at most 100 letters, digits, '_', '.' and '-', not {shown(value)}: it names a folder"
        )
    return str(value)


def checked_type(where: str, value: Any, annotation: str) -> None:
    """`UserError` unless the value is of a type that the annotation (such as "float | None") names.

    A type that is not in `TYPES` is left for the function to check.
    """
    kinds = [kind.strip().split("[")[0].rpartition(".")[2] for kind in _alternatives(annotation)]
    known = [kind for kind in kinds if kind in TYPES]
    if len(known) < len(kinds):
        return
    if not any(isinstance(value, TYPES[kind]) and (kind == "bool") == isinstance(value, bool) for kind in known):
        wanted = " or ".join(dict.fromkeys(WORDS.get(kind, kind) for kind in kinds))
        raise UserError(f"{where} must be {wanted}, not {shown(value)}")


def check_keys(what: str, where: str, given: Mapping[Any, Any], known: Mapping[str, str]) -> None:
    """`UserError` for a key (`what` it is) that is not `known`, or a value that is not of the type which that names."""
    for key, value in given.items():
        if key not in known:
            raise unknown(what, str(key), known)
        checked_type(f"{where}.{key}", value, known[key])


def check_reserved(where: str, node: Mapping[Any, Any], known: Mapping[str, str]) -> None:
    """`UserError` for a key in underscores that is not `known`, with what is written in place of a former one."""
    for key in FORMER.keys() & node.keys():
        raise UserError(f"{where}.{key} is no longer a key: {FORMER[key]}")
    reserved = {str(key): value for key, value in node.items() if str(key).startswith("_")}
    check_keys(f"reserved key of {where}", where, reserved, known)


def _alternatives(annotation: str) -> list[str]:
    """The members of a union, split at the bars outside of brackets.

    >>> _alternatives("int | Sequence[str | int] | None")
    ['int', 'Sequence[str | int]', 'None']
    """
    parts, depth = [""], 0
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def check_values(config: Node) -> None:
    """`UserError` for a number that is not finite or too large for a file, and for too much or too deep a tree."""
    waiting: list[tuple[str, Any, int]] = [("", config, 0)]
    count = 0
    while waiting:
        path, value, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > MOST_VALUES:
            raise UserError(
                f"the configuration is too large: at most {DEEPEST} levels and {MOST_VALUES:,} values are read"
            )
        if isinstance(value, dict):
            waiting += [
                (f"{path}.{shown(key) if len(str(key)) > 80 else key}", item, depth + 1) for key, item in value.items()
            ]
        elif isinstance(value, (list, tuple)):
            waiting += [(f"{path}.{place}", item, depth + 1) for place, item in enumerate(value)]
        else:
            _check_scalar(path[1:], value)


def _check_scalar(path: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path[:200]} must be a finite number, not {value}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise UserError(f"{path[:200]} must be less than 2^63, not {shown(value)}")
    if isinstance(value, str) and (len(value) > LONGEST or "\0" in value):
        raise UserError(f"{path[:200]} must be a text of at most {LONGEST:,} characters, without NUL: {shown(value)}")
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise UserError(f"{path[:200]} must be a text, a number, a list or a mapping, not {shown(value)}")
