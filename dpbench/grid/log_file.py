"""The files of a log, each written by one process, and their lines: JSON that ends with a checksum.

A line counts only if its checksum holds.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO

from dpbench.files import Json
from dpbench.grid.seeds import canonical

SEAL = b', "checksum": "'  # what stands between the content of a line and its checksum
END = b'"}\n'
SEALED = len(SEAL) + 64 + len(END)  # bytes of the last entry
MOST_WARNINGS = 20  # of one folder

log = logging.getLogger(__name__)
_NAMED: dict[Path, set[str]] = {}  # what a warning has named, by folder
SUFFIX, BYTES = ".jsonl", ".bin"
Place = tuple[str, int, int]  # of a line: its file, where it starts, and its length


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
    """Log what counts as not stored: once per process, and of much in one folder the first."""
    named, what = _NAMED.setdefault(path.parent, set()), f"{path} {problem}"
    if what in named:
        return
    named.add(what)
    if len(named) <= MOST_WARNINGS:
        log.warning("%s: it counts as not stored", what)
    elif len(named) == MOST_WARNINGS + 1:
        log.warning("%s holds more such files; if an earlier version wrote them, give another results=", path.parent)


def open_file(path: str) -> IO[bytes]:
    """The file, or whatever is there: a pipe does not have its reader wait for a writer."""
    return open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


class Writer:
    """The file of this process, and the one of its bytes."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{uuid.uuid4().hex}{SUFFIX}"
        self._path = folder / self.name
        self._files: dict[str, tuple[int, int, Callable[[], object]]] = {}  # descriptor, end, and what closes each
        self._shared: dict[str, list[int]] = {}

    def write(self, record: Json, shared: Json | None, body: bytes, turn: int) -> Place:
        """Append a record, as `Log.append` has it."""
        line: Json = dict(record)
        if turn:
            line["turn"] = turn
        if body:
            line["body"] = [self._append(BYTES, body), len(body), hashlib.sha256(body).hexdigest()]
        if shared:
            text = canonical(shared)
            if text not in self._shared:
                common = sealed({"shared": dict(shared)}).encode()
                self._shared[text] = [self._append(SUFFIX, common), len(common)]
            line["of"] = self._shared[text]
        content = sealed(line).encode()
        return self.name, self._append(SUFFIX, content), len(content)

    def _append(self, suffix: str, content: bytes) -> int:
        """Write at the end of a file, or leave it as it is; where it was written. No file is left without a line."""
        path = self._path.with_suffix(suffix)
        if suffix not in self._files:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o666)
            self._files[suffix] = descriptor, 0, weakref.finalize(self, os.close, descriptor)
        (descriptor, end, close), left = self._files[suffix], memoryview(content)
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, end)
            if end == 0:
                del self._files[suffix]
                close()
                path.unlink()
            raise
        self._files[suffix] = descriptor, end + len(content), close
        return end
