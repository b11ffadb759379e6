"""The store of an experiment: logs of its trials, and of the releases and fits that experiments share.

Trials and releases are synced to the disk, fits and what was printed are not. See `grid.releases`, `grid.fits`.

`of_other_code` finds results of the same settings by another version of a mechanism, model or metric.
"""

from __future__ import annotations

import math
import os
import shutil
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench.errors import MALFORMED, UserError
from dpbench.files import Json
from dpbench.grid.line_fields import Scored, fields_of, fields_with_score
from dpbench.grid.log_file import warn
from dpbench.grid.records import Trial, TrialKey, score_to_dict, with_repetition, without_repetition
from dpbench.grid.trial_log import Log

if TYPE_CHECKING:
    from dpbench.grid.plan import Plan

STALE_SECONDS = 24 * 3600
SHARED = ("key", "experiment", "public", "nonprivate_inputs", "provenance", "release_provenance")  # by many trials


class StoreError(UserError):
    """The results folder cannot be written; what was stored before is untouched."""


@dataclass(frozen=True)
class Store:
    """The results of one experiment below `root`: <root>/<name>/trials/, <root>/releases/ and <root>/fits/.

    `metric`: the scores of this one are kept as the trials are scanned (`read_scores`).
    """

    root: Path
    name: str
    metric: str = ""

    @cached_property
    def folder(self) -> Path:
        """Where this experiment's plan, trials, figures and tables lie."""
        return self.root / self.name

    @cached_property
    def trials_folder(self) -> Path:
        """Where the trials lie."""
        return self.folder / "trials"

    @cached_property
    def trials(self) -> Log:
        """The trials of this experiment."""
        return Log(self.trials_folder, partial(fields_with_score, metric=self.metric) if self.metric else fields_of)

    @cached_property
    def releases(self) -> Log:
        """The releases of all experiments; one that an earlier version wrote is a folder next to them."""
        return Log(self.root / "releases")

    @cached_property
    def fits(self) -> Log:
        """The fits of all experiments."""
        return Log(self.root / "fits")

    @cached_property
    def printed(self) -> Log:
        """What releases, fits and trials of all experiments printed when they were made, by their ids."""
        return Log(self.root / "printed")

    @cached_property
    def claims_folder(self) -> Path:
        """What the runners are at work on."""
        return self.root / "claims"

    @cached_property
    def plan_file(self) -> Path:
        """The plan of the last run."""
        return self.folder / "plan.jsonl"

    def prepare(self) -> None:
        """Make the folders, see that they can be written, and drop leftovers of runs that were killed long ago.

        Raises `StoreError` if the folder cannot be written.
        """
        with self.writing(self.root):
            for folder in (
                self.trials_folder,
                self.root / "releases",
                self.root / "fits",
                self.root / "printed",
                self.claims_folder,
                self._aside,
            ):
                folder.mkdir(parents=True, exist_ok=True)
            for path in self._aside.iterdir():
                with suppress(FileNotFoundError):  # another runner has renamed it just now
                    if path.stat().st_mtime < time.time() - STALE_SECONDS:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.write_text(self.folder / ".writable", "")
        (self.folder / ".writable").unlink(missing_ok=True)

    @cached_property
    def _aside(self) -> Path:
        return self.root / ".tmp"

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """What fails to be written to `path` within this context raises `StoreError`."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror or error}. What was stored before is untouched; free some "
                "space or set results=FOLDER to a folder that can be written, and run the same line again"
            ) from error

    def write_text(self, path: Path, text: str | Iterable[str]) -> None:
        """Write a file aside, sync it to the disk and rename it into place: no reader sees half of it."""
        aside = self._aside / uuid.uuid4().hex
        with self.writing(path):
            try:
                with aside.open("w") as file:
                    file.writelines([text] if isinstance(text, str) else text)
                    file.flush()
                    os.fsync(file.fileno())  # a power cut leaves the file whole or not there
                os.replace(aside, path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise

    # --- trials -----------------------------------------------------------------------------------------------------

    def write_trial(self, trial: Trial) -> None:
        """Store a trial under its id, in place of one that is stored."""
        record = trial.to_dict()
        shared = {name: record.pop(name) for name in SHARED}
        shared["key"], record["repetition"] = without_repetition(shared["key"])
        with self.writing(self.trials_folder):
            self.trials.append(record, shared, turn=self.trials.next_turn(trial.id))

    def write_printed(self, identity: str, text: str) -> None:
        """Keep what was printed when a release, a fit or a trial was made; nothing if it was and is nothing."""
        if text or identity in self.printed.entries:
            with self.writing(self.root / "printed"):
                self.printed.append({"id": identity, "text": text}, turn=self.printed.next_turn(identity))

    def read_printed(self, identity: str) -> str:
        """What was printed, by what was last seen of the log."""
        return "".join(record["text"] for record in self.printed.records([identity]))

    def read_trials(self, keys: Iterable[TrialKey]) -> Iterator[Trial]:
        """The stored ones of these trials, in the order given. A damaged one is named in a warning, and left out."""
        self.trials.scan()
        asked = {key.id: key for key in keys}
        return filter(None, (self._trial(record, asked[record["id"]]) for record in self.trials.records(asked)))

    def read_scores(self, key: TrialKey, ids: Sequence[str]) -> list[Scored | None]:
        """What each of these trials scored by the store's `metric`; `key` is theirs but for the repetition. Those that
        are done and have such a score are not read for it. None: it is not stored, or cannot be read, as by
        `read_trials`.
        """
        entries = self.trials.scan()
        known = [entries.get(identity) for identity in ids]
        found = [None if entry is None else entry.scored for entry in known]
        rest = {ids[place]: place for place, entry in enumerate(known) if entry is not None and entry.scored is None}
        for record in self.trials.records(rest):
            if (trial := self._trial(record, key)) is not None:
                spent_epsilon = math.nan if trial.spent is None else trial.spent.epsilon
                score = next((score_to_dict(score) for score in trial.scores if score.name == self.metric), None)
                found[rest[trial.id]] = Scored(trial.status, spent_epsilon, score)
        return found

    def all_trials(self, prefix: str = "", but: Container[str] = ()) -> Iterator[Trial]:
        """Every stored trial, of any plan, whose id begins so, sorted by id, without those of the ids `but`."""
        ids = sorted(identity for identity in self.trials.scan() if identity.startswith(prefix) and identity not in but)
        return filter(None, map(self._trial, self.trials.records(ids)))

    def _trial(self, record: Json, key: TrialKey | None = None) -> Trial | None:
        try:
            if key is None and "repetition" in record:
                record["key"] = with_repetition(record["key"], record["repetition"])
            return Trial.from_dict(record, key)
        except MALFORMED:
            warn(self.trials_folder / record["id"], "cannot be read as a trial of this version of dpbench")
            self.trials.discard(record["id"])
            return None


def of_other_code(plan: Plan, store: Store) -> dict[str, Trial]:
    """Trials of the plan that are not stored -> stored ones that other versions of the code made."""
    stored, planned = store.trials.scan(), set(plan.trial_ids)
    if planned <= stored.keys() or stored.keys() <= planned:
        return {}
    missing = {asked: identity for asked, identity in questions(plan) if identity not in stored}
    asked = ((missing.get(trial.key.unversioned().id), trial) for trial in store.all_trials())
    return {identity: trial for identity, trial in asked if identity is not None}


def questions(plan: Plan) -> Iterator[tuple[str, str]]:
    """The identity of what each trial of a plan asks, whichever version answers it, and that of the trial."""
    for item in plan.releases:
        for trial in item.trials:
            yield trial.unversioned().id, trial.id
