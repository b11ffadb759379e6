"""How many cells of a column are of each kind, and at each place: counts in which each row counts once, at most.

A place is a range of numbers, a year, or a level. It rests on no other cell of the column, so that a row changes one
count by 1 (`privacy.stable_histograms`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.data.csv_format import CsvFormat
from dpbench.data.dates import days_of, first_formats
from dpbench.data.domain import EPOCH
from dpbench.data.domain_draft import (
    LONG,
    Kind,
    bounds_text,
    format_of,
    key_of,
    left_out_lines,
    numbers_of,
    texts_there,
    to_fill_in,
)
from dpbench.data.number_formats import UNIT_SIGNS
from dpbench.data.row_errors import drop_setting

if TYPE_CHECKING:
    import pandas as pd

MISSING_KIND, CODE, TEXT, FREE = Kind("missing"), Kind("code"), Kind("text"), Kind("free text")
LEAST, MOST = -9, 15  # powers of ten between which numbers are distinguished
EDGES = tuple(float(f"{digit}e{power}") for power in range(LEAST, MOST) for digit in (1, 2, 5))
Place = str | int


def kind_counts(column: pd.Series[Any], style: CsvFormat) -> Counter[Kind]:
    """The number of cells of each kind, each cell's being its own: a `Kind`, `missing`, or a `code` such as 01."""
    present = texts_there(column)
    found = Counter({MISSING_KIND: len(column) - len(present)})
    for kind, count in _kinds(present, style):
        found[kind] += count
    return found


def _kinds(present: pd.Series[Any], style: CsvFormat) -> Iterator[tuple[Kind, int]]:
    """The kind of each different text, and how often that is there."""
    import pandas as pd

    often = present.value_counts()
    texts = pd.Series(often.index, dtype=str)
    units = [next((sign for sign in UNIT_SIGNS if sign in text), "") for text in texts]
    for unit in dict.fromkeys(units):
        own = texts[[one == unit for one in units]]
        values = numbers_of(own, style, unit)
        others = own[~np.isfinite(values)]
        forms = dict(zip(others, first_formats(others), strict=True))
        for text, value in zip(own, values, strict=True):
            yield _kind(text, float(value), unit, forms.get(text, "")), int(often[text])


def _kind(text: str, value: float, unit: str, form: str) -> Kind:
    """The kind of a cell, which is a number, or else a date if it has a form."""
    if np.isfinite(value):
        return CODE if re.match(r"[+-]?0\d", text) else Kind("whole" if value.is_integer() else "number", unit)
    if form:
        return Kind("date", form=form)
    return FREE if len(text) > LONG or "\n" in text else TEXT


def chosen_kind(counts: Mapping[Kind, float]) -> Kind | None:
    """The kind of a column, by the noisy counts of its cells' kinds; None if there are none.

    That of the most cells, missing ones apart: whole numbers and others count as one. They are a text, as levels, where
    some are codes, and not whole, where some are not; the unit is the most frequent one, of those that there are.
    """
    groups: defaultdict[str, float] = defaultdict(float)
    for kind, count in counts.items():
        if kind != MISSING_KIND:
            groups[_group(kind)] += count
    if not groups:
        return None
    group = max(groups, key=lambda name: groups[name])
    own = {kind: count for kind, count in counts.items() if _group(kind) == group}
    if group != "number":
        return max(own, key=lambda kind: own[kind])
    if CODE in own:
        return TEXT
    signs = [kind for kind in own if kind.unit]
    unit = max(signs, key=lambda kind: own[kind]).unit if signs else ""
    return Kind("number" if any(kind.type == "number" for kind in own) else "whole", unit)


def _group(kind: Kind) -> str:
    return "number" if kind.type in ("whole", "number", "code") else f"{kind.type} {kind.form}"


def place_counts(column: pd.Series[Any], kind: Kind | None, style: CsvFormat) -> Counter[Place]:
    """The number of cells at each place of a kind: the range of a number, as `place_bounds` reads it, the year of a
    date, or a level. Cells that are not of the kind are at none; no kind, and free text, has no places.
    """
    present = texts_there(column)
    if kind is None or kind.type == "free text":
        return Counter()
    if kind.type in ("whole", "number"):
        values = numbers_of(present, style, kind.unit)
        places = np.searchsorted(EDGES, np.abs(values))  # NaN and infinity are behind the last
        signed = np.where(values < 0, -places, places)[places < len(EDGES)]
        return Counter(signed.tolist())
    if kind.type == "date":
        days = days_of(present, kind.form)
        return Counter(date.fromordinal(int(day) + EPOCH).year for day in days[np.isfinite(days)])
    return Counter(text for text in present if len(text) <= LONG)


def place_bounds(places: Mapping[Place, float], *, whole: bool) -> tuple[float, float]:
    """The least and the largest number of places that `place_counts` counts: (1, 2], (2, 5], (5, 10] and so on, 0, and
    the same below 0; of whole numbers, the least and the largest whole one.

    >>> place_bounds({28: 9.0, 29: 9.0}, whole=False), place_bounds({28: 9.0, 29: 9.0}, whole=True)
    ((1.0, 5.0), (2.0, 5.0))
    """
    ends = [end for place in places for end in _ends(int(place), whole)]
    return min(ends), max(ends)


def _ends(place: int, whole: bool) -> tuple[float, float]:
    if place == 0:
        return 0.0, 0.0
    low, high = EDGES[abs(place) - 1], EDGES[abs(place)]
    low = math.floor(low) + 1.0 if whole else low
    return (low, high) if place > 0 else (-high, -low)


# --- what was released, as a domain file -----------------------------------------------------------------------------


def from_places(found: Mapping[str, tuple[Kind | None, bool, Mapping[Place, float]]], dropped: list[str]) -> str:
    """The lines of a domain file by what was released of each column: its kind, whether values are missing, and its
    places. `dropped`: the columns of which nothing was asked.
    """
    lines, nothing = list[str](), list[str]()
    for name, (kind, missing, places) in found.items():
        if kind is None or kind.type == "free text":
            nothing.append(name)
            continue
        form = _released(kind, places)
        absent = ", missing: true" if missing else ""
        lines.append(f"{key_of(name)}: {{{form}{absent}}}" if form else f"{key_of(name)}: {to_fill_in(kind)}")
    if nothing:
        lines.append(f"# Free text, or too few rows to release anything: {', '.join(nothing)}.")
        lines.append(f"# Declare them by hand, or give {drop_setting(nothing)}")
    return "".join(f"{line}\n" for line in [*lines, *left_out_lines(dropped)])


def _released(kind: Kind, places: Mapping[Place, float]) -> str | None:
    """The declaration by the places that were released; None for none, or a single number or level."""
    if not places:
        return None
    if kind.type in ("whole", "number"):
        low, high = place_bounds(places, whole=kind.type == "whole")
        return bounds_text(kind, low, high, 0 if kind.type == "whole" else None)
    if kind.type == "date":
        first, last = (int(end(places)) for end in (min, max))
        return f"dates: [{first:04d}-01-01, {last:04d}-12-31], by: month{format_of(kind)}"
    return f"levels: {json.dumps(sorted(map(str, places)), ensure_ascii=False)}"
