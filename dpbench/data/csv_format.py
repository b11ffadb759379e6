"""How a user's CSV file is written: its separator, the decimal sign and the thousands separator of its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import open_binary
from dpbench.errors import UserError, shown

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "point": ".", "apostrophe": "'", "space": " "}
ALLOWED = {
    "separator": ("comma", "semicolon", "tab", "bar"),
    "decimal": ("point", "comma"),
    "thousands": ("comma", "point", "apostrophe", "space"),
}
SPACES = "\u00a0\u202f\u2009"  # that stand between thousands, in addition to the plain one
TITLE_LINES = 5  # at most so many lines above the names are looked for


@dataclass(frozen=True)
class CsvFormat:
    """The signs of a file. `header`: the line with the names, from 1; `thousands` is empty if there is none."""

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    header: int = 1

    @classmethod
    def of(cls, config: Dataset) -> CsvFormat:
        """By the settings of a data set, and a first line of the file such as `sep=;`, as Excel writes it.

        Raises `UserError` for a sign that is none, or one that is two things.
        """
        given = {key: _sign(key, config.get(key)) for key in ALLOWED if config.get(key) is not None}
        header = config.get("header") or 1
        if header < 1:
            raise UserError(f"dataset.header is the number of the line with the names, from 1, not {header}")
        made = cls(**given, header=header)
        if (said := _said(Path(config["path"]))) is not None:
            made = replace(made, separator=given.get("separator", said), header=max(header, 2))
        if made.decimal == made.thousands:
            raise UserError("dataset.decimal and dataset.thousands are the same sign: set one of them to another")
        return made

    def numbers(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Texts as Python writes numbers: without thousands separators, with a decimal point."""
        if self.thousands:
            marks = f"[ {SPACES}]" if self.thousands == " " else re.escape(self.thousands)
            column = column.str.replace(rf"(?<=\d){marks}(?=\d{{3}}(?!\d))", "", regex=True)
        return column if self.decimal == "." else column.str.replace(self.decimal, ".", regex=False)


def _sign(key: str, given: str) -> str:
    named = [name for name in ALLOWED[key] if given in (name, SIGNS[name])]
    if not named:
        raise UserError(f"dataset.{key} must be one of {', '.join(ALLOWED[key])}, not {shown(given)}")
    return SIGNS[named[0]]


def _said(path: Path) -> str | None:
    """The separator that the first line of the file names, if it does nothing else."""
    with open_binary(path) as stream:
        found = re.fullmatch(rb'(?:\xef\xbb\xbf)?"?sep=([;,|\t])"?\s*', stream.readline(100))
    return None if found is None else found[1].decode()


def check_separator(path: Path, style: CsvFormat) -> None:
    """Raises `UserError` if another character separates the names, and the first row (if any) into as many fields."""
    with open_binary(path) as stream:
        lines = [stream.readline() for _ in range(style.header + 1)]
    names, row = lines[-2:]
    for name in ALLOWED["separator"]:
        mark, own = SIGNS[name].encode(), style.separator.encode()
        found = names.count(mark)
        if mark != own and found > names.count(own) and (row.count(mark) == found or not row.strip()):
            header = shown(names.decode(errors="replace").strip())
            comma = re.search(rb"(^|%b)-?\d+,\d+\s*(%b|$)" % (re.escape(mark), re.escape(mark)), row)
            decimal = " dataset.decimal=comma" if comma and name != "comma" else ""
            raise UserError(
                f"{path}: the columns are not separated by {_named(style.separator)}; it begins with {header}. "
                f"dataset.separator={name}{decimal} reads it"
            )


def _named(sign: str) -> str:
    return next(f"{name}s" for name, one in SIGNS.items() if one == sign)


def title_lines(path: Path, style: CsvFormat, wanted: Sequence[str]) -> int | None:
    """How many lines stand above the one that has all of these names; None if no line near the top has them."""
    with open_binary(path) as stream:
        for above in range(TITLE_LINES + 1):
            line = stream.readline().decode(errors="replace").removeprefix("\ufeff")
            fields = [field.strip().strip('"') for field in line.split(style.separator)]
            if set(wanted) <= set(fields):
                return above
    return None
