"""Planned trials of a figure's experiments that were not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.grid.records import TrialKey
from dpbench.report.footnotes import listed
from dpbench.report.frames.frame import SERIES
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import declared_titles, mark_series, series_of, shown
from dpbench.report.frames.settings import Group, calibration_of, is_placed
from dpbench.report.text import number

EPSILON = "release.budget.epsilon"
MANY = 3  # from this many methods on, they are not listed if they are all private ones
_COLUMNS = ["dataset", *SERIES, "epsilon", "delta"]
_CELL = ["series", "dataset", "delta", "epsilon"]


class Gap(NamedTuple):
    """Places where the same epsilons are missing; none listed: all that are planned."""

    epsilons: tuple[float, ...]
    places: tuple[str, ...]


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
    planned, found = (pd.DataFrame(list(rows), columns=_COLUMNS) for rows in (cells, ran))
    known = series_of(pd.concat([planned, found]), labels)
    asked, _ = shown(mark_series(planned, known), labels, spec.get("show"))
    there, absent = shown(mark_series(found, known), labels, spec.get("show"))
    asked = asked[~(asked["mechanism"] + "/" + asked["model"]).map(dict(labels)).isin(absent)]
    if asked.empty:
        return []
    by_budget = spec.get("x", EPSILON) == EPSILON
    asked = _with_places(_merged(asked, by_budget), spec)
    missing = asked[
        ~pd.MultiIndex.from_frame(asked[_CELL]).isin(pd.MultiIndex.from_frame(_merged(there, by_budget)[_CELL]))
    ]
    methods: dict[Gap, list[str]] = {}
    for series, rows in missing.sort_values("series_order").groupby("series", sort=False):
        for gap in _gaps(rows, asked[asked["series"] == series]):
            methods.setdefault(gap, []).append(str(series))
    gaps = [f"{_who(names, gap, asked)}{_at(gap)}{_on(gap, asked)}" for gap, names in methods.items()]
    return [f"Not run: {'; '.join(gaps)}"] if gaps else []


def _cells(keys: Iterable[TrialKey], spec: Spec, metric: str = "") -> dict[Group, None]:
    """The values of `_COLUMNS` of the keys that a figure shows, once each; those with the metric, if any has it."""
    kept = [key for key in keys if is_placed(key, spec)]
    some = [key for key in kept if any(one.name == metric for one in key.metrics)] or kept
    rows: dict[Group, None] = {}
    for key in some:
        release, budget = key.release, key.release.budget
        series = (release.mechanism.name, calibration_of(key), "", key.fit.model.name)
        rows[release.dataset["name"], *series, budget.epsilon, budget.delta] = None
    return rows


def _merged(cells: pd.DataFrame, by_budget: bool) -> pd.DataFrame:
    """The cells by series, data set and, if `by_budget`, budget; a reference has no delta."""
    epsilon = cells["epsilon"] if by_budget else np.inf
    cells = cells.assign(epsilon=epsilon, private=np.isfinite(cells["epsilon"]))
    return cells.assign(delta=cells["delta"].where(np.isfinite(cells["epsilon"]), 0.0)).drop_duplicates(_CELL)


def _with_places(cells: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """The cells with `place`: the data set, with its delta where it has several."""
    place = cells["dataset"].replace(declared_titles(spec))
    deltas = cells["delta"].where(cells["delta"] > 0)
    several = deltas.notna() & (deltas.groupby(cells["dataset"]).transform("nunique") > 1)
    return cells.assign(place=place.where(~several, place + ", δ = " + cells["delta"].map(number)))


def _gaps(missing: pd.DataFrame, asked: pd.DataFrame) -> list[Gap]:
    """The places where a series lacks the same epsilons."""
    found: dict[tuple[float, ...], list[str]] = {}
    for place, rows in missing.groupby("place", sort=True):
        lacking = sorted(set(rows["epsilon"]))
        everywhere = set(lacking) == set(asked.loc[asked["place"] == place, "epsilon"])
        found.setdefault(() if everywhere else tuple(lacking), []).append(str(place))
    return [Gap(epsilons, tuple(places)) for epsilons, places in found.items()]


def _who(names: Sequence[str], gap: Gap, asked: pd.DataFrame) -> str:
    private = asked[asked["private"] & asked["place"].isin(gap.places)]
    every = set(names) == set(private["series"]) and len(names) >= MANY
    return "every private method" if every else _joined(names)


def _at(gap: Gap) -> str:
    return f" at ε = {', '.join(map(number, gap.epsilons))}" if gap.epsilons else ""


def _on(gap: Gap, asked: pd.DataFrame) -> str:
    return "" if set(gap.places) == set(asked["place"]) else f" on {_joined(gap.places)}"


def _joined(words: Sequence[str]) -> str:
    """The words as a list; "and" alone where a comma would be taken for one of a word.

    >>> _joined(["SSP", "AIM", "MST"]), _joined(["SSP", "GEM, small", "MST"])
    ('SSP, AIM and MST', 'SSP and GEM, small and MST')
    """
    return " and ".join(words) if any("," in word for word in words) else listed(words)
