"""The store: one file a trial, one folder a release, written aside, synced and renamed: no reader sees half of one.

Every file ends with a checksum of what stands before it, and is held against it whenever it is read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from dpbench.errors import UserError
from dpbench.grid.seeds import digest
from dpbench.mechanisms.release import Release

STALE_SECONDS = 24 * 3600
SEAL = b', "checksum": "'  # what stands between the content of a file and its checksum
END = b'"}\n'

MOST_WARNINGS = 20  # of one folder

log = logging.getLogger(__name__)
_NAMED: dict[Path, set[Path]] = {}  # files that a warning has named, by folder


class StoreError(UserError):
    """The results folder cannot be written; what was stored before is untouched."""


@dataclass(frozen=True)
class Store:
    """The results of one experiment below `root`: <root>/<name>/trials/<id>.json and <root>/releases/<id>/."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """Where this experiment's plan, trials, figures and tables lie."""
        return self.root / self.name

    @property
    def trials_folder(self) -> Path:
        """One JSON file a trial."""
        return self.folder / "trials"

    @property
    def plan_file(self) -> Path:
        """The plan of the last run."""
        return self.folder / "plan.jsonl"

    def prepare(self) -> None:
        """Make the folders, see that they can be written, and drop leftovers of runs that were killed long ago.

        Raises `StoreError` if the folder cannot be written.
        """
        with self._writing(self.root):
            for folder in (self.trials_folder, self.root / "releases", self._aside):
                folder.mkdir(parents=True, exist_ok=True)
            for path in self._aside.iterdir():
                if path.stat().st_mtime < time.time() - STALE_SECONDS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.write_text(self.folder / ".writable", "")
        (self.folder / ".writable").unlink(missing_ok=True)

    @property
    def _aside(self) -> Path:
        return self.root / ".tmp"

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror or error}. What was stored before is untouched; free some "
                "space or set results=FOLDER to a folder that can be written, and run the same line again"
            ) from error

    # --- text files -------------------------------------------------------------------------------------------------

    def write_text(self, path: Path, text: str | Iterable[str]) -> None:
        """Write a file aside, sync it and rename it into place."""
        aside = self._aside / uuid.uuid4().hex
        with self._writing(path):
            try:
                with aside.open("w", encoding="utf-8") as file:
                    file.writelines([text] if isinstance(text, str) else text)
                    _sync(file)
                os.replace(aside, path)
            finally:
                aside.unlink(missing_ok=True)

    # --- trials -----------------------------------------------------------------------------------------------------

    def trial_ids(self) -> set[str]:
        """The ids of the stored trials whose files are whole. A damaged one is named in a warning, and left out."""
        return {path.stem for path in self._trial_files() if _content(path) is not None}

    def _trial_files(self) -> Iterator[Path]:
        if self.trials_folder.is_dir():
            with os.scandir(self.trials_folder) as entries:
                yield from (Path(entry.path) for entry in entries if entry.name.endswith(".json"))

    def write_trial(self, trial: dict[str, Any]) -> None:
        """Store a trial under its id."""
        self.write_text(self.trials_folder / f"{trial['id']}.json", sealed(trial))

    def read_trial(self, identity: str) -> dict[str, Any] | None:
        """A stored trial; None if there is none, or its file was damaged or belongs to another trial."""
        return _record(self.trials_folder / f"{identity}.json", identity)

    def read_trials(self, identities: Iterable[str]) -> list[dict[str, Any]]:
        """The stored ones of these trials, in the order given."""
        return [trial for trial in map(self.read_trial, identities) if trial is not None]

    def all_trials(self) -> Iterator[dict[str, Any]]:
        """Every stored trial, of any plan, sorted by id."""
        for path in sorted(self._trial_files()):
            if (trial := self.read_trial(path.stem)) is not None:
                yield trial

    # --- releases ---------------------------------------------------------------------------------------------------

    def release_folder(self, identity: str) -> Path:
        """The folder of one release."""
        return self.root / "releases" / identity

    def write_release(self, identity: str, release: Release, record: dict[str, Any]) -> bool:
        """Store a release with its record (id, key, cost, provenance). False if there is one already, which stays."""
        data, arrays = release.to_parts()
        aside, final = self._aside / uuid.uuid4().hex, self.release_folder(identity)
        with self._writing(final):
            try:
                aside.mkdir()
                with (aside / "arrays.npz").open("w+b") as file:
                    np.savez_compressed(file, allow_pickle=False, **arrays)
                    _sync(file)
                    file.seek(0)
                    arrays_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                with (aside / "release.json").open("w", encoding="utf-8") as text:
                    text.write(sealed({**record, "release": data, "arrays_sha256": arrays_sha256}))
                    _sync(text)
                if not final.exists():
                    os.rename(aside, final)
                    return True
            except FileExistsError:
                pass  # another process stored the same release first
            except OSError:
                if not final.exists():
                    raise
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return False

    def read_release(self, identity: str) -> tuple[Release, dict[str, Any]] | None:
        """A stored release and its record; None if there is none, or its files were damaged or are another release's.

        The release's arrays cannot be written to.
        """
        folder = self.release_folder(identity)
        record = _record(folder / "release.json", identity)
        if record is None:
            return None
        try:
            with (folder / "arrays.npz").open("rb") as file:
                whole = hashlib.file_digest(file, "sha256").hexdigest() == record.pop("arrays_sha256")
                if whole and digest(record["key"]) == identity:
                    file.seek(0)
                    with np.load(file, allow_pickle=False) as loaded:
                        arrays = dict(loaded)
                    for array in arrays.values():
                        array.setflags(write=False)
                    return Release.from_parts(record.pop("release"), arrays), record
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            pass
        _warn(folder, "is damaged, or not the release that its name says")
        return None

    def discard_release(self, identity: str) -> None:
        """Take a release away (moved aside first, so that no reader sees a part of it)."""
        aside, folder = self._aside / uuid.uuid4().hex, self.release_folder(identity)
        with self._writing(folder):
            try:
                os.rename(folder, aside)
            except FileNotFoundError:
                return
            shutil.rmtree(aside, ignore_errors=True)


# --- sealed files --------------------------------------------------------------------------------------------------


def sealed(record: dict[str, Any]) -> str:
    """The record as JSON (keys sorted, no NaN), its last entry the sha256 of all that stands before it."""
    body = json.dumps(record, sort_keys=True, allow_nan=False).removesuffix("}").encode()
    return (body + SEAL + hashlib.sha256(body).hexdigest().encode() + END).decode()


def _content(path: Path) -> bytes | None:
    """The sealed content of a file; None if there is none, or it is not as it was written (a warning says so)."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    body, seal = content[: -len(SEAL) - 64 - len(END)], content[-len(SEAL) - 64 - len(END) :]
    if seal == SEAL + hashlib.sha256(body).hexdigest().encode() + END:
        return body
    _warn(path, "is damaged, its checksum does not hold")
    return None


def _record(path: Path, identity: str) -> dict[str, Any] | None:
    """The record of a sealed file, if it is whole and has this id."""
    body = _content(path)
    if body is None:
        return None
    record: dict[str, Any] = json.loads(body + b"}")
    if record["id"] == identity:
        return record
    _warn(path, f"holds the results of {record['id']}")
    return None


def _warn(path: Path, problem: str) -> None:
    """Name a file that is not believed: once in a process, and of many in one folder the first ones."""
    named = _NAMED.setdefault(path.parent, set())
    if path in named:
        return
    named.add(path)
    if len(named) <= MOST_WARNINGS:
        log.warning("%s %s: it counts as not stored", path, problem)
    elif len(named) == MOST_WARNINGS + 1:
        log.warning("%s holds more such files; if an earlier version wrote them, give another results=", path.parent)


def _sync(file: IO[Any]) -> None:
    """What was written is on the disk before the file gets its name: a power cut leaves it whole or not there."""
    file.flush()
    os.fsync(file.fileno())
