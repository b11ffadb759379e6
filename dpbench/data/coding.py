"""A data frame of level names and numbers, checked against its declared domain and coded; and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.data.domain import ISO, Attribute, Codes, Domain, Floats
from dpbench.data.faults import MISSING, UNIT_SIGNS, Mask, check_columns, raise_faults
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

if TYPE_CHECKING:
    import pandas as pd

OUTSIDE = ("error", "clip", "drop")


@dataclass(frozen=True)
class Coded:
    """A table, the number of rows dropped for a value outside its domain, and attribute -> values clipped."""

    table: Table
    dropped: int
    clipped: dict[str, int]


def code_frame(
    frame: pd.DataFrame, domain: Domain, outside: str = "error", where: str = "", ignore: Iterable[str] = ()
) -> Table:
    """The frame's rows over the domain; see `code_counted`."""
    return code_counted(frame, domain, outside, where, ignore).table


def code_counted(
    frame: pd.DataFrame, domain: Domain, outside: str = "error", where: str = "", ignore: Iterable[str] = ()
) -> Coded:
    """The frame's rows over the domain, and how many were changed to fit.

    Columns are found by name and may be text or numbers; the level "3" is also written 3 or 3.0. An empty cell or NA
    is a missing value, where an attribute may have some (`missing`). `outside` says
    what happens to a value outside its domain: `error`; `clip`, which moves a number to the nearest allowed one (an
    unknown level, an empty value or text instead of a number has none: still an error); or `drop`
    its row. `where` names the data in messages. Columns named in `ignore` need not be declared.

    Raises `UserError` for a missing or undeclared column, values outside their domain, or no row left.
    """
    coded = code_some(frame, domain, outside, where, ignore)
    if not len(coded.table):
        prefix = f"{where}: " if where else ""
        raise UserError(f"{prefix}there is no row" + (f" left of {len(frame)}" if len(frame) else ""))
    return coded


def code_some(
    frame: pd.DataFrame, domain: Domain, outside: str = "error", where: str = "", ignore: Iterable[str] = ()
) -> Coded:
    """`code_counted` of some of the rows; it may keep none of them."""
    check_known("dataset.outside", outside, OUTSIDE)
    prefix = f"{where}: " if where else ""
    check_columns([str(name) for name in frame.columns], domain, prefix, set(ignore))
    columns = [(_code_numbers if a.numeric else _code_levels)(frame[a.name], a) for a in domain.attributes]
    faults = [column.beyond_repair if outside == "clip" else column.outside for column in columns]
    if outside != "drop":
        raise_faults(frame, domain, faults, [column.beyond_repair for column in columns], prefix)
    drop = np.any(faults, axis=0)
    numbers = {name: c.numbers for name, c in zip(domain.names, columns, strict=True) if c.numbers is not None}
    table = Table(domain, np.column_stack([column.codes for column in columns]), numbers)
    if drop.any():
        table = table.take(np.flatnonzero(~drop))
    moved = zip(domain.names, columns, strict=True) if outside == "clip" else ()
    clipped = {name: int(column.outside.sum()) for name, column in moved if column.outside.any()}
    return Coded(table, int(drop.sum()), clipped)


def decoded(table: Table) -> pd.DataFrame:
    """The rows (n, d) of a table, as `code_frame` reads them: levels by name, numbers in their own unit.

    A number that is not known is the value that its bin stands for; a missing one is NaN, a missing level empty.
    """
    import pandas as pd

    columns: dict[str, np.ndarray] = {}
    for attribute in table.domain.attributes:
        codes, known = table.column(attribute.name), table.numbers.get(attribute.name)
        values = (*attribute.values, math.nan) if attribute.missing else attribute.values
        names = pd.Series(values if attribute.numeric else attribute.levels)
        found = names.iloc[codes].to_numpy() if known is None else known
        columns[attribute.name] = written_dates(found, attribute.dates) if attribute.dates else found
    return pd.DataFrame(columns)


def written_dates(days: Any, form: str) -> Any:
    """Days since 1970 as dates in this format; None for NaN."""
    import pandas as pd

    return pd.Series(pd.to_datetime(days, unit="D")).dt.strftime(form).to_numpy()


# --- one column ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """Codes (n,), 0 where there is none; the numbers moved into the domain; which rows are outside it."""

    codes: Codes
    numbers: Floats | None
    outside: Mask
    beyond_repair: Mask  # outside, and no nearest value


def _code_levels(column: pd.Series[Any], attribute: Attribute) -> _Column:
    """Each distinct value is looked up once."""
    import pandas as pd

    exact = {level.strip(): code for code, level in enumerate(attribute.levels)}
    loose = {_whole(level): code for level, code in exact.items()}
    which, distinct = pd.factorize(column)  # -1 for a missing value
    absent = exact[""] if attribute.missing else -1
    found = [*(_level(value, exact, loose, absent) for value in distinct), exact.get("", -1)]
    codes = np.array(found, dtype=np.int64)[which]
    return _Column(np.maximum(codes, 0), None, codes < 0, codes < 0)


def _level(value: Any, exact: dict[str, int], loose: dict[str, int], absent: int) -> int:
    text = str(value).strip()
    code = exact.get(text)
    if code is None:
        code = loose.get(_whole(text), -1)
    return absent if code < 0 and text.lower() in MISSING else code


def _whole(text: str) -> str:
    """An integer without its decimal point: 3.0 -> 3; other text unchanged."""
    match = re.fullmatch(r"([+-]?\d+)\.0*", text)
    return match[1] if match else text


def _code_numbers(column: pd.Series[Any], attribute: Attribute) -> _Column:
    assert attribute.bounds is not None
    raw = _days(column, attribute) if attribute.dates else _raw_numbers(column, attribute.unit)
    values = np.array(attribute.values)
    no_number = np.isnan(raw)
    numbers = np.clip(np.where(no_number, values[0], raw), *attribute.bounds)
    if attribute.discrete_values:
        numbers = values[attribute.code(numbers)]
    outside = numbers != raw  # no number differs from every number
    if attribute.missing:
        missing = np.zeros(len(raw), dtype=bool)
        missing[no_number] = column[no_number].map(_is_missing).to_numpy(dtype=bool)
        numbers, outside, no_number = np.where(missing, np.nan, numbers), outside & ~missing, no_number & ~missing
    return _Column(attribute.code(numbers), numbers, outside, no_number)


def _raw_numbers(column: pd.Series[Any], unit: str) -> Floats:
    """The numbers (n,), NaN for what is none; with the unit, where some have it."""
    import pandas as pd

    raw = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if unit and np.isnan(raw).any():
        plain = pd.to_numeric(column.map(lambda value: without_unit(value, unit)), errors="coerce")
        raw = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    return raw


def _days(column: pd.Series[Any], attribute: Attribute) -> Floats:
    """The days since 1970 (n,) of dates, or of such numbers; NaN for what is none. A time of the day is left out."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if not pd.api.types.is_datetime64_any_dtype(column):
        column = column.map(str).str.strip()
    form = "ISO8601" if attribute.dates == ISO else attribute.dates
    parsed = pd.to_datetime(column, format=form, errors="coerce", utc=True)
    days = (parsed - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return np.floor(days.to_numpy(dtype=np.float64, na_value=np.nan))


def without_unit(value: Any, unit: str) -> Any:
    """A text without the unit, or a sign of it, at its ends; anything else as it is.

    >>> without_unit("$35.81", "$ a month"), without_unit("35.8 %", "%"), without_unit("-7 kg", "kg")
    ('35.81', '35.8', '-7')
    """
    if not isinstance(value, str):
        return value
    marks = "|".join(map(re.escape, [unit, *(sign for sign in UNIT_SIGNS if sign in unit)]))
    found = re.fullmatch(rf"\s*(-?)\s*(?:{marks})?\s*(-?[\d.]+(?:e[+-]?\d+)?)\s*(?:{marks})?\s*", value, re.IGNORECASE)
    return value if found is None else found[1] + found[2]


def _is_missing(value: Any) -> bool:
    return str(value).strip().lower() in MISSING
