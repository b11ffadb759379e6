"""Append-only logs: a folder of files of sealed lines, one file for each process that writes.

No two processes write to one file, and what a kill or a full disk leaves of a last line is not a line: nothing that was
stored is ever touched again. A record may have bytes of its own, such as arrays, in the file <name>.bin beside. What
many records have in common is a line of its own, which they name by its place. A record that is written anew has a
higher `turn`, and stands for those before it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from dpbench.grid.sealed import sealed, unsealed, warn
from dpbench.grid.seeds import canonical

SUFFIX, BYTES = ".jsonl", ".bin"
_ID = re.compile(rb'"id": "(\w+)"')
Place = tuple[str, int, int]  # of a line: its file, where it starts, and its length


class Entry(NamedTuple):
    """Where a record stands, which turn it is, and its `status`, if it has one."""

    place: Place
    turn: int
    status: str | None


class Log:
    """The records in a folder, by id: `entries`, as `scan` saw them last. Several threads may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.RLock()
        self._writer: _Writer | None = None
        self._shared: dict[tuple[str, int], dict[str, Any] | None] = {}
        self.unsynced: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._read_to: dict[str, int] = {}
        self._damaged: list[tuple[Path, int, str]] = []
        self.entries: dict[str, Entry] = {}

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(
        self, record: Mapping[str, Any], shared: Mapping[str, Any] | None = None, body: bytes = b"", turn: int = 0
    ) -> Place:
        """Write a record, with what it shares with others and its bytes; where it stands.

        Raises `OSError`; the file is then left as it was, and the next record goes to a new one.
        """
        with self._lock:
            writer = self._writer or _Writer(self._folder)
            self._writer = None  # until all is written
            place = writer.write(record, shared, body, turn)
            self._writer = writer
            self._enter(str(record["id"]), Entry(place, turn, record.get("status")))
            self._read_to[place[0]] = place[1] + place[2]
            self.unsynced.add(place[0])
        return place

    def sync(self) -> None:
        """Have the `unsynced` files on the disk, whichever process of this machine wrote them.

        Raises `OSError`, also if one was taken away.
        """
        while self.unsynced:
            path = self._folder / self.unsynced.pop()
            beside = path.with_suffix(BYTES)
            for one in [path, beside] if beside.exists() else [path]:
                with one.open("rb") as file:
                    os.fsync(file.fileno())

    def next_turn(self, identity: str) -> int:
        """The turn of a record that is to stand for all before it."""
        return self.entries[identity].turn + 1 if identity in self.entries else 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def scan(self) -> Mapping[str, Entry]:
        """Look for what was written since the last look: the entries of all whole records.

        A damaged record is named in a warning, unless it was written anew.
        """
        with self._lock:
            files = self._files()
            if any(files.get(name, -1) < size for name, size in self._read_to.items()):  # cut, or taken away
                self._forget()
            for name in sorted(files):
                if files[name] > self._read_to.get(name, 0):
                    self._read_file(name)
            for path, start, identity in self._damaged:
                if identity not in self.entries:
                    self._warn(path, start)
            return self.entries

    def damaged(self) -> list[str]:
        """The records that `scan` found damaged, and not written anew."""
        return [identity for _, _, identity in self._damaged if identity not in self.entries]

    def read(self, place: Place) -> tuple[dict[str, Any], bytes] | None:
        """The record that stands at a place, and its bytes; None if it is damaged or not there."""
        name, start, length = place
        line = self._piece(name, start, length)
        record = None if line is None else unsealed(line)
        whole = None if record is None else self._whole(name, record)
        if whole is None or "body" not in whole:
            return None if whole is None else (whole, b"")
        body = self._bytes(name, whole.pop("body"))
        return None if body is None else (whole, body)

    def records(self, identities: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The records of these ids that are stored, without their bytes; of many ids faster than `read`."""
        maps: dict[str, mmap.mmap] = {}
        for identity in identities:
            if (entry := self.entries.get(identity)) is None:
                continue
            name, start, length = entry.place
            if name not in maps:
                with (self._folder / name).open("rb") as file:
                    maps[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            record = unsealed(maps[name][start : start + length])
            whole = None if record is None else self._whole(name, record)
            if whole is None:
                self._warn(self._folder / name, start)
                del self.entries[identity]
            else:
                yield whole

    def _files(self) -> dict[str, int]:
        """The size of each file."""
        found = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(SUFFIX):
                        with open(entry.path, "rb") as file:  # on NFS, to open a file is to see its size of now
                            found[entry.name] = os.fstat(file.fileno()).st_size
        except (FileNotFoundError, NotADirectoryError):
            pass
        return found

    def _read_file(self, name: str) -> None:
        at, path = self._read_to.get(name, 0), self._folder / name
        with path.open("rb") as file:
            file.seek(at)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written, or was cut when its writer was killed
                record, start = unsealed(line), at
                at += len(line)
                if record is not None and "shared" in record:
                    self._shared[name, start] = record["shared"]
                elif record is not None and ("of" not in record or self._shared_at(name, record["of"]) is not None):
                    place = (name, start, len(line))
                    self._enter(record["id"], Entry(place, record.get("turn", 0), record.get("status")))
                else:
                    known = _ID.search(line)
                    self._damaged.append((path, start, known[1].decode() if known else path.stem))
        self._read_to[name] = at

    @staticmethod
    def _warn(path: Path, start: int) -> None:
        warn(path, f"is damaged{f' at byte {start}' if start else ''}, its checksum does not hold")

    def _enter(self, identity: str, entry: Entry) -> None:
        known = self.entries.get(identity)
        if known is None or known.turn < entry.turn:
            self.entries[identity] = entry

    def _whole(self, name: str, record: dict[str, Any]) -> dict[str, Any] | None:
        """The record with what it shares."""
        if "of" not in record:
            return record
        shared = self._shared_at(name, record.pop("of"))
        return None if shared is None else {**shared, **record}

    def _shared_at(self, name: str, place: list[int]) -> dict[str, Any] | None:
        start, length = place
        if (name, start) not in self._shared:
            line = self._piece(name, start, length)
            record = None if line is None else unsealed(line)
            self._shared[name, start] = None if record is None else record["shared"]
        return self._shared[name, start]

    def _bytes(self, name: str, place: list[Any]) -> bytes | None:
        start, length, sha256 = place
        body = self._piece(name.removesuffix(SUFFIX) + BYTES, start, length)
        return body if body is not None and hashlib.sha256(body).hexdigest() == sha256 else None

    def _piece(self, name: str, start: int, length: int) -> bytes | None:
        try:
            return os.pread(_opened(f"{self._folder}/{name}").fileno(), length, start)
        except OSError:
            return None


@lru_cache(maxsize=16)
def _opened(path: str) -> IO[bytes]:
    """A file that is read again and again; one that is dropped is closed."""
    return open(path, "rb", buffering=0)


class _Writer:
    """The file of this process, and the one of its bytes."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{uuid.uuid4().hex}{SUFFIX}"
        self._path = folder / self.name
        self._files: dict[str, tuple[int, int]] = {}  # descriptor and end of each
        self._shared: dict[str, list[int]] = {}

    def write(self, record: Mapping[str, Any], shared: Mapping[str, Any] | None, body: bytes, turn: int) -> Place:
        """See `Log.append`."""
        line: dict[str, Any] = dict(record)
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
        """Write at the end of a file, or leave it as it is; where it was written."""
        if suffix not in self._files:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(self._path.with_suffix(suffix), flags, 0o666)
            weakref.finalize(self, os.close, descriptor)
            self._files[suffix] = descriptor, 0
        (descriptor, end), left = self._files[suffix], memoryview(content)
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, end)
            raise
        self._files[suffix] = descriptor, end + len(content)
        return end
