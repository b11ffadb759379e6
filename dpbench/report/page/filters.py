"""The filters of the page: data sets, methods and epsilons, and those to which a text of the page belongs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbench.report.frames.results import Results
from dpbench.report.frames.series import in_order, series_of
from dpbench.report.text import number

_EPSILON = re.compile(r"ε = (\S+)$")
Tags = dict[str, str]  # attributes: data-d, data-m and data-e, the places of a data set, method and epsilon


@dataclass(frozen=True)
class Filters:
    """The choices in their order. `datasets`: name -> title; `epsilons` as texts, without inf: references stay."""

    datasets: Mapping[str, str]
    methods: Sequence[str]
    epsilons: Sequence[str]

    @classmethod
    def of(cls, results: Iterable[Results], titles: Mapping[str, str], labels: Mapping[str, str]) -> Filters:
        """Those that occur in the results, methods in the order of `labels`."""
        settings = [one.rows.settings for one in results if one.trials]
        datasets = in_order((name for rows in settings for name in rows["dataset"]), titles)
        known = {one.name for rows in settings for one in series_of(rows.assign(variant=""), labels)}
        epsilons = sorted({value for rows in settings for value in rows["epsilon"] if np.isfinite(value)})
        methods = [name for name in dict.fromkeys([*labels.values(), *sorted(known)]) if name in known]
        return cls({name: titles.get(name, name) for name in datasets}, methods, [number(value) for value in epsilons])

    def cell(self, dataset: str, method: str, epsilon: float) -> Tags:
        """The tags of a cell of trials."""
        tags = {"data-d": self._dataset_names.get(dataset), "data-m": self._methods.get(method)}
        tags["data-e"] = {text: str(place) for place, text in enumerate(self.epsilons)}.get(number(epsilon))
        return {name: place for name, place in tags.items() if place is not None}

    def row(self, cells: Sequence[str]) -> Tags:
        """Those of a row: its first cells name the data set and the method, apart or as "data set: method"."""
        tags: Tags = {}
        for cell in cells[:4]:
            dataset, rest = self.dataset(cell)
            method = self.method(rest)
            tags |= {} if dataset is None or "data-d" in tags else {"data-d": dataset}
            tags |= {} if method is None or "data-m" in tags else {"data-m": method}
        return tags

    def column(self, header: str) -> Tags:
        """Those of a column: an epsilon, or a method."""
        found = _EPSILON.search(header)
        if found and found[1] in self.epsilons:
            return {"data-e": str(self.epsilons.index(found[1]))}
        method = self.method(header)
        return {} if method is None else {"data-m": method}

    def dataset(self, text: str) -> tuple[str | None, str]:
        """The place of the data set whose name or title begins the text, if any, and the rest of the text."""
        for title in sorted(self._dataset_names, key=len, reverse=True):
            rest = text.removeprefix(title)
            if title and rest != text and (not rest or rest[0] in ":,"):
                return self._dataset_names[title], rest.partition(": ")[2]
        return None, text

    def method(self, text: str) -> str | None:
        """The place of the method of a series: its label may name a calibration or settings in brackets."""
        for name in sorted(self.methods, key=len, reverse=True):
            rest = text.removeprefix(name)
            if rest != text and (not rest or rest.startswith((" (", " ["))):
                return self._methods[name]
        return None

    @cached_property
    def _dataset_names(self) -> dict[str, str]:
        places = {name: str(place) for place, name in enumerate(self.datasets)}
        return places | {title: places[name] for name, title in self.datasets.items()}

    @cached_property
    def _methods(self) -> dict[str, str]:
        return {name: str(place) for place, name in enumerate(self.methods)}
