"""Records stored by column; a value that all of them share is stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpbench.grid.seeds import canonical

PLAIN = (str, int, float, bool, type(None))


def packed(values: Sequence[Any]) -> dict[str, Any]:
    """Values of one place in all records: {"all": the one value}, or dicts and lists taken apart, or {"each": list}."""
    first, kind = values[0], type(values[0])
    if kind is dict and all(type(value) is dict and value.keys() == first.keys() for value in values):
        columns = {name: packed([value[name] for value in values]) for name in first}
        return {"dict": columns} if any("all" not in column for column in columns.values()) else {"all": first}
    if kind in PLAIN and first != 0:  # there is a negative zero too
        same = all(value is first or (type(value) is kind and value == first) for value in values)
    else:
        text = canonical(first)
        same = all(value is first or canonical(value) == text for value in values)
    if same:
        return {"all": first}
    if all(isinstance(value, list) and len(value) == len(first) > 0 and isinstance(value[0], dict) for value in values):
        return {"list": [packed(items) for items in zip(*values, strict=True)]}
    return {"each": list(values)}


def unpacked(node: Mapping[str, Any], count: int) -> Sequence[Any]:
    """The `count` values of a node made by `packed`."""
    ((how, found),) = node.items()
    if how == "all":
        return [found] * count
    if how == "each":
        each: list[Any] = found
        return each
    if how == "list":
        return list(map(list, zip(*(unpacked(item, count) for item in found), strict=True)))
    columns = [unpacked(column, count) for column in found.values()]
    return [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]


def value_at(value: Any, path: Sequence[str]) -> Any:
    """The value in nested dicts at a path, None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def check_columns(node: Mapping[str, Any], count: int) -> None:
    """Raises `ValueError` if a column does not have `count` values."""
    ((how, found),) = node.items()
    if how == "each" and len(found) != count:
        raise ValueError(f"a column of {len(found)} values for {count} trials")
    for part in found.values() if how == "dict" else found if how == "list" else ():
        check_columns(part, count)


def check_count(node: Mapping[str, Any], count: Any) -> None:
    """Raises `ValueError` for a count that the node does not list: trials differ at least in their repetition."""
    listed = {**node, **node.get("dict", {}).get("repetition", {})}
    if type(count) is not int or (count != 1 and "each" not in listed):
        raise ValueError(f"{count} trials without a repetition for each")


def names_of(node: Mapping[str, Any]) -> set[str]:
    """The fields that all records have."""
    ((how, found),) = node.items()
    return set.intersection(*map(set, found)) if how == "each" else set(found)
