"""What methods and metrics are called, and how methods look, in every table and figure, as their configs declare it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dpbench.config.parts import declared_parts
from dpbench.config.schema import Part
from dpbench.errors import UserError
from dpbench.targets import own_folder

Style = tuple[str, str]  # the name of a colour, and a marker
Methods = dict[str, tuple[bool, str]]  # "mechanism/model" -> whether it is private, and its label


def labels() -> dict[str, str]:
    """The label of each method, "mechanism/model", of the project and of the user's own folder.

    A mechanism's `_label_` is a text, or names its methods, by the model or by the kind of release that the model
    reads, and as `others` those that are not named; they have the mechanism's own name where there is none. The
    `_label_` of a model is added, unless the method was named by this very model; a model of the user's has its own
    name where it has none.
    Non-private references come first, then the alphabet.
    """
    mechanisms, models = _own("mechanism"), _own("model")
    own = {**_methods(mechanisms, _parts("model")), **_methods(_parts("mechanism"), models)}
    found = sorted((private, label, method) for method, (private, label) in {**_shipped_methods(), **own}.items())
    return {method: label for _, label, method in found}


def _methods(mechanisms: Mapping[str, Part], models: Mapping[str, Part]) -> Methods:
    return {
        f"{mechanism}/{model}": (one.private, _label(one, other))
        for mechanism, one in mechanisms.items()
        for model, other in models.items()
    }


def shipped_labels() -> set[str]:
    """The labels of the project's own methods."""
    return {label for _, label in _shipped_methods().values()}


@cache
def _shipped_methods() -> Methods:
    """Thousands, the same for every line."""
    return _methods(_shipped("mechanism"), _shipped("model"))


def _label(mechanism: Part, model: Part) -> str:
    methods = mechanism.methods
    if model.name in methods:
        return methods[model.name]
    read = next((kind for kind in model.needs if kind in methods), None)
    label = methods[read] if read else mechanism.label or mechanism.name
    own = model.label or ("" if model.name in _shipped("model") else model.name)
    return f"{label}, {own}" if own else label


def metric_label(name: str) -> str:
    """What a metric is called on an axis: its `_label_`, or its name."""
    metric = _parts("metric").get(name)
    return name if metric is None or metric.label is None else metric.label


def styles() -> dict[str, Style]:
    """The colour and marker of each label that has a style of its own, such as `_styles_: {BinAgg: vermillion o}`."""
    found = {}
    for mechanism in _parts("mechanism").values():
        for label, style in mechanism.styles.items():
            colour, _, marker = style.partition(" ")
            if not marker:
                raise UserError(
                    f"mechanism.{mechanism.name}: the style of {label} must be such as 'blue o': colour, marker"
                )
            found[label] = (colour, marker)
    return found


def _parts(group: str) -> dict[str, Part]:
    return _shipped(group) | _own(group)


def _own(group: str) -> dict[str, Part]:
    """Those of the user's own folder."""
    own = own_folder()
    return declared_parts(group, own) if own and (own / group).is_dir() else {}


@cache
def _shipped(group: str) -> dict[str, Part]:
    return declared_parts(group)
