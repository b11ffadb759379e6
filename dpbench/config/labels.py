"""What methods and metrics are called, and how methods look, in every table and figure, as their configs declare it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dpbench.config.registry import declared
from dpbench.config.values import listed
from dpbench.errors import UserError
from dpbench.targets import own_folder

Style = tuple[str, str]  # the name of a colour, and a marker


def labels() -> dict[str, str]:
    """The label of each method, "mechanism/model", of the project and of the user's own folder.

    A mechanism's `_methods_` name its methods, by the model or by the kind of release that the model reads; its
    `_label_` stands for those that are not named, its own name where it has none. The `_label_` of a model is added to
    both, unless the method was named by this very model; a model of the user's has its own name where it has none.
    Non-private references come first, then the alphabet.
    """
    mechanisms, models = _nodes("mechanism"), _nodes("model")
    models |= {name: {"_label_": name, **node} for name, node in models.items() if name not in _shipped("model")}
    found = {f"{m}/{n}": _label(m, mechanisms[m], n, models[n]) for m in mechanisms for n in models}
    private = {name: node.get("_private_", True) for name, node in mechanisms.items()}
    return dict(sorted(found.items(), key=lambda item: (private[item[0].partition("/")[0]], item[1], item[0])))


def _label(mechanism: str, made: Mapping[str, Any], model: str, fitted: Mapping[str, Any]) -> str:
    methods = made.get("_methods_", {})
    if model in methods:
        return str(methods[model])
    read = next((kind for kind in listed(fitted.get("_needs_", ())) if kind in methods), None)
    label = str(methods[read] if read else made.get("_label_", mechanism))
    return f"{label}, {fitted['_label_']}" if "_label_" in fitted else label


def metric_label(name: str) -> str:
    """What a metric is called on an axis: its `_label_`, or its name."""
    return str(_nodes("metric").get(name, {}).get("_label_", name))


def styles() -> dict[str, Style]:
    """The colour and marker of each label that has a style of its own, such as `_styles_: {BinAgg: vermillion o}`."""
    found = {}
    for name, node in _nodes("mechanism").items():
        for label, style in node.get("_styles_", {}).items():
            colour, _, marker = str(style).partition(" ")
            if not marker:
                raise UserError(f"mechanism.{name}: the style of {label} must be such as 'blue o': colour, marker")
            found[str(label)] = (colour, marker)
    return found


def _nodes(group: str) -> dict[str, Mapping[str, Any]]:
    own = own_folder()
    return _shipped(group) | (declared(group, own) if own and (Path(own) / group).is_dir() else {})


@cache
def _shipped(group: str) -> dict[str, Mapping[str, Any]]:
    return declared(group)
