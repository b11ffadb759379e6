"""Records stored by column; a value that all of them share is stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from dpbench.grid.seeds import canonical

PLAIN = (str, int, float, bool, type(None))


class Packed(TypedDict, total=False):
    """Values of one place in all records, in one of these ways: one for all, each of them, or by their parts."""

    all: Any
    each: Sequence[Any]
    dict: Mapping[str, Packed]
    list: Sequence[Packed]


def packed(values: Sequence[Any]) -> Packed:
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


def unpacked(node: Packed, count: int) -> Sequence[Any]:
    """The `count` values of a node made by `packed`."""
    if "all" in node:
        return [node["all"]] * count
    if "each" in node:
        return node["each"]
    if "list" in node:
        return list(map(list, zip(*(unpacked(item, count) for item in node["list"]), strict=True)))
    columns = [unpacked(column, count) for column in node["dict"].values()]
    return [dict(zip(node["dict"], row, strict=True)) for row in zip(*columns, strict=True)]


def value_at(value: Any, path: Sequence[str]) -> Any:
    """The value in nested dicts at a path, None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def check_columns(node: Packed, count: int) -> None:
    """Raises `ValueError` if a column does not have `count` values, or is none."""
    ((how, _),) = node.items()
    if how not in ("all", "each", "list", "dict"):
        raise ValueError(f"a column of the kind {how!r}")
    if "each" in node and len(node["each"]) != count:
        raise ValueError(f"a column of {len(node['each'])} values for {count} trials")
    for part in (*node.get("dict", {}).values(), *node.get("list", ())):
        check_columns(part, count)


def check_count(node: Packed, count: object) -> None:
    """Raises `ValueError` for a count that the node does not list: trials differ at least in their repetition."""
    listed = {**node, **node.get("dict", {}).get("repetition", {})}
    if type(count) is not int or (count != 1 and "each" not in listed):
        raise ValueError(f"{count} trials without a repetition for each")


def names_of(node: Packed) -> set[str]:
    """The fields that all records have."""
    if "each" in node:
        return set.intersection(*map(set, node["each"]))
    return set(node["all"] if "all" in node else node["dict"])
