"""A data frame of level names and numbers, checked against its declared domain and coded; and back."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import ISO, Attribute, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, unknown

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8  # names that a message lists
OUTSIDE = ("error", "clip", "drop")
UNIT_SIGNS = "$€£¥%"  # that a number may have with it, where its declared unit has them
TOTALS = re.compile(r"\s*(grand\s+)?(total|sum|summe|gesamt|average|mean|overall)\b", re.IGNORECASE)
DATE = re.compile(r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}([./])\d{1,2}[./]\d{4})\b")
WRITTEN = {  # numbers as they are written elsewhere, and the setting that reads them
    r"-?\d{1,3}(,\d{3})+(\.\d+)?": "dataset.thousands=comma (or dataset.decimal=comma, if that is its decimal sign)",
    r"-?\d{1,3}(\.\d{3})+,\d+": "dataset.decimal=comma dataset.thousands=point",
    r"-?\d{1,3}([ \u00a0\u202f\u2009]\d{3})+,\d+": "dataset.decimal=comma dataset.thousands=space",
    r"-?\d{1,3}([ \u00a0\u202f\u2009]\d{3})+(\.\d+)?": "dataset.thousands=space",
    r"-?\d{1,3}('\d{3})+(\.\d+)?": "dataset.thousands=apostrophe",
    r"-?\d+,\d+": "dataset.decimal=comma",
}
Mask = NDArray[np.bool_]
# Texts that mean no value, in any case, where an attribute may be missing: those of pandas.
MISSING = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nat"})


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
    _check_columns([str(name) for name in frame.columns], domain, prefix, set(ignore))
    columns = [(_code_numbers if a.numeric else _code_levels)(frame[a.name], a) for a in domain.attributes]
    faults = [column.beyond_repair if outside == "clip" else column.outside for column in columns]
    if outside != "drop":
        _raise_faults(frame, domain, columns, faults, prefix)
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

    columns: dict[str, Any] = {}
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


# --- messages --------------------------------------------------------------------------------------------


def _check_columns(columns: list[str], domain: Domain, prefix: str, ignore: set[str]) -> None:
    counts = Counter(columns)
    missing = [name for name in domain.names if name not in counts]
    extra = [name for name in columns if name not in domain.sizes and name not in ignore]
    stray = sorted(name for name in ignore if name not in counts and name not in domain.sizes)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise UserError(f"{prefix}a column occurs twice: {_some(twice)}")
    if missing:
        raise UserError(
            f"{prefix}declared but missing: {_some(missing)}. Columns found: {_some(columns)}. "
            "Add the column, or take its attribute out of the domain"
        )
    if extra:
        drop = drop_setting(extra) if len(extra) <= SHOWN else "dataset.drop"
        raise UserError(
            f"{prefix}in the data but not declared: {_some(extra)}. "
            f"Declare each in the domain, or leave it out with {drop}"
        )
    if stray:
        raise unknown("column in dataset.drop:", stray[0], [*domain.names, *columns])


def drop_setting(names: Sequence[str]) -> str:
    """The setting that leaves these columns out, as it can be pasted into a shell.

    >>> print(drop_setting(["age", "zip"]), drop_setting(["Income, gross €"]))
    dataset.drop=[age,zip] 'dataset.drop=["Income, gross €"]'
    """
    plain = all(re.fullmatch(r"[A-Za-z_][\w.-]*", name, re.ASCII) for name in names)
    listed = names if plain else [json.dumps(name, ensure_ascii=False) for name in names]
    setting = f"dataset.drop=[{','.join(listed)}]"
    return setting if plain else shlex.quote(setting)


def check_total(frame: pd.DataFrame, prefix: str = "") -> None:
    """Raises `UserError` if a cell of the last row says that it is a total."""
    if len(frame) and any(map(TOTALS.match, frame.iloc[-1].map(str))):
        raise UserError(
            f"{prefix}the last row, {len(frame)}, looks like a total of the others: take it out of the file"
        )


def _raise_faults(
    frame: pd.DataFrame, domain: Domain, columns: Sequence[_Column], faults: list[Mask], prefix: str
) -> None:
    found = [(a, c, rows) for a, c, rows in zip(domain.attributes, columns, faults, strict=True) if rows.any()]
    if not found:
        return
    clip = "dataset.outside=clip moves numbers to the nearest allowed value"
    if any(column.beyond_repair.any() for _, column, _ in found):
        clip = "dataset.outside=clip has no nearest value for an unknown level, an empty value or text for a number"
    if all(rows.sum() == 1 and rows[-1] for _, _, rows in found):
        check_total(frame, prefix)
    hints = dict.fromkeys(hint for a, _, rows in found if (hint := _hint(a, frame[a.name].iloc[int(rows.argmax())])))
    raise UserError(
        f"{prefix}values outside the declared domain\n  "
        + "\n  ".join(_fault(frame[attribute.name], attribute, rows) for attribute, _, rows in found)
        + "".join(f"\n{hint}" for hint in hints)
        + f"\nCorrect the data or the domain, or leave out such rows with dataset.outside=drop; {clip}."
    )


def _hint(attribute: Attribute, value: Any) -> str:
    """What reads a value that is outside of its domain for the way it is written; empty if nothing is known to."""
    text = "" if value is None else str(value).strip()
    name, kind = f"attribute {attribute.name!r}", "bin" if attribute.numeric else "level"
    if text.lower() in MISSING:
        return f"{name}: with `missing: true` in its declaration, missing values have a {kind} of their own."
    if (found := DATE.match(text)) and attribute.dates != (form := date_format(found)):
        written = "" if form == ISO else f", format: '{form}'"
        return f"{name}: dates are declared as {{dates: [2020-01-01, 2024-12-31], by: month{written}}}."
    if not attribute.numeric:
        return ""
    for sign in UNIT_SIGNS:
        if sign in text:
            return f"{name}: declare its unit with the sign, such as unit: '{sign}', and it is read as a number."
    for pattern, setting in WRITTEN.items():
        if re.fullmatch(pattern, text):
            return f"{name}: {setting} reads {text!r} as a number."
    return ""


def date_format(found: re.Match[str]) -> str:
    """The format of a text that `DATE` matches.

    >>> [date_format(DATE.match(day)) for day in ("2024-01-31", "31.1.2024")]
    ['%Y-%m-%d', '%d.%m.%Y']
    """
    return f"%d{found[1]}%m{found[1]}%Y" if found[1] else ISO


def _fault(column: pd.Series[Any], attribute: Attribute, rows: Mask) -> str:
    first = int(np.flatnonzero(rows)[0])
    value: Any = column.iloc[first]
    count = int(rows.sum())
    return (
        f"attribute {attribute.name!r}, row {first + 1}: {_shown(value)} is not {_allowed(attribute)} "
        f"({count} such {'value' if count == 1 else 'values'} of {len(rows)})"
    )


def _shown(value: Any) -> str:
    text = str(value)
    if value is None or text.strip() in ("", "<NA>") or (isinstance(value, float) and math.isnan(value)):
        return "an empty value"
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _allowed(attribute: Attribute) -> str:
    if not attribute.numeric:
        return f"one of its levels {_some([level for level in attribute.levels if level or not attribute.missing])}"
    assert attribute.bounds is not None
    if attribute.dates:
        first, last = map(attribute.text, attribute.bounds)
        return f"a date from {first} to {last}"
    if attribute.discrete_values:
        return f"one of its values {_some([f'{value:g}' for value in attribute.values])}"
    return f"a number in [{attribute.bounds[0]:g}, {attribute.bounds[1]:g}]"


def _some(names: Iterable[str]) -> str:
    names = [name if len(name) <= 60 else f"{name[:57]}..." for name in names]
    return ", ".join(names[:SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > SHOWN else "")
