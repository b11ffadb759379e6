"""How a user's CSV file is written: its encoding and separator, the signs of its numbers, and where its rows are."""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

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
MARKS = {" ": f"[ {SPACES}]", "'": "['\u2019]"}  # of thousands, where there are several
UNNAMED = "Unnamed: "  # and its place: a column without a name, as pandas calls it
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NEGATIVE = {  # numbers such as (5), with another sign, and 5-
    r"^\s*\(([^()]*\d[^()]*)\)\s*$": r"-\1",
    "\u2212": "-",
    r"^([^-]*\d[^-]*)-\s*$": r"-\1",
}


@dataclass(frozen=True)
class CsvFormat:
    """How a file is written. `header`: the line with the names, from 1; `thousands` is empty if there is none.

    `skip`: rows between the names and the table, such as units; `footer`: rows below it, such as a total.
    """

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    header: int = 1
    skip: int = 0
    footer: int = 0
    encoding: str = "utf-8"

    @classmethod
    def of(cls, config: Dataset) -> CsvFormat:
        """By the settings of a data set, a first line of the file such as `sep=;`, as Excel writes it, and the mark of
        UTF-16 at its begin.

        Raises `UserError` for a sign that is none, or one that is two things.
        """
        path = Path(config["path"])
        given = {key: _sign(key, config.get(key)) for key in ALLOWED if config.get(key) is not None}
        header = config.get("header") or 1
        if header < 1:
            raise UserError(f"dataset.header is the number of the line with the names, from 1, not {header}")
        made = cls(
            separator=given.get("separator", ","),
            decimal=given.get("decimal", "."),
            thousands=given.get("thousands", ""),
            header=header,
            skip=_rows_of("skip", config.get("skip")),
            footer=_rows_of("footer", config.get("footer")),
            encoding=_encoding(path, config.get("encoding")),
        )
        if (said := _said(path, made.encoding)) is not None:
            made = replace(made, separator=given.get("separator", said), header=max(header, 2))
        if made.decimal == made.thousands:
            raise UserError("dataset.decimal and dataset.thousands are the same sign: set one of them to another")
        return made

    def numbers(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Texts as Python writes numbers: without thousands separators, with a decimal point, the minus in front."""
        odd = column.str.rstrip().str.endswith("-")
        for sign in "(\u2212":
            odd |= column.str.contains(sign, regex=False)
        if odd.any():  # patterns take five times the seconds of all the rest
            texts = column[odd]
            for pattern, plain in NEGATIVE.items():
                texts = texts.str.replace(pattern, plain, regex=True)
            column = column.mask(odd, texts)
        if self.thousands:
            mark = MARKS.get(self.thousands, re.escape(self.thousands))
            column = column.str.replace(rf"(?<=\d){mark}(?=(?:\d{{2}}{mark})*\d{{3}}(?!\d))", "", regex=True)
        return column if self.decimal == "." else column.str.replace(self.decimal, ".", regex=False)

    def lines(self, path: Path) -> TextIO:
        """The file as text. What is none in its encoding is replaced: whoever reads the rows reports it."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding  # which leaves out its mark
        return io.TextIOWrapper(open_binary(path), encoding, errors="replace", newline="")


def _rows_of(key: str, given: int | None) -> int:
    if (given or 0) < 0:
        raise UserError(f"dataset.{key} is a number of rows, 0 or more, not {given}")
    return given or 0


def _sign(key: str, given: str) -> str:
    named = [name for name in ALLOWED[key] if given in (name, SIGNS[name])]
    if not named:
        raise UserError(f"dataset.{key} must be one of {', '.join(ALLOWED[key])}, not {shown(given)}")
    return SIGNS[named[0]]


def _encoding(path: Path, given: str | None) -> str:
    if given is None:
        with open_binary(path) as stream:
            return "utf-16" if stream.read(2) in UTF16 else "utf-8"
    try:
        return codecs.lookup(given).name
    except LookupError as error:
        raise UserError(f"dataset.encoding={shown(given)} is not known; such as cp1252, latin-1 or utf-16") from error


def _said(path: Path, encoding: str) -> str | None:
    """The separator that the first line of the file names, if it does nothing else."""
    with CsvFormat(encoding=encoding).lines(path) as stream:
        found = re.fullmatch(r'"?sep=([;,|\t])"?\s*', stream.readline(100), re.IGNORECASE)
    return None if found is None else found[1]


def numbers_rows(column: pd.Series[Any]) -> bool:
    """Whether the values are 0, 1, 2 and so on, or 1, 2, 3."""
    return len(column) > 0 and any(column.tolist() == [str(k + one) for k in range(len(column))] for one in (0, 1))
