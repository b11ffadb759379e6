"""The panels of a figure and the rows of a table, one a data set: their titles and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpbench.config.specs import Spec


def declared_titles(spec: Spec) -> dict[str, str]:
    """The titles that `spec["panels"]` declares, by data set."""
    return {str(name): str(title) for name, title in (spec.get("panels") or {}).items()}


def in_order(names: Iterable[str], titles: Mapping[str, str]) -> list[str]:
    """The names once each: those with a title in the order of the titles, then the others by name.

    >>> in_order(["b", "a", "c", "a"], {"c": "C", "d": "D"})
    ['c', 'a', 'b']
    """
    found = set(names)
    return [*(name for name in titles if name in found), *sorted(found - set(titles))]
