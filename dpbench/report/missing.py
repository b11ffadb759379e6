"""Planned trials of a figure's experiments that were not run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from dpbench.config.specs import Spec
from dpbench.grid.records import TrialKey
from dpbench.report.footnotes import listed
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import Series, declared_titles, series_among
from dpbench.report.frames.settings import calibration_of, is_placed
from dpbench.report.text import number

EPSILON = "release.budget.epsilon"
Cell = tuple[str, str, str, str, str, float, float]  # data set, values of `SERIES`, epsilon and delta
MANY = 3  # from this many methods on, they are not listed if they are all private ones


class Gap(NamedTuple):
    """Places where the same epsilons are missing; none listed: all that are planned."""

    epsilons: tuple[float, ...]
    places: tuple[str, ...]


class Planned(NamedTuple):
    """A cell of a plan as a figure shows it: `place` is the title of its data set, with its delta if that has several.

    `private`: whether it has noise.
    """

    series: str
    dataset: str
    epsilon: float
    delta: float
    private: bool
    place: str

    @property
    def identity(self) -> tuple[object, ...]:
        """What a trial of it shares."""
        return self[:4]


def not_run(chosen: Sequence[Results], labels: Mapping[str, str], spec: Spec) -> list[str]:
    """The sentence on methods and epsilons that the experiments plan for a data set and that have no trial there.

    A trial that failed was run. Left out are experiments without any trial and labels of `spec["show"]` without any,
    which have footnotes of their own. Over an axis other than epsilon, such as rows, a method is missing on a data set
    if it has no trial there at all.
    """
    run = [one for one in chosen if one.trials]
    cells = _cells((key for one in run for key in one.planned), spec, str(spec.get("metric", "")))
    ran = _cells((key for one in run for key in one.rows.keys), spec)
    if cells.keys() <= ran.keys():
        return []
    known = {one.identity: one for one in series_among((cell[1:5] for cell in (*cells, *ran)), labels)}
    names = spec.get("show")
    asked, there = (
        [(known[cell[1:5]], cell) for cell in some if names is None or _label(cell, labels) in names]
        for some in (cells, ran)
    )
    shown = {_label(cell, labels) for _, cell in there}
    planned = _placed([(one, cell) for one, cell in asked if names is None or _label(cell, labels) in shown], spec)
    found = {one.identity for one in _placed(there, spec)}
    places = {one.label: at for at, one in enumerate(known.values())}
    missing = sorted((one for one in planned if one.identity not in found), key=lambda one: places[one.series])
    methods: dict[Gap, list[str]] = {}
    for series, rows in groupby(missing, key=lambda one: one.series):
        for gap in _gaps(list(rows), [one for one in planned if one.series == series]):
            methods.setdefault(gap, []).append(series)
    gaps = [f"{_who(names, gap, planned)}{_at(gap)}{_on(gap, planned)}" for gap, names in methods.items()]
    return [f"Not run: {'; '.join(gaps)}"] if gaps else []


def _cells(keys: Iterable[TrialKey], spec: Spec, metric: str = "") -> dict[Cell, None]:
    """The cells of the keys that a figure shows, once each; those with the metric, if any has it."""
    kept = [key for key in keys if is_placed(key, spec)]
    some = [key for key in kept if any(one.name == metric for one in key.metrics)] or kept
    rows: dict[Cell, None] = {}
    for key in some:
        release, budget = key.release, key.release.budget
        series = (release.mechanism.name, calibration_of(key), "", key.fit.model.name)
        rows[str(release.dataset["name"]), *series, budget.epsilon, budget.delta] = None
    return rows


def _label(cell: Cell, labels: Mapping[str, str]) -> str | None:
    """The label of the method of a cell of `_cells`."""
    return labels.get(f"{cell[1]}/{cell[4]}")


def _placed(cells: Iterable[tuple[Series, Cell]], spec: Spec) -> list[Planned]:
    """The cells of series by data set and, if epsilon is the axis, budget, once each; a reference has no delta."""
    by_budget, titles = spec.get("x", EPSILON) == EPSILON, declared_titles(spec)
    rows = dict[tuple[str, str, float, float], bool]()  # and whether they are private
    deltas: dict[str, set[float]] = {}
    for one, (dataset, *_, epsilon, delta) in cells:
        private = math.isfinite(epsilon)
        row = one.label, dataset, epsilon if by_budget else math.inf, delta if private else 0.0
        rows.setdefault(row, private)
        deltas.setdefault(dataset, set()).update({row[-1]} - {0.0})
    found = []
    for (series, dataset, epsilon, delta), private in rows.items():
        several = delta and len(deltas[dataset]) > 1
        place = titles.get(dataset, dataset) + (f", δ = {number(delta)}" if several else "")
        found.append(Planned(series, dataset, epsilon, delta, private, place))
    return found


def _gaps(missing: Sequence[Planned], asked: Sequence[Planned]) -> list[Gap]:
    """The places where a series lacks the same epsilons."""
    found: dict[tuple[float, ...], list[str]] = {}
    for place in sorted({one.place for one in missing}):
        lacking = {one.epsilon for one in missing if one.place == place}
        everywhere = lacking == {one.epsilon for one in asked if one.place == place}
        found.setdefault(() if everywhere else tuple(sorted(lacking)), []).append(place)
    return [Gap(epsilons, tuple(places)) for epsilons, places in found.items()]


def _who(names: Sequence[str], gap: Gap, asked: Sequence[Planned]) -> str:
    private = {one.series for one in asked if one.private and one.place in gap.places}
    return "every private method" if set(names) == private and len(names) >= MANY else _joined(names)


def _at(gap: Gap) -> str:
    return f" at ε = {', '.join(map(number, gap.epsilons))}" if gap.epsilons else ""


def _on(gap: Gap, asked: Sequence[Planned]) -> str:
    return "" if set(gap.places) == {one.place for one in asked} else f" on {_joined(gap.places)}"


def _joined(words: Sequence[str]) -> str:
    """The words as a list; "and" alone where a comma would be taken for one of a word.

    >>> _joined(["SSP", "AIM", "MST"]), _joined(["SSP", "GEM, small", "MST"])
    ('SSP, AIM and MST', 'SSP and GEM, small and MST')
    """
    return " and ".join(words) if any("," in word for word in words) else listed(words)
