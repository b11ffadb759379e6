"""The skeleton of a domain file: what is known of a table from the names of its columns and their types alone."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.data.coding import without_unit
from dpbench.data.csv_format import UNNAMED, CsvFormat, numbers_rows
from dpbench.data.dates import YEAR, days_of, formats_of
from dpbench.data.domain import EPOCH, ISO
from dpbench.data.number_formats import ABSENT, setting_of, unit_of
from dpbench.data.row_errors import MISSING, drop_setting, stray_rows
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

IDENTIFIES = re.compile(
    r"(?:.*[\W_])?(?:id|uuid|guid|surname|e?-?mail|phone|tel|address|street|iban|ssn|passport)(?:[\W_].*)?"
    r"|(?:first|last|family|full)?[\W_]?name|(?-i:.*[a-z]I[Dd])",
    re.IGNORECASE,
)
LONG = 40  # characters of a text from which on it counts as free
MANY = 20  # rows from which on texts that are all different look like identifiers
STRAY = 5  # last rows that may not belong to the table
BINS, MOST_LEVELS, MOST_VALUES, MOST_DECIMALS = 32, 50, 20, 4  # of what is taken from a public table
HEAD = """\
# What {file} may contain. Of it only the names of the columns and their types were read: whole numbers, numbers, dates,
# text, and how they are written. Fill in bounds, days and levels from what is known of the field, not from the rows;
# with missing: true, as in {{levels: [a, b], missing: true}}, values may be missing. `dpbench data check` then compares
# the table with this file.
"""
PUBLIC = """\
# What {file} may contain. Bounds, days and levels are those of {public}, a table that may be looked at; of {file} only
# the names of the columns were read. Round bounds outwards where it may go beyond them.
"""


@dataclass(frozen=True)
class Kind:
    """The type of a column: `whole`, `number`, `date`, `text` or `free text`; its unit, if each number has one with it,
    and the format of its dates. `setting`: what would read it otherwise.
    """

    type: str
    unit: str = ""
    form: str = ""
    setting: str = ""


def skeleton(frame: pd.DataFrame, style: CsvFormat, file: str) -> str:
    """A domain file in which bounds, days and levels are to be filled in, for a table of texts.

    Columns that look like an identifier, by their name, or like free text are left out, with the setting for that.
    """
    lines, dropped = list[str](), list[str]()
    for name in map(str, frame.columns):
        kind = kind_of(frame[name], style)
        if kind.type == "free text" or identifies(name, frame[name], kind):
            dropped.append(name)
        else:
            lines.append(f"{key_of(name)}: {to_fill_in(kind)}")
    return HEAD.format(file=file) + "".join(f"{line}\n" for line in [*lines, *left_out_lines(dropped)])


def identifies(name: str, column: pd.Series[Any], kind: Kind) -> bool:
    """Whether a column looks like an identifier: by its name, or since it counts the rows, or each has another text.

    One without a name cannot be declared, and counts as such.
    """
    if name.startswith(UNNAMED) or IDENTIFIES.fullmatch(name) or (len(column) >= MANY and numbers_rows(column)):
        return True
    there = texts_there(column)
    apart = len(there) >= MANY and there.is_unique and len(there) == len(column)
    return kind.type == "text" and not kind.setting and apart and bool(there.str.contains(r"[^\W\d_]").all())


def from_public(frame: pd.DataFrame, public: pd.DataFrame, style: CsvFormat, file: str, where: str) -> str:
    """A domain file for the columns of a table of texts, with the bounds, days and levels of a public one.

    Raises `UserError` for a column that the public table lacks.
    """
    names = [str(name) for name in frame.columns]
    if missing := [name for name in names if name not in public.columns]:
        raise UserError(
            f"{where} has no column {', '.join(missing)}: leave it out with {drop_setting(missing)} and declare it by "
            "hand, or name another public table"
        )
    lines, dropped = list[str](), list[str]()
    for name in names:
        kind, there = kind_of(public[name], style), texts_there(public[name])
        form = None if identifies(name, public[name], kind) else _taken(kind, there, style)
        if form is None:
            dropped.append(name)
        else:
            absent = ", missing: true" if len(there) < len(public) else ""
            lines.append(f"{key_of(name)}: {{{form}{absent}}}")
    head = PUBLIC.format(file=file, public=where)
    return head + "".join(f"{line}\n" for line in [*lines, *left_out_lines(dropped)])


def check_stray(frame: pd.DataFrame, style: CsvFormat, prefix: str) -> None:
    """Raises `UserError` if the first or last few rows of a table of texts are no numbers, where the others are."""
    wrong = []
    for name in frame.columns:
        there = texts_there(frame[name])
        if not np.isnan(numbers_of(there, style, "")).any():
            continue
        inner = there[(there.index > 1) & (there.index < len(frame) - STRAY)]
        kind = kind_of(inner, style)
        if len(inner) and kind.type in ("whole", "number"):
            odd = there.index[np.isnan(numbers_of(there, style, kind.unit)) & ~there.str.lower().isin(ABSENT)]
            wrong.append(np.isin(np.arange(len(frame)), odd))
    if wrong and (stray := stray_rows(np.array(wrong), min(len(wrong), 4))):
        raise UserError(f"{prefix}{stray}")


def kind_of(column: pd.Series[Any], style: CsvFormat) -> Kind:
    """The type of a column of texts; missing values have none, and a code such as 01 is a text."""
    there = texts_there(column)
    usual = there[~there.str.lower().isin(ABSENT)]
    for texts in (there, usual):
        if len(texts) and (kind := _number_or_date(texts, style)) is not None:
            return kind
    free = len(there) and (there.str.contains("\n", regex=False).any() or there.str.len().max() > LONG)
    setting = setting_of(usual, unit_of(usual)) if len(usual) else ""
    return Kind("free text") if free else Kind("text", setting=setting)


def _number_or_date(texts: pd.Series[Any], style: CsvFormat) -> Kind | None:
    """The type of texts that are all dates, or all numbers; None if they are not."""
    if (forms := formats_of(texts, compact=True)) and forms[0] != YEAR:
        return Kind("date", form=forms[0], setting=forms[1] if len(forms) > 1 else "")
    unit, numbers = "", numbers_of(texts, style, "")
    if np.isnan(numbers).any() and (unit := unit_of(texts)):
        numbers = numbers_of(texts, style, unit)
    if np.isnan(numbers).any() or texts.str.match(r"[+-]?0\d").any():
        return None
    if (numbers == np.round(numbers)).all():
        return Kind("whole", unit)
    grouped = not style.thousands and texts.str.fullmatch(r"-?[1-9]\d{0,2}\.\d{3}").all()
    return Kind("number", unit, setting="dataset.thousands=point" if grouped else "")


def texts_there(column: pd.Series[Any]) -> pd.Series[Any]:
    """The texts that are not missing."""
    texts = column.str.strip()
    return texts[~texts.str.lower().isin(MISSING)]


def numbers_of(there: pd.Series[Any], style: CsvFormat, unit: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The texts as numbers, which may have the sign of a unit with them; NaN for one that is none."""
    import pandas as pd

    if style.decimal == "." and not style.thousands:
        quick = pd.to_numeric(there, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isnan(quick).any():
            return quick
    plain = style.numbers(there)
    plain = plain.map(lambda text: without_unit(text, unit)) if unit else plain
    return pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def to_fill_in(kind: Kind) -> str:
    """The declaration of a column of this kind, with what is to be filled in."""
    unit = f", unit: {json.dumps(kind.unit)}" if kind.unit else ""
    match kind.type:
        case "whole":
            others = "or {values: {from: 1, to: 5}}, or {levels: [0, 1]}"
            return f"{{bounds: [LOWER, UPPER], bins: {BINS}, decimals: 0{unit}}}  # {others}"
        case "number":
            whole = f"; if the point separates thousands, {kind.setting}" if kind.setting else ""
            return f"{{bounds: [LOWER, UPPER], bins: {BINS}{unit}}}  # and perhaps decimals: 2{whole}"
        case "date":
            other = f"  # or format: {json.dumps(kind.setting)}" if kind.setting else ""
            return f"{{dates: [FIRST, LAST], by: month{format_of(kind)}}}{other}"
        case _:
            numbers = f", or read them as numbers with {kind.setting}" if kind.setting else ""
            return f"{{levels: []}}  # list them{numbers}"


def format_of(kind: Kind) -> str:
    """The setting of how dates are written, if that is not 2024-12-31."""
    return "" if kind.form == ISO else f", format: {json.dumps(kind.form)}"


def _taken(kind: Kind, there: pd.Series[Any], style: CsvFormat) -> str | None:
    """The declaration by the values that are there; None for free text, too many levels, or a single number."""
    if kind.type in ("whole", "number"):
        numbers = numbers_of(there, style, kind.unit)
        numbers = numbers[np.isfinite(numbers)]
        whole = kind.type == "whole"
        decimals = 0 if whole else int(style.numbers(there).str.extract(r"\.(\d+)")[0].str.len().max())
        return bounds_text(kind, float(numbers.min()), float(numbers.max()), decimals)
    if kind.type == "date":
        days = days_of(there, kind.form)
        first, last = (date.fromordinal(int(day) + EPOCH).isoformat() for day in (np.nanmin(days), np.nanmax(days)))
        return None if first == last else f"dates: [{first}, {last}], by: month{format_of(kind)}"
    levels = sorted(there.unique())
    if kind.type == "free text" or not 0 < len(levels) <= MOST_LEVELS:
        return None
    return f"levels: {json.dumps(levels, ensure_ascii=False)}"


def bounds_text(kind: Kind, low: float, high: float, decimals: int | None) -> str | None:
    """The declaration of numbers between two; None if they are one."""
    unit = f", unit: {json.dumps(kind.unit)}" if kind.unit else ""
    if low == high:
        return None
    if kind.type == "whole" and high - low < MOST_VALUES:
        return f"values: {{from: {low:.0f}, to: {high:.0f}}}{unit}"
    bins = min(BINS, int(high - low) + 1) if kind.type == "whole" else BINS
    limited = f", decimals: {decimals}" if decimals is not None and decimals <= MOST_DECIMALS else ""
    return f"bounds: [{low:.12g}, {high:.12g}], bins: {bins}{limited}{unit}"


def left_out_lines(names: list[str]) -> list[str]:
    """What to say of columns that are not declared."""
    if not names:
        return []
    return [
        f"# Left out, since they look like identifiers or free text, or have too many levels: {', '.join(names)}.",
        f"# Declare them, or give {drop_setting(names)}",
    ]


def key_of(name: str) -> str:
    """A name as YAML reads it: as it is, if it is a plain word that means nothing else."""
    plain = re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII) and name.lower() not in YAML_WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)


YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
