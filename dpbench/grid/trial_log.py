"""Append-only logs: a folder of files of sealed lines, one file for each process that writes.

No two processes write to one file, and what a kill or a full disk leaves of a last line is not a line: nothing that was
stored is ever touched again. A record may have bytes of its own, such as arrays, in the file <name>.bin next to it.
What many records have in common is a line of its own, which they name by its place. A record that is written anew has a
higher `turn`, and stands for those before it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from dpbench.errors import UserError
from dpbench.files import Json
from dpbench.grid.line_fields import LineFields, Scored, fields_of
from dpbench.grid.log_file import BYTES, SUFFIX, Place, Writer, content, open_file, record_of, unsealed, warn

BUFFER = 2**20  # bytes that are read of a file at once
_ID = re.compile(rb'"id": "(\w+)"')


class Entry(NamedTuple):
    """Where a record stands, which turn it is, its `status`, if it has one, and what it shares with others.

    `scored`: what its line said of its score, if that was looked for.
    """

    place: Place
    turn: int
    status: str | None
    shared: Json | None
    scored: Scored | None = None


class Log:
    """The records in a folder, by id: `entries`, as `scan` saw them last. Several threads may share it.

    `fields_of` finds what a line says without parsing it, if it can.
    """

    def __init__(self, folder: Path, fields_of: Callable[[bytes], LineFields | None] = fields_of) -> None:
        self._folder, self._lock, self._fields_of = folder, threading.RLock(), fields_of
        self._writer: Writer | None = None
        self._shared: dict[tuple[str, int], Json | None] = {}
        self.unsynced: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._read_to: dict[str, int] = {}
        self._damaged: list[tuple[Path, int, str]] = []
        self._useless: dict[str, Entry] = {}
        self.empty: list[str] = []  # files, of a run that was killed or met a full disk as it began, or cut
        self.unreadable: dict[str, str] = {}  # files, and why
        self.entries: dict[str, Entry] = {}

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, record: Json, shared: Json | None = None, body: bytes = b"", turn: int = 0) -> Place:
        """Write a record, with what it shares with others and its bytes; where it stands.

        Raises `OSError`; the file is then left as it was, and the next record goes to a new one.
        """
        with self._lock:
            writer = self._writer or Writer(self._folder)
            self._writer = None  # until all is written
            place = writer.write(record, shared, body, turn)
            self._writer = writer
            self._enter(str(record["id"]), Entry(place, turn, record.get("status"), shared))
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
        known = self.entries.get(identity) or self._useless.get(identity)
        return 0 if known is None else known.turn + 1

    # --- reading ------------------------------------------------------------------------------------------------------

    def scan(self) -> Mapping[str, Entry]:
        """Look for what was written since the last look: the entries of all whole records.

        A damaged record is named in a warning, unless it was written anew, and so is a file that cannot be read.
        Raises `UserError` if the folder cannot be read.
        """
        with self._lock:
            files = self._files()
            self.empty = sorted(name for name, size in files.items() if size == 0)
            if any(files.get(name, -1) < size for name, size in self._read_to.items()):  # cut, or taken away
                self._forget()
            for name in sorted(files):
                if files[name] > self._read_to.get(name, 0):
                    self._read_file(name)
            for path, start, identity in self._damaged:
                if identity not in self.entries:
                    self._warn(path, start)
            for name, problem in self.unreadable.items():
                warn(self._folder / name, problem)
            return self.entries

    def damaged(self) -> list[str]:
        """The records that `scan` found damaged, and not written anew."""
        return [identity for _, _, identity in self._damaged if identity not in self.entries]

    def discard(self, identity: str) -> None:
        """Count a record as not stored, which is whole but of no use."""
        self._useless[identity] = self.entries.pop(identity)

    def useless(self) -> list[str]:
        """The records that were discarded, and not written anew."""
        return sorted(self._useless.keys() - self.entries.keys())

    def set_aside(self, folder: Path, identities: Collection[str] = ()) -> int:
        """Move what is damaged, and the records of these ids, to files in `folder`; how many there were.

        Their lines become blanks, so that all else stays in its place. Raises `OSError`.
        """
        lines = {(path, start) for path, start, _ in self._damaged}
        for entry in (*self._useless.values(), *(self.entries[name] for name in identities)):
            lines.add((self._folder / entry.place[0], entry.place[1]))
        folder.mkdir(parents=True, exist_ok=True)
        for path, start in sorted(lines):
            with path.open("r+b") as file:
                file.seek(start)
                line = file.readline()
                (folder / f"{path.stem}-{start}{SUFFIX}").write_bytes(line)
                file.seek(start)
                file.write(b" " * (len(line) - 1) + b"\n")
        files = {*self.unreadable, *self.empty}
        for name in files:
            os.rename(self._folder / name, folder / name)
        self._forget()
        return len(lines) + len(files)

    def read(self, place: Place) -> tuple[Json, bytes] | None:
        """The record that stands at a place, and its bytes; None if it is damaged or not there."""
        name, start, length = place
        line = self._piece(name, start, length)
        record = None if line is None else unsealed(line)
        whole = None if record is None else self._whole(name, record)
        if whole is None or "body" not in whole:
            return None if whole is None else (whole, b"")
        body = self._bytes(name, whole.pop("body"))
        return None if body is None else (whole, body)

    def records(self, identities: Iterable[str]) -> Iterator[Json]:
        """The records of these ids that are stored, without their bytes; of many ids faster than `read`."""
        maps: dict[str, mmap.mmap | bytes] = {}
        for identity in identities:
            if (entry := self.entries.get(identity)) is None:
                continue
            whole = self._found(identity, entry.place, maps)
            if whole is None:  # the file may have grown since it was mapped, or could not be opened
                del maps[entry.place[0]]
                whole = self._found(identity, entry.place, maps)
            if whole is None:
                self._warn(self._folder / entry.place[0], entry.place[1])
                del self.entries[identity]
            else:
                yield whole

    def _found(self, identity: str, place: Place, maps: dict[str, mmap.mmap | bytes]) -> Json | None:
        """The record of this id in the bytes of its file, which are mapped if they are not among `maps`."""
        name, start, length = place
        if name not in maps:
            maps[name] = self._mapped(name)
        record = unsealed(maps[name][start : start + length])
        return None if record is None or record.get("id") != identity else self._whole(name, record)

    def shared(self, identities: Iterable[str]) -> Iterator[Json]:
        """What the records of these ids that are stored share with others, once; one that shares nothing, itself."""
        known, alone = dict[int, Json](), list[str]()
        for identity in identities:
            if (entry := self.entries.get(identity)) is None:
                continue
            if entry.shared is None:
                alone.append(identity)
            else:
                known[id(entry.shared)] = entry.shared
        yield from known.values()
        yield from self.records(alone)

    def _files(self) -> dict[str, int]:
        """The size of each file that can be read; of the others, why not."""
        found: dict[str, int] = {}
        self.unreadable.clear()
        try:
            with os.scandir(self._folder) as entries:
                logs = [entry for entry in entries if entry.name.endswith(SUFFIX)]
        except (FileNotFoundError, NotADirectoryError):
            return found
        except OSError as error:
            raise UserError(f"cannot read {self._folder}: {error.strerror}; give another results=FOLDER") from error
        for entry in logs:
            try:
                with open_file(entry.path) as file:  # on NFS, to open a file is to see its size of now
                    about = os.fstat(file.fileno())
            except OSError as error:
                if entry.is_symlink() or not isinstance(error, FileNotFoundError):  # else it was taken away just now
                    self.unreadable[entry.name] = f"cannot be read ({error.strerror})"
            else:
                if stat.S_ISREG(about.st_mode):
                    found[entry.name] = about.st_size
                else:
                    self.unreadable[entry.name] = "is no file"
        return found

    def _read_file(self, name: str) -> None:
        at, path = self._read_to.get(name, 0), self._folder / name
        with path.open("rb", buffering=BUFFER) as file:
            file.seek(at)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written, or was cut when its writer was killed
                start = at
                at += len(line)
                if line.startswith(b" ") and line.isspace():
                    continue  # it was set aside
                place, body = (name, start, len(line)), content(line)
                if body is None or not (self._skim(place, body) or self._parse(place, body)):
                    known = _ID.search(line)
                    self._damaged.append((path, start, known[1].decode() if known else path.stem))
        self._read_to[name] = at

    def _skim(self, place: Place, body: bytes) -> bool:
        """Enter a record by what its line says of itself, if it says all that is to know."""
        if (line := self._fields_of(body)) is None:
            return False
        identity, status, turn, start, scored = line
        if (shared := self._shared.get((place[0], start))) is None:
            return False
        self._enter(identity, Entry(place, turn, status, shared, scored))
        return True

    def _parse(self, place: Place, body: bytes) -> bool:
        """Enter a record, or what records share, if it is whole."""
        record = record_of(body)
        if record is not None and "shared" in record:
            self._shared[place[:2]] = _mapping(record["shared"])
            return True
        if record is None or not self._understood(place[0], record):
            return False
        shared = self._shared_at(place[0], record["of"]) if "of" in record else None
        self._enter(record["id"], Entry(place, record.get("turn", 0), record.get("status"), shared))
        return True

    def _understood(self, name: str, record: Json) -> bool:
        """Whether it has an id, a turn, and what it shares with others."""
        plain = isinstance(record.get("id"), str) and isinstance(record.get("turn", 0), int)
        return plain and ("of" not in record or self._shared_at(name, record["of"]) is not None)

    @staticmethod
    def _warn(path: Path, start: int) -> None:
        warn(path, f"is damaged{f' at byte {start}' if start else ''}, its checksum does not hold")

    def _enter(self, identity: str, entry: Entry) -> None:
        known = self.entries.get(identity)
        if known is None or known.turn < entry.turn:
            self.entries[identity] = entry

    def _whole(self, name: str, record: Json) -> Json | None:
        """The record with what it shares."""
        if "of" not in record:
            return record
        shared = self._shared_at(name, record.pop("of"))
        return None if shared is None else {**shared, **record}

    def _shared_at(self, name: str, place: Any) -> Json | None:
        match place:
            case [int(start), int(length)]:
                if (name, start) not in self._shared:
                    line = self._piece(name, start, length)
                    record = None if line is None else unsealed(line)
                    found = None if record is None else _mapping(record.get("shared"))
                    if found is None:
                        return None  # and is looked for again
                    self._shared[name, start] = found
                return self._shared[name, start]
        return None

    def _bytes(self, name: str, place: Any) -> bytes | None:
        match place:
            case [int(start), int(length), str(sha256)]:
                body = self._piece(name.removesuffix(SUFFIX) + BYTES, start, length)
                return body if body is not None and hashlib.sha256(body).hexdigest() == sha256 else None
        return None

    def _piece(self, name: str, start: int, length: int) -> bytes | None:
        try:
            file = _opened(f"{self._folder}/{name}")  # held: another thread may have it dropped, and so closed
            if start < 0 or not 0 <= length <= os.fstat(file.fileno()).st_size - start:
                return None
            return os.pread(file.fileno(), length, start)
        except OSError:
            return None

    def _mapped(self, name: str) -> mmap.mmap | bytes:
        """The bytes of a file; none if it was cut or taken away since it was seen."""
        try:
            with open_file(f"{self._folder}/{name}") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return b""


def _mapping(value: Any) -> Json | None:
    return value if isinstance(value, dict) else None


@lru_cache(maxsize=16)
def _opened(path: str) -> IO[bytes]:
    """A file that is read again and again; one that is dropped is closed."""
    return open_file(path)
