"""Sealed lines: JSON that ends with a checksum of what stands before it, and counts only if the checksum holds."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from dpbench.files import Json

SEAL = b', "checksum": "'  # what stands between the content of a line and its checksum
END = b'"}\n'
SEALED = len(SEAL) + 64 + len(END)  # bytes of the last entry
MOST_WARNINGS = 20  # of one folder

log = logging.getLogger(__name__)
_NAMED: dict[Path, set[str]] = {}  # what a warning has named, by folder


def sealed(record: Json) -> str:
    """The record as a line of JSON (keys sorted, no NaN), its last entry the sha256 of all that stands before it."""
    body = json.dumps(record, sort_keys=True, allow_nan=False).removesuffix("}").encode()
    return (body + SEAL + hashlib.sha256(body).hexdigest().encode() + END).decode()


def content(line: bytes) -> bytes | None:
    """What a sealed line holds, but for the last bracket; None if it was changed since it was written."""
    body = line[:-SEALED]
    return body if line[-SEALED:] == SEAL + hashlib.sha256(body).hexdigest().encode() + END else None


def record_of(body: bytes) -> Json | None:
    """The record that `content` is of; None if it is nothing that `sealed` writes."""
    try:
        record: Json = json.loads(body.decode() + "}")
    except (ValueError, RecursionError):
        return None
    return record


def unsealed(line: bytes) -> Json | None:
    """The record of a sealed line; None if it was changed since it was written, or nothing that `sealed` writes."""
    body = content(line)
    return None if body is None else record_of(body)


def warn(path: Path, problem: str) -> None:
    """Log what counts as not stored: once a process, and of much in one folder the first."""
    named, what = _NAMED.setdefault(path.parent, set()), f"{path} {problem}"
    if what in named:
        return
    named.add(what)
    if len(named) <= MOST_WARNINGS:
        log.warning("%s: it counts as not stored", what)
    elif len(named) == MOST_WARNINGS + 1:
        log.warning("%s holds more such files; if an earlier version wrote them, give another results=", path.parent)
