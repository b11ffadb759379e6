"""A data frame of level names and numbers, checked against its declared domain and coded; and back."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.data.dates import days_of
from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.number_formats import UNIT_SIGNS
from dpbench.data.row_errors import MISSING, Mask, check_columns, raise_faults
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
    loose: defaultdict[str, set[int]] = defaultdict(set)
    for level, code in exact.items():
        loose[_loose(level)].add(code)
    known = {text: codes.pop() for text, codes in loose.items() if len(codes) == 1}
    which, distinct = pd.factorize(column)  # -1 for a missing value
    absent, other = exact[""] if attribute.missing else -1, exact.get(attribute.other, -1) if attribute.other else -1

    def code_of(value: Any) -> int:
        text = str(value).strip()
        found = exact.get(text, -1)
        if found < 0 and attribute.missing and _is_missing(text, attribute):
            return absent
        return found if found >= 0 else known.get(_loose(text), -1 if text.lower() in MISSING else other)

    codes = np.array([*(code_of(value) for value in distinct), exact.get("", -1)], dtype=np.int64)[which]
    return _Column(np.maximum(codes, 0), None, codes < 0, codes < 0)


def _loose(text: str) -> str:
    """A level as it is compared where none is written exactly so: in small letters, a number without zeros at its end.

    >>> [_loose(text) for text in ("3.0", "1.50", "03", "North")]
    ['3', '1.5', '03', 'north']
    """
    number = re.fullmatch(r"([+-]?\d+)(\.\d*?)0*", text)
    return number[1] + number[2].rstrip(".") if number else text.casefold()


def _code_numbers(column: pd.Series[Any], attribute: Attribute) -> _Column:
    assert attribute.bounds is not None
    raw = days_of(column, attribute.dates) if attribute.dates else _raw_numbers(column, attribute.unit)
    raw = np.where(np.isin(raw, _numbers_of(attribute.absent)), np.nan, raw) if attribute.absent else raw
    values = np.array(attribute.values)
    no_number = np.isnan(raw)
    numbers = np.clip(np.where(no_number, values[0], raw), *attribute.bounds)
    if attribute.discrete_values:
        numbers = values[attribute.code(numbers)]
    outside = numbers != raw  # no number differs from every number
    if attribute.missing:
        missing = np.zeros(len(raw), dtype=bool)
        missing[no_number] = [_is_missing(value, attribute) for value in column[no_number]]
        numbers, outside, no_number = np.where(missing, np.nan, numbers), outside & ~missing, no_number & ~missing
    return _Column(attribute.code(numbers), numbers, outside, no_number)


def _raw_numbers(column: pd.Series[Any], unit: str) -> Floats:
    """The numbers (n,), NaN for what is none; with the unit, where some have it."""
    import pandas as pd

    raw = _plain_numbers(column)
    if unit and np.isnan(raw).any():
        plain = pd.to_numeric(column.map(lambda value: without_unit(value, unit)), errors="coerce")
        raw = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    return raw


def _plain_numbers(column: pd.Series[Any]) -> Floats:
    """The numbers (n,), NaN for what is none. Arrow reads texts ten times faster than pandas, but all or none."""
    import pandas as pd

    if isinstance(column.dtype, pd.StringDtype) and column.dtype.storage == "pyarrow":
        import pyarrow as pa
        from pyarrow import compute

        texts = pa.array(column)
        try:
            read = compute.cast(compute.if_else(compute.equal(texts, ""), None, texts), pa.float64())
            return np.asarray(read.to_numpy(zero_copy_only=False), dtype=np.float64)
        except pa.ArrowInvalid:  # some are no numbers, or stand between spaces
            pass
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


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


def _is_missing(value: Any, attribute: Attribute) -> bool:
    text = str(value).strip()
    if text.lower() in MISSING or text in attribute.absent:
        return True
    return attribute.numeric and bool(np.isin(_numbers_of([text]), _numbers_of(attribute.absent)).any())


def _numbers_of(texts: Iterable[str]) -> Floats:
    """The numbers among texts."""
    import pandas as pd

    found: Floats = pd.to_numeric(pd.Series(list(texts), dtype=str), errors="coerce").to_numpy(np.float64)
    return found[np.isfinite(found)]
