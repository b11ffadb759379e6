"""What to say of rows that do not fit their domain: what is wrong, where, and the setting that helps."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbench.data.dates import formats_of
from dpbench.data.domain import ISO, Attribute, Domain
from dpbench.data.number_formats import ABSENT, setting_of, unit_of
from dpbench.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8  # names that a message lists
MOST_STRAY = 5  # rows above or below a table that may not belong to it
TOTALS = re.compile(r"\s*(grand\s+)?(total|sum|summe|gesamt|average|mean|overall)\b.{0,12}", re.IGNORECASE)
WORDS = {"null", "true", "false", "nan", "inf"}  # that are no text as they stand
Mask = NDArray[np.bool_]
# Texts that mean no value, in any case, where an attribute may be missing: those of pandas.
MISSING = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "nat"})


def check_columns(columns: list[str], domain: Domain, prefix: str, ignore: set[str]) -> None:
    """Raises `UserError` for columns that are missing, not declared, or there twice."""
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
    plain = all(re.fullmatch(r"[A-Za-z_][\w.-]*", name, re.ASCII) and name.lower() not in WORDS for name in names)
    listed = names if plain else [_quoted(name) for name in names]
    setting = f"dataset.drop=[{','.join(listed)}]"
    return setting if plain else shlex.quote(setting)


def _quoted(name: str) -> str:
    """A text in quotes as Hydra reads it: a backslash means itself but before a quote, and ${ an interpolation."""
    escaped = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + ('\\"' if found[2] else ""), name)
    return f'"{escaped}"'.replace("${", "\\${")


def check_total(frame: pd.DataFrame, prefix: str = "") -> None:
    """Raises `UserError` if a cell of the last row, and of no other, says that it is a total."""
    for name in frame.columns if len(frame) > 1 else ():
        last = str(frame[name].iloc[-1])
        if TOTALS.fullmatch(last) and not (frame[name].iloc[:-1] == last).any():
            raise UserError(
                f"{prefix}the last row, {len(frame)}, looks like a total of the others: dataset.footer=1 leaves it out"
            )


def raise_faults(
    frame: pd.DataFrame, domain: Domain, faults: Sequence[Mask], beyond_repair: Sequence[Mask], prefix: str
) -> None:
    """Raises `UserError` if any row is at fault, by attribute; `beyond_repair`: those that clipping does not mend."""
    found = [(a, rows) for a, rows in zip(domain.attributes, faults, strict=True) if rows.any()]
    if not found:
        return
    clip = "dataset.outside=clip moves numbers to the nearest allowed value"
    if np.any(beyond_repair):
        clip = "dataset.outside=clip has no nearest value for an unknown level, an empty value or text for a number"
    if all(rows.sum() == 1 and rows[-1] for _, rows in found):
        check_total(frame, prefix)
    if stray := stray_rows(np.array([rows for _, rows in found]), len(domain.names)):
        raise UserError(f"{prefix}{stray}")
    hints = dict.fromkeys(hint for a, rows in found for hint in _hints(a, frame[a.name][rows]))
    if any(not attribute.numeric for attribute, _ in found):
        clip += "; with `other: NAME` in a declaration of levels, a level NAME stands for all that are not listed"
    raise UserError(
        f"{prefix}values outside the declared domain\n  "
        + "\n  ".join(_fault(frame[attribute.name], attribute, rows) for attribute, rows in found)
        + "".join(f"\n{hint}" for hint in hints)
        + f"\nCorrect the data or the domain, or leave out such rows with dataset.outside=drop; {clip}."
    )


def stray_rows(wrong: NDArray[np.bool_], columns: int) -> str:
    """What to say of cells at fault, (attribute, row), that are all in the first or in the last few rows of a table of
    so many columns, and are most of each; empty if they are not.
    """
    rows = np.flatnonzero(wrong.any(axis=0))
    count, total = len(rows), wrong.shape[1]
    if not count or count > MOST_STRAY or total < 3 * count or wrong[:, rows].sum(axis=0).min() < max(columns / 2, 2):
        return ""
    named = f"row {rows[0] + 1}" if count == 1 else f"rows {rows[0] + 1} to {rows[-1] + 1}"
    if rows[-1] == count - 1:
        return f"{named}: units or types below the names, it seems: dataset.skip={count} leaves them out"
    if rows[0] == total - count:
        return f"{named}: a total or a footnote below the table, it seems: dataset.footer={count} leaves it out"
    return ""


def _hints(attribute: Attribute, values: pd.Series[Any]) -> Iterator[str]:
    """What reads values that are outside of their domain for the way they are written."""
    texts = values.map(lambda value: "" if value is None else str(value).strip()).drop_duplicates()
    name, kind = f"attribute {attribute.name!r}", "bin" if attribute.numeric else "level"
    missing = texts.str.lower().isin(MISSING)
    if missing.any():
        yield f"{name}: with `missing: true` in its declaration, missing values have a {kind} of their own."
    if not len(texts := texts[~missing]):
        return
    if len(texts) <= SHOWN and texts.str.lower().isin(ABSENT).all():
        listed = json.dumps(sorted(texts), ensure_ascii=False)
        yield f"{name}: with `missing: {listed}` in its declaration, missing values have a {kind} of their own."
    elif not attribute.dates and (forms := formats_of(texts)):
        yield f"{name}: dates are declared as {{dates: [2020-01-01, 2024-12-31], by: month{format_shown(forms)}}}."
    elif attribute.dates and attribute.dates not in (forms := formats_of(texts, compact=True)) and forms:
        yield f"{name}: such dates are declared with format: '{forms[0]}'."
    elif not attribute.numeric and texts.str.lstrip("0").isin(attribute.levels).any():
        yield f"{name}: codes are compared as they are written: list {texts.iloc[0]} as a level."
    elif attribute.numeric and not attribute.dates:
        unit = unit_of(texts)
        setting = setting_of(texts, unit)
        if unit and unit not in attribute.unit:
            more = f", and give {setting}" if setting else ""
            yield f"{name}: declare its unit, unit: '{unit}'{more}, and it is read as a number."
        elif setting:
            yield f"{name}: {setting} reads {texts.iloc[0]!r} as a number."


def format_shown(forms: Sequence[str]) -> str:
    """The setting of how dates are written; empty for 2024-12-31.

    >>> format_shown(["%d/%m/%Y", "%m/%d/%Y"]), format_shown(["%Y-%m-%d"])
    (", format: '%d/%m/%Y'", '')
    """
    return "" if forms[0] == ISO else f", format: '{forms[0]}'"


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
