"""Public declarations of what a table may contain: `Attribute` and `Domain`.

Nothing here is computed from rows. DD-SSP, Definition 2.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import UserError, unknown
from dpbench.files import Json

Clique = tuple[str, ...]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
ISO = "%Y-%m-%d"
EPOCH = date(1970, 1, 1).toordinal()  # day 0 of dates
STARTS: Mapping[str, Callable[[date], bool]] = {  # whether a bin begins on a day
    "day": lambda day: True,
    "week": lambda day: day.weekday() == 0,
    "month": lambda day: day.day == 1,
    "quarter": lambda day: day.day == 1 and day.month % 3 == 1,
    "year": lambda day: day.day == day.month == 1,
}


@dataclass(frozen=True)
class Attribute:
    """One attribute: categorical with named levels, or numeric with public bounds cut into bins.

    Made by `categorical`, `binned`, `from_edges` or `discrete`. A code is an integer in [0, size): the index of a
    level, or of a bin [edges[k], edges[k + 1]) represented by the number values[k]. `bounds` is the public range
    of a numeric attribute; a number outside it is outside the domain. `decimals`: that its numbers have at most, 0 for
    whole ones; None if that is not declared.

    With `missing`, a value may be missing: that is a level of its own, the last one, whose name is empty, or a bin of
    its own after the others, code len(values), which no number represents.

    `dates`: how its values are written, if they are dates (made by `dated`); its numbers are then days since 1970.

    `absent`: texts that mean a missing value, besides the usual ones. `other`: the level that stands for all texts that
    are no level; empty if there is none.
    """

    name: str
    levels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    bounds: tuple[float, float] | None = None
    unit: str = ""
    decimals: int | None = None
    missing: bool = False
    dates: str = ""
    absent: tuple[str, ...] = ()
    other: str = ""

    def __post_init__(self) -> None:
        if bool(self.levels) == bool(self.edges):
            raise UserError(f"attribute {self.name!r}: declare levels (categorical), or bounds and bins (numeric)")
        if len(set(self.levels)) != len(self.levels):
            raise UserError(f"attribute {self.name!r}: a level is listed twice")
        if self.missing and self.levels and self.levels[-1]:
            raise UserError(f"attribute {self.name!r}: of levels with missing ones the last has an empty name")
        if self.other and self.other not in self.levels:
            raise UserError(f"attribute {self.name!r}: the level for all others must be one of its levels")
        if self.absent and not self.missing:
            raise UserError(f"attribute {self.name!r}: texts that mean a missing value need missing values")
        if self.edges:
            self._check_bins(np.asarray(self.edges, float), np.asarray(self.values, float))

    def _check_bins(self, edges: Floats, values: Floats) -> None:
        if len(edges) < 2 or not np.all(np.isfinite(edges)) or not np.all(np.diff(edges) > 0):
            raise UserError(f"attribute {self.name!r}: bin edges must be finite and increasing, at least two of them")
        if len(values) != len(edges) - 1 or np.any(values < edges[:-1]) or np.any(values > edges[1:]):
            raise UserError(f"attribute {self.name!r}: each bin needs one value inside it")
        if self.bounds is None or not edges[0] <= self.bounds[0] < self.bounds[1] <= edges[-1]:
            raise UserError(f"attribute {self.name!r}: bounds must be increasing and within the bins")

    @classmethod
    def categorical(cls, name: str, levels: Iterable[object]) -> Attribute:
        """An attribute with the given levels, coded in this order."""
        return cls(name, levels=tuple(str(level) for level in levels))

    @classmethod
    def binned(cls, name: str, lower: float, upper: float, bins: int, unit: str = "") -> Attribute:
        """A numeric attribute on [lower, upper] in `bins` equal-width bins, each represented by its midpoint."""
        if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
            raise UserError(f"attribute {name!r}: bounds must be finite with lower < upper, not [{lower}, {upper}]")
        if bins < 1:
            raise UserError(f"attribute {name!r}: bins must be at least 1, not {bins}")
        return cls.from_edges(name, np.linspace(lower, upper, bins + 1).tolist(), unit)

    @classmethod
    def from_edges(cls, name: str, edges: Iterable[float], unit: str = "") -> Attribute:
        """A numeric attribute with the given bin edges, each bin represented by its midpoint."""
        cut = tuple(float(edge) for edge in edges)
        middles = tuple((a + b) / 2 for a, b in pairwise(cut))
        return cls(name, edges=cut, values=middles, bounds=(cut[0], cut[-1]) if cut else None, unit=unit)

    @classmethod
    def discrete(cls, name: str, values: Iterable[float], unit: str = "") -> Attribute:
        """A numeric attribute that takes only these increasing values (at least two); its bounds are the outer two.

        A bin reaches half-way to the neighbouring values.
        """
        points = tuple(float(value) for value in values)
        if len(points) < 2 or any(b <= a for a, b in pairwise(points)):
            raise UserError(f"attribute {name!r}: values must be increasing, and at least two; one is a level")
        middles = [(a + b) / 2 for a, b in pairwise(points)]
        edges = (2 * points[0] - middles[0], *middles, 2 * points[-1] - middles[-1])
        return cls(name, edges=edges, values=points, bounds=(points[0], points[-1]), unit=unit)

    @classmethod
    def dated(cls, name: str, first: date, last: date, by: str, form: str = ISO) -> Attribute:
        """Days from `first` to `last`, both among them, in bins of a day, week (from Monday), month, quarter or year.

        `form`: how they are written, as `strftime` takes it. A bin is represented by its middle day, rounded down.
        """
        if not first < last:
            raise UserError(f"attribute {name!r}: dates must go from a day to a later one, not {first} to {last}")
        days = range(first.toordinal(), last.toordinal() + 1)
        starts = [day for day in days if day == days[0] or STARTS[by](date.fromordinal(day))]
        edges = np.array([*starts, days[-1] + 1]) - EPOCH
        values = (edges[:-1] + edges[1:] - 1) // 2
        ends = float(days[0] - EPOCH), float(days[-1] - EPOCH)
        bins, middles = tuple(map(float, edges)), tuple(map(float, values))
        return cls(name, edges=bins, values=middles, bounds=ends, unit="days", decimals=0, dates=form)

    def text(self, number: float) -> str:
        """A number of the attribute as it is written."""
        return date.fromordinal(int(number) + EPOCH).strftime(self.dates) if self.dates else f"{number:.12g}"

    @property
    def numeric(self) -> bool:
        """Whether the codes represent numbers."""
        return bool(self.edges)

    @property
    def discrete_values(self) -> bool:
        """Whether only `values` are in the domain (made by `discrete`), not all of `bounds`."""
        listed = self.numeric and self.bounds == (self.values[0], self.values[-1])
        return listed and not (self.dates and len(self.values) < self.edges[-1] - self.edges[0])

    @property
    def size(self) -> int:
        """m_j, the number of levels or bins, that of missing values among them."""
        return len(self.levels) or len(self.values) + self.missing

    def code(self, numbers: Floats) -> Codes:
        """The codes (n,) of numbers (n,) within `bounds`, or NaN where they are missing; the upper bound belongs to the
        last bin.
        """
        places = np.searchsorted(self.edges, numbers, side="right") - 1
        codes = np.clip(places, 0, len(self.values) - 1).astype(np.int64)
        return np.where(np.isnan(numbers), len(self.values), codes) if self.missing else codes

    def with_missing(self, absent: Iterable[str] = ()) -> Attribute:
        """The attribute whose values may be missing; `absent`: texts that say so, besides the usual ones."""
        return replace(self, missing=True, levels=(*self.levels, "") if self.levels else (), absent=tuple(absent))

    def to_dict(self) -> Json:
        """The declaration as plain data (JSON-ready); `from_dict` reads it back."""
        full: Json = {"name": self.name, "levels": list(self.levels), "edges": list(self.edges)}
        full |= {"values": list(self.values), "bounds": list(self.bounds or ()), "unit": self.unit}
        full |= {"missing": self.missing, "dates": self.dates, "absent": list(self.absent), "other": self.other}
        decimals = {} if self.decimals is None else {"decimals": self.decimals}
        return {key: value for key, value in full.items() if value} | decimals

    @classmethod
    def from_dict(cls, data: Json) -> Attribute:
        """The attribute that `to_dict` wrote."""
        fields: Json = {k: tuple(value) if isinstance(value, list) else value for k, value in data.items()}
        return cls(**fields)


@dataclass(frozen=True)
class Domain:
    """The attributes of a table, in column order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if not names:
            raise UserError("a domain needs at least one attribute")
        if len(set(names)) != len(names):
            raise UserError(f"an attribute is declared twice: {', '.join(names)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in column order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Attribute name -> number of levels or bins, in column order."""
        return {attribute.name: attribute.size for attribute in self.attributes}

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The column of the attribute. Raises `UserError` with the known names if there is none."""
        try:
            return self._places[name]
        except KeyError:
            raise unknown("attribute", name, self.names) from None

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of these attributes only, in this domain's order."""
        keep = {self.index(name) for name in names}
        return Domain(tuple(attribute for i, attribute in enumerate(self.attributes) if i in keep))

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """The shape of the marginal table of `clique`."""
        return tuple(self.sizes[name] for name in clique)

    def to_list(self) -> list[Json]:
        """The declaration as plain data (JSON-ready); `from_list` reads it back."""
        return [attribute.to_dict() for attribute in self.attributes]

    @classmethod
    def from_list(cls, data: Iterable[Json]) -> Domain:
        """The domain that `to_list` wrote."""
        return cls(tuple(Attribute.from_dict(item) for item in data))
