"""OmegaConf's merges and interpolations on plain data, in a fraction of its time.

They are done here where plain data tell what it would make of them. Else `NotPlain` is raised, and OmegaConf is asked.
"""

from __future__ import annotations

import re
from typing import Any

from dpbench.files import Node

NAMES = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"  # of keys, below each other
INTERPOLATION = rf"\$\{{({NAMES})\}}"
SELECTION = rf"\$\{{oc\.select:({NAMES}),(?:\s*(\$\{{{NAMES}\}})\s*|[^${{}}]*)\}}"
MISSING = "???"
_NOTHING: Any = object()


class NotPlain(Exception):
    """It takes OmegaConf to tell what is meant."""


def over(below: Node, above: Node) -> Node:
    """One mapping merged over another: mappings key by key, and all else in the other's place. Neither is changed.

    >>> over({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}, "d": None})
    {'a': {'b': 1, 'c': [3]}, 'd': None}
    """
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            found[key] = over(old, value)
        elif key in found and (value == MISSING or not _gives_way(old, value)):
            raise NotPlain
        else:
            found[key] = value
    return found


def _gives_way(old: Any, value: Any) -> bool:
    """Whether a value simply takes the place of what was there."""
    if isinstance(value, dict):
        return not isinstance(old, list) and not (isinstance(old, str) and "${" in old)
    return not (isinstance(value, list) and isinstance(old, dict))


def is_plain(node: Any) -> bool:
    """Whether it holds nothing but mappings by name, lists, single values and interpolations as `resolved` has them."""
    if isinstance(node, dict):
        return all(isinstance(key, str) and is_plain(value) for key, value in node.items())
    if isinstance(node, list):
        return all(map(is_plain, node))
    if isinstance(node, str) and "${" in node and not re.fullmatch(SELECTION, node, re.ASCII):
        return _only_named(node)
    return node is None or isinstance(node, (str, int, float))


def _only_named(text: str) -> bool:
    """Whether a text has nothing but interpolations of single names that means anything to OmegaConf."""
    return not re.search(r"[$\\]", re.sub(INTERPOLATION, "", text, flags=re.ASCII))


def below(names: str, value: Any) -> Node:
    """The value below keys such as "a.b".

    >>> below("a.b", 1)
    {'a': {'b': 1}}
    """
    if not re.fullmatch(NAMES, names, re.ASCII):
        raise NotPlain
    for name in reversed(names.split(".")):
        value = {name: value}
    found: Node = value
    return found


def with_setting(config: Node, names: str, value: Any, add: bool = False) -> Node:
    """The configuration with this value; none that it does not have unless one is to be added."""
    nested = below(names, value)
    if "${" in repr(value):
        raise NotPlain
    node: Any = config
    for name in names.split("."):
        if not isinstance(node, dict) or (name not in node and not add):
            raise NotPlain
        node = node.get(name, {})
    if not add and isinstance(value, dict) and not _has(node, value):
        raise NotPlain
    return over(config, nested)


def _has(node: Any, value: Node) -> bool:
    """Whether the node has all keys of the value, at all levels."""
    return isinstance(node, dict) and all(
        key in node and (not isinstance(one, dict) or _has(node[key], one)) for key, one in value.items()
    )


def has(config: Node, names: str) -> bool:
    """Whether there is anything at keys such as "a.b"."""
    return _at(config, names) is not _NOTHING


def _at(config: Node, names: str) -> Any:
    node: Any = config
    for name in names.split("."):
        if node is not _NOTHING and not isinstance(node, dict):
            raise NotPlain
        node = _NOTHING if node is _NOTHING else node.get(name, _NOTHING)
    return node


def resolved(config: Node) -> Node:
    """A copy with all interpolations replaced by what they name.

    >>> resolved({"a": {"b": 1}, "c": "${a.b}", "d": ["${c}"], "e": "b is ${a.b}"})
    {'a': {'b': 1}, 'c': 1, 'd': [1], 'e': 'b is 1'}
    """
    found: Node = _resolved(config, config, 10)
    return found


def _resolved(node: Any, config: Node, steps: int) -> Any:
    """`steps`: interpolations that may lead to each other."""
    if isinstance(node, dict):
        return {key: _resolved(value, config, steps) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value, config, steps) for value in node]
    return _of_text(node, config, steps) if isinstance(node, str) and "${" in node else node


def _of_text(text: str, config: Node, steps: int) -> Any:
    if alone := re.fullmatch(INTERPOLATION, text, re.ASCII):
        return _target(alone[1], config, steps)
    if selected := re.fullmatch(SELECTION, text, re.ASCII):
        if has(config, selected[1]):
            return _target(selected[1], config, steps)
        return _of_text(selected[2], config, steps) if selected[2] else _default(text)
    if not _only_named(text):
        raise NotPlain
    return re.sub(INTERPOLATION, lambda found: _text(_target(found[1], config, steps)), text, flags=re.ASCII)


def _target(names: str, config: Node, steps: int) -> Any:
    target = _at(config, names)
    if target is _NOTHING or target == MISSING or not steps:
        raise NotPlain
    return _resolved(target, config, 0 if isinstance(target, (dict, list)) else steps - 1)


def _text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise NotPlain
    return str(value)


def _default(selection: str) -> Any:
    """What ${oc.select:NAME,DEFAULT} is where there is nothing of that name."""
    from omegaconf import OmegaConf

    found: Any = OmegaConf.to_container(OmegaConf.create({"default": selection}), resolve=True)
    return found["default"]
