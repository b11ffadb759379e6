"""What to say of rows that do not fit their domain: what is wrong, where, and the setting that helps."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import ISO, Attribute, Domain
from dpbench.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8  # names that a message lists
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
    hints = dict.fromkeys(hint for a, rows in found if (hint := _hint(a, frame[a.name].iloc[int(rows.argmax())])))
    raise UserError(
        f"{prefix}values outside the declared domain\n  "
        + "\n  ".join(_fault(frame[attribute.name], attribute, rows) for attribute, rows in found)
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
