"""Checks of the values that a plug-in returned: arrays of a shape, plain data, exact types, or `ContractError`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbench.errors import ContractError, shown

MOST_PLAIN = 2**18  # characters of the JSON of diagnostics, notes or a score's detail


def check_array(what: str, value: object, shape: tuple[int, ...], *, finite: bool = True) -> None:
    """An array of numbers of this shape."""
    if type(value) is not np.ndarray or value.dtype.kind not in "fiu":
        raise ContractError(f"{what} must be a numpy array of numbers, not {kind_of(value)}")
    if value.shape != shape:
        raise ContractError(f"{what} must have the shape {shape}, not {value.shape}")
    if finite and not np.isfinite(value).all():
        raise ContractError(f"{what} must be finite")


def check_plain(what: str, value: object) -> None:
    """Plain data that JSON can hold: texts, finite numbers, lists and mappings, of limited size."""
    problem = _not_plain(value, 0)
    if problem:
        raise ContractError(f"{what} must be plain data (texts, finite numbers, lists, mappings), without {problem}")
    size = len(json.dumps(value))
    if size > MOST_PLAIN:
        raise ContractError(f"{what} must have at most {MOST_PLAIN:,} characters of JSON, not {size:,}")


def listed(what: str, value: object, length: int | None = None) -> Sequence[Any]:
    """A tuple or list, of this length if it is given."""
    if not isinstance(value, (tuple, list)) or (length is not None and len(value) != length):
        raise ContractError(f"{what} must be a tuple{f' of {length}' if length else ''}, not {kind_of(value)}")
    return value


def kind_of(value: object) -> str:
    """The type of a value, such as "numpy.int64"; "None" for none."""
    kind = type(value)
    if value is None or kind.__module__ == "builtins":
        return "None" if value is None else kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def _not_plain(value: object, depth: int) -> str:
    """The first thing in the value that is not plain; empty if all is."""
    if depth > 20:
        return "more than 20 levels of nested lists"
    if isinstance(value, dict):
        names = next((f"the key {shown(key)}" for key in value if type(key) is not str), "")
        return names or next(filter(None, (_not_plain(item, depth + 1) for item in value.values())), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_not_plain(item, depth + 1) for item in value)), "")
    if value is None or isinstance(value, (str, bool)):
        return ""
    if isinstance(value, int) and abs(value) < 2**63:
        return ""
    return "" if isinstance(value, float) and np.isfinite(value) else f"{kind_of(value)} {shown(value)}"
