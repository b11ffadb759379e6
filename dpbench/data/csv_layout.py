"""Where the names and the rows of a user's CSV file are, and what to say where they are not as the format has it."""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from dpbench.data.csv_format import ALLOWED, SIGNS, UTF16, CsvFormat
from dpbench.data.fetch import open_binary
from dpbench.errors import UserError, shown

TITLE_LINES = 5  # at most so many lines above the names are looked for
SAMPLE = 40  # lines that are looked at to see where the names are
LONGEST_FIELD = 10 << 20
BLOCK = 16 << 20  # bytes that are looked at together
ONE_BYTE = {"utf-8", "ascii", "cp1252", "iso8859-1"}  # encodings in which a separator or the end of a line is one
OTHER_FILES = {  # by the first bytes
    b"\x1f\x8b": "packed by gzip: let its name end in .gz",
    b"PK\x03\x04": "a zip archive, or a workbook of Excel: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel: save the sheet as CSV",
    b"PAR1": "a parquet file: write it as CSV, such as by pandas.read_parquet(...).to_csv(..., index=False)",
    b"<": "HTML or XML: write the table as CSV",
    b"{": "JSON: write it as CSV, such as by pandas.read_json(...).to_csv(..., index=False)",
    b"[{": "JSON: write it as CSV, such as by pandas.read_json(...).to_csv(..., index=False)",
}


def check_kind(path: Path) -> None:
    """Raises `UserError` for a file that is no CSV by its first bytes."""
    with open_binary(path) as stream:
        head = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for begin, kind in OTHER_FILES.items():
        if head.startswith(begin):
            raise UserError(f"{path} is no CSV file but {kind}")
    if b"\0" in head and head[:2] not in UTF16:
        order = next((name for name, other in (("le", head[::2]), ("be", head[1::2])) if b"\0" not in other), None)
        what = f"UTF-16 without its mark: dataset.encoding=utf-16-{order} reads it" if order else "no text"
        raise UserError(f"{path} looks like {what}")


Counts = tuple["array[int]", "array[int]"]


@dataclass(frozen=True)
class Layout:
    """The names of a file, and of each row below them the line in which it begins and the number of its fields.

    Empty lines are no rows. Rows that `skip` and `footer` leave out are not among them.
    """

    names: tuple[str, ...]
    lines: Sequence[int]
    fields: Sequence[int]


def layout_of(path: Path, style: CsvFormat) -> Layout:
    """The layout of a file. Raises `UserError` for a file without a line."""
    csv.field_size_limit(LONGEST_FIELD)
    _, names = next(_rows(path, style), (0, None))
    if names is None:
        raise UserError(f"{path} is empty; its first line must name the columns")
    lines, fields = (len(names) > 1 and _counted(path, style)) or _listed(path, style)
    kept = slice(style.skip + 1, max(len(lines) - style.footer, 1))
    return Layout(tuple(name.strip() for name in names), lines[kept], fields[kept])


def _listed(path: Path, style: CsvFormat) -> Counts:
    """The line in which each row begins, and the number of its fields."""
    lines, fields = array("Q"), array("Q")
    for line, row in _rows(path, style):
        lines.append(line)
        fields.append(len(row))
    return lines, fields


def _counted(path: Path, style: CsvFormat) -> Counts | None:
    """`_listed`, by the numbers of separators: in a tenth of the time. None for a file with quotes, lines that end in a
    carriage return alone, or an encoding of which a separator is more than a byte.
    """
    if style.encoding not in ONE_BYTE:
        return None
    lines, fields = array("Q"), array("Q")
    line, rest, mark = 1, b"", ord(style.separator)
    with open_binary(path) as stream:
        while True:
            block = stream.read(BLOCK)
            text = rest + block + (b"" if block else b"\n")
            end = text.rfind(b"\n") + 1
            text, rest = text[:end], text[end:]
            if b'"' in text or text.count(b"\r") != text.count(b"\r\n") or len(rest) > LONGEST_FIELD:
                return None
            found = np.frombuffer(text, dtype=np.uint8)
            ends = np.flatnonzero(found == ord("\n"))
            counts = np.diff(np.searchsorted(np.flatnonzero(found == mark), ends), prepend=0) + 1
            kept = np.arange(len(ends)) >= style.header - line
            for place in np.flatnonzero(kept & (counts == 1)):
                begin = ends[place - 1] + 1 if place else 0
                kept[place] = bool(text[begin : ends[place]].decode(style.encoding, "replace").strip("\ufeff").strip())
            lines.frombytes((line + np.flatnonzero(kept)).astype(np.uint64).tobytes())
            fields.frombytes(counts[kept].astype(np.uint64).tobytes())
            line += len(ends)
            if not block:
                return lines, fields


def _rows(
    path: Path, style: CsvFormat, start: int | None = None, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The rows from line `start` (else from that of the names), each with the line it begins in; no empty ones."""
    with style.lines(path) as stream:
        above = (start or style.header) - 1
        for _ in range(above):
            stream.readline()
        reader, begin = csv.reader(stream, delimiter=style.separator, strict=strict), above + 1
        try:
            for row in reader:
                if len(row) > 1 or (row and (not row[0] or row[0].strip())):  # "" is a row
                    yield begin, row
                begin = above + reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise UserError(
                    f"{path} cannot be read as CSV: a quote that opens in line {begin} is not closed"
                ) from error
            raise UserError(f"{path} cannot be read as CSV: line {begin}: {error}") from error


def check_quotes(path: Path, style: CsvFormat) -> None:
    """Raises `UserError` for a quote that is not closed, or closed before the end of its field."""
    for _ in _rows(path, style, strict=True):
        pass


def check_layout(path: Path, style: CsvFormat, layout: Layout) -> None:
    """Raises `UserError` if the columns are separated otherwise, a title is above the names, or a row has another
    number of fields than there are names, but for one more or one less in each.
    """
    _check_separator(path, style)
    _check_title(path, style)
    columns, counts = len(layout.names), Counter(layout.fields)
    if len(counts) == 1 and (one_off(layout) or columns in counts):
        return
    wrong = [place for place, count in enumerate(layout.fields) if count != columns]
    if not wrong:
        return
    check_quotes(path, style)
    first = wrong[0]
    line, count = layout.lines[first], layout.fields[first]
    if first and count < columns and len(layout.fields) - first == len(wrong) <= TITLE_LINES:
        raise UserError(
            f"{path}: line {line} has {count} field{'s'[: count > 1]}, the header {columns}: if the table ends above "
            f"it, dataset.footer={len(wrong) + style.footer} leaves out what is below"
        )
    mend = f"put values that contain {_named(style.separator)} in quotes"
    if count < columns:
        mend = "give each row a field for each name, an empty one where a value is missing"
    raise UserError(f"{path}: line {line} has {count} field{'s'[: count > 1]}, the header {columns}: {mend}")


def one_off(layout: Layout) -> int:
    """1 where each row has one field more than there are names, -1 where the last name is empty and has no field."""
    counts = set(layout.fields)
    if counts == {len(layout.names) + 1}:
        return 1
    return -1 if counts == {len(layout.names) - 1} and not layout.names[-1] else 0


def _check_separator(path: Path, style: CsvFormat) -> None:
    """Raises `UserError` if another character separates the names, and the row below (if any) into as many fields."""
    with style.lines(path) as stream:
        lines = [line.strip("\r\n") for line in islice(stream, style.header + TITLE_LINES + 1)][style.header - 1 :]
    own = style.separator
    for above, (names, row) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        if any(own in line for line in lines[:above]):
            return
        for name in ALLOWED["separator"]:
            mark = SIGNS[name]
            found = names.count(mark)
            if mark == own or found <= names.count(own) or not (row.count(mark) == found or not row.strip()):
                continue
            if above and not (row.strip() and found > row.count(own)):
                continue
            comma = re.search(rf"(^|{re.escape(mark)})-?\d+,\d+\s*({re.escape(mark)}|$)", row)
            more = " dataset.decimal=comma" if comma and name != "comma" and style.decimal != "," else ""
            more += f" dataset.header={style.header + above}" if above else ""
            raise UserError(
                f"{path}: the columns are not separated by {_named(own)}; it begins with {shown(lines[0].strip())}. "
                f"dataset.separator={name}{more} reads it"
            )


def _check_title(path: Path, style: CsvFormat) -> None:
    """Raises `UserError` if the line for the names has few fields, and one of the next lines has a name for each."""
    rows = list(islice(_rows(path, style), SAMPLE))
    usual = Counter(len(row) for _, row in rows).most_common(1)[0][0] if rows else 0
    if usual < 2 or _filled(rows[0][1]) > usual / 2:
        return
    below = [(line, row) for line, row in rows[1 : TITLE_LINES + 1] if len(row) in (usual, usual - 1)]
    for least in (usual, usual - 1):  # one may have no name
        for line, row in below:
            if _filled(row) >= least and _filled(row) > _filled(rows[0][1]):
                raise UserError(
                    f"{path}: line {rows[0][0]} looks like a title, and the names are in line {line}: "
                    f"dataset.header={line} reads it"
                )


def _filled(row: Sequence[str]) -> int:
    return sum(bool(field.strip()) for field in row)


def _named(sign: str) -> str:
    return next(f"{name}s" for name, one in SIGNS.items() if one == sign)


def title_lines(path: Path, style: CsvFormat, wanted: Sequence[str]) -> int | None:
    """How many lines stand above the one that has all of these names; None if no line near the top has them."""
    top = islice(_rows(path, style, start=1), 2 * TITLE_LINES)
    found = (line for line, row in top if set(wanted) <= {field.strip() for field in row})
    line = next(found, None)
    return None if line is None or line > TITLE_LINES + 1 else line - 1
