"""Sources in zip files: checks of such a file, and a table joined from its members."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path


def sort_rows(content: bytes) -> bytes:
    """The lines of a CSV file: its first, the header, and then the rows sorted, each line ended by a newline.

    Empty lines and further copies of the header are left out, so that files can be joined end to end.
    """
    header, *rows = content.splitlines() or [b""]
    return b"\n".join([header, *sorted(row for row in rows if row not in (b"", header)), b""])


def zip_state(path: Path, member: str) -> str:
    """ "ok" for an undamaged zip file with the member; else a description of the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            if member not in archive.namelist():
                return f"a zip file without {member}; it holds {', '.join(archive.namelist()[:8])}"
            return "ok" if archive.testzip() is None else "a damaged zip file"
    except (zipfile.BadZipFile, EOFError, zlib.error):
        return f"no usable zip file but {described(path)}"


def join_members(path: Path, members: Iterable[str]) -> None:
    """The zip file at `path` replaced by the table of its members; any other file is left to be refused by its
    checksum.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [archive.read(member) for member in members]
    except (zipfile.BadZipFile, zlib.error, KeyError):
        return
    path.write_bytes(sort_rows(b"\n".join(parts)))


def described(path: Path) -> str:
    """A description of a wrong download."""
    with path.open("rb") as stream:
        start = stream.read(1024).lstrip().lower()
    kind = "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "a file"
    return f"{kind} of {path.stat().st_size:,} bytes"
