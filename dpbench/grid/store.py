"""The store: one file a trial, one folder a release, written aside and renamed, so that a reader never sees half."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dpbench.errors import UserError
from dpbench.mechanisms.release import Release

STALE_SECONDS = 24 * 3600


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

    @contextmanager
    def running(self, identity: str) -> Iterator[None]:
        """Mark a release as being worked on, so that `started` names it should the process die."""
        mark = self._aside / f"running-{identity}"
        mark.touch()
        yield
        mark.unlink(missing_ok=True)

    def started(self, identities: Iterable[str]) -> list[str]:
        """Those of these releases whose work began and did not end; their marks are taken away."""
        found = []
        for identity in identities:
            mark = self._aside / f"running-{identity}"
            if mark.exists():
                found.append(identity)
                mark.unlink(missing_ok=True)
        return found

    # --- text files -------------------------------------------------------------------------------------------------

    def write_text(self, path: Path, text: str | Iterable[str]) -> None:
        """Write a file aside and rename it into place."""
        aside = self._aside / uuid.uuid4().hex
        with self._writing(path):
            try:
                with aside.open("w", encoding="utf-8") as file:
                    file.writelines([text] if isinstance(text, str) else text)
                os.replace(aside, path)
            finally:
                aside.unlink(missing_ok=True)

    # --- trials -----------------------------------------------------------------------------------------------------

    def trial_ids(self) -> set[str]:
        """The ids of the stored trials."""
        if not self.trials_folder.is_dir():
            return set()
        with os.scandir(self.trials_folder) as entries:
            return {entry.name[:-5] for entry in entries if entry.name.endswith(".json")}

    def write_trial(self, trial: dict[str, Any]) -> None:
        """Store a trial under its id."""
        text = json.dumps(trial, sort_keys=True, indent=1, allow_nan=False) + "\n"
        self.write_text(self.trials_folder / f"{trial['id']}.json", text)

    def read_trial(self, identity: str) -> dict[str, Any] | None:
        """A stored trial; None if there is none, or the file was damaged from outside."""
        try:
            with open(self.trials_folder / f"{identity}.json", encoding="utf-8") as file:
                trial: dict[str, Any] = json.load(file)
                return trial
        except (FileNotFoundError, ValueError):
            return None

    def read_trials(self, identities: Iterable[str]) -> list[dict[str, Any]]:
        """The stored ones of these trials, in the order given."""
        return [trial for trial in map(self.read_trial, identities) if trial is not None]

    # --- releases ---------------------------------------------------------------------------------------------------

    def release_folder(self, identity: str) -> Path:
        """The folder of one release."""
        return self.root / "releases" / identity

    def write_release(self, identity: str, release: Release, record: dict[str, Any]) -> None:
        """Store a release with its record (key, cost, provenance); one that is there already stays."""
        data, arrays = release.to_parts()
        aside, final = self._aside / uuid.uuid4().hex, self.release_folder(identity)
        with self._writing(final):
            try:
                aside.mkdir()
                np.savez_compressed(aside / "arrays.npz", allow_pickle=False, **arrays)
                text = json.dumps({**record, "release": data}, sort_keys=True, indent=1, allow_nan=False)
                (aside / "release.json").write_text(text + "\n", encoding="utf-8")
                if not final.exists():
                    os.rename(aside, final)
            except FileExistsError:
                pass  # another process stored the same release first
            except OSError:
                if not final.exists():
                    raise
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    def read_release(self, identity: str) -> tuple[Release, dict[str, Any]] | None:
        """A stored release and its record; None if there is none, or its files were damaged from outside."""
        folder = self.release_folder(identity)
        try:
            record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
            with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
                return Release.from_parts(record.pop("release"), dict(arrays)), record
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
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
