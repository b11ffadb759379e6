"""The odometer: what all releases of one table have spent together, in a log next to the secret salt.

A release is entered before any noise is drawn, at the budget that was asked for, and again before anything is
written, with its ledger. So a process that dies has spent at least what it gave away: what was entered and has no
ledger counts in full. Only a release that drew no noise is taken back.

A table is known again by its path and name, and by its content: it may grow, and it may be copied. Both are keyed with
the salt, so that the log tells nobody of the rows.

**Source** Privacy odometers and filters: Rogers, Roth, Ullman and Vadhan (2016), arXiv 1605.08294. The sum is that of
`accounting.together`. It holds for budgets that are fixed whatever earlier releases show.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from dpbench.data.dataset import Dataset
from dpbench.data.load import fingerprint
from dpbench.data.tabular import csv_sha256, load_csv
from dpbench.errors import UserError
from dpbench.files import Json
from dpbench.grid.records import spent_from_dict, spent_to_dict
from dpbench.grid.seeds import canonical, keyed, salt_file, signature
from dpbench.grid.spending import ROUNDING
from dpbench.privacy.accounting import Spent, together
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger

FILE = "odometer.jsonl"
DECLARED = "data declare"  # in place of a mechanism: bounds and levels that were paid for


@dataclass(frozen=True)
class TableKey:
    """By which a table is known again: its path and name, and its content, both keyed; `label` names it to its user."""

    place: str
    content: str
    label: str

    @classmethod
    def of(cls, dataset: Dataset) -> TableKey:
        """The key of a data set whose rows are read from a file, or made by a loader."""
        path = "" if dataset.path is None else str(Path(dataset.path).resolve())
        if dataset.load is load_csv:
            content = csv_sha256(dataset)
        else:
            found = fingerprint(dataset)
            content = canonical([found["_target_"], found["sources"], found["parameters"]])
        place = signature("odometer", canonical([path, dataset.name]))
        return cls(place, keyed(content), Path(path).name or dataset.name)


@dataclass(frozen=True)
class Entry:
    """One release in the log: when, by which mechanism, the budget asked, and what its ledger spent, once it is there.

    `ledger` is None for a release that was begun and left none.
    """

    id: str
    when: str
    mechanism: str
    budget: Budget
    spent: Spent | None = None
    ledger: Ledger | None = None

    @property
    def cost(self) -> Spent:
        """What it counts: what its ledger spent, or all that was asked for."""
        return self.spent or Spent(self.budget.epsilon, self.budget.delta, math.inf, None)


@dataclass(frozen=True)
class Sum:
    """The releases of one table, oldest first, and the limit that its user set on their epsilon together, if any."""

    entries: tuple[Entry, ...]
    limit: float | None = None

    @property
    def total(self) -> Spent:
        """The joint cost. Its delta is the largest one asked for, where all have a ledger that composes by mu or rho;
        else deltas are added up, too (`accounting.together`).
        """
        return together([entry.cost for entry in self.entries])


class Odometer:
    """The log of this user, in the folder of the salt, which nobody else may read."""

    def __init__(self) -> None:
        self.path = salt_file().parent / FILE

    def of(self, table: TableKey) -> Sum:
        """What is entered of a table. Raises `UserError` for a log that cannot be read."""
        with self._open() as file:
            return _sum_of(table, _lines(file, self.path))

    def begin(self, table: TableKey, mechanism: str, budget: Budget, limit: float | None = None) -> str:
        """Enter a release that is about to draw its noise; its id. With `limit` set that of the table from now on.

        Raises `UserError` if the releases of the table would spend more than their limit together, or are private
        between other neighbours: such a sum means nothing.
        """
        entry = {"entry": "begun", "id": secrets.token_hex(8), "mechanism": mechanism, "budget": vars(budget)}
        with self._open() as file:
            found = _limited(self._limit(file, table, limit), budget)
            spent, asked = found.total.epsilon if found.entries else 0.0, budget.epsilon
            if found.limit is not None and spent + asked > found.limit * (1 + ROUNDING):
                left = found.limit - spent
                raise UserError(
                    f"{table.label}: earlier releases ({len(found.entries)}) spent epsilon = {spent:.6g}; with "
                    f"{asked:.6g} more they would exceed the limit of {found.limit:.6g}. Nothing was released; "
                    f"{f'ask for {left:.6g} at most' if left > 0 else 'nothing is left'}, or set another --limit"
                )
            _append(file, {**entry, **_of(table)})
        return str(entry["id"])

    def set_limit(self, table: TableKey, limit: float) -> None:
        """Set the limit on the epsilon of all releases of a table."""
        with self._open() as file:
            self._limit(file, table, limit)

    def end(self, table: TableKey, entry: str, ledger: Ledger, spent: Spent) -> Sum:
        """Enter the ledger of a release that was begun; the sum with it.

        Raises `UserError` if that is more than the limit allows: published constants may spend more than was asked for.
        """
        with self._open() as file:
            _append(file, {"entry": "spent", "id": entry, "spent": spent_to_dict(spent), "ledger": ledger.to_list()})
            file.seek(0)
            found = _sum_of(table, _lines(file, self.path))
        (asked,) = (one.budget.epsilon for one in found.entries if one.id == entry)
        over = found.limit is not None and found.total.epsilon > found.limit * (1 + ROUNDING)
        if over and spent.epsilon > asked * (1 + ROUNDING):
            raise UserError(
                f"{table.label}: the release spent epsilon = {spent.epsilon:.6g}, more than was asked for, and exceeds "
                f"the limit of {found.limit:.6g}; it counts, and is not written"
            )
        return found

    def take_back(self, entry: str) -> None:
        """A release that was begun drew no noise: it does not count."""
        with self._open() as file:
            _append(file, {"entry": "taken back", "id": entry})

    def _limit(self, file: IO[bytes], table: TableKey, limit: float | None) -> Sum:
        found = _sum_of(table, _lines(file, self.path))
        if limit is None:
            return found
        if not 0 < limit < math.inf:
            raise UserError(f"a limit on epsilon must be positive and finite, not {limit:g}")
        _append(file, {"entry": "limit", "limit": limit, **_of(table)})
        return replace(found, limit=limit)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """The log, of which no other process reads or writes a line meanwhile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            with os.fdopen(handle, "r+b") as file:
                os.fchmod(handle, 0o600)
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise UserError(
                f"the log of what was released, {self.path}, cannot be used ({error}): nothing is released without it"
            ) from error


def _of(table: TableKey) -> dict[str, str]:
    return {"place": table.place, "content": table.content}


def _lines(file: IO[bytes], path: Path) -> list[Json]:
    """All lines of the log; the rest of one that a process died in is cut off: what it announced had not begun."""
    content = file.read()
    whole = content.rfind(b"\n") + 1
    file.truncate(whole)
    file.seek(0, os.SEEK_END)
    found = []
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            found.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"line {number} of {path}, the log of what was released, is damaged ({error}): restore it; without it "
                "nobody can say what the releases of a table spent together"
            ) from error
    return found


def _append(file: IO[bytes], line: Json) -> None:
    """One line at the end, on the disk before this returns."""
    dated = {"when": datetime.now(UTC).isoformat(timespec="seconds"), **line}
    file.seek(0, os.SEEK_END)
    file.write(canonical(dated).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _sum_of(table: TableKey, lines: Sequence[Json]) -> Sum:
    """What the lines say of a table: of all that was at its place or had its content, or shares either with such."""
    places, contents = {table.place}, {table.content}
    placed = [line for line in lines if "place" in line]
    while True:
        own = [line for line in placed if line["place"] in places or line["content"] in contents]
        known = len(places), len(contents)
        places |= {line["place"] for line in own}
        contents |= {line["content"] for line in own}
        if known == (len(places), len(contents)):
            break
    gone = {line["id"] for line in lines if line["entry"] == "taken back"}
    ends = {line["id"]: line for line in lines if line["entry"] == "spent"}
    entries = tuple(
        _entry(line, ends.get(line["id"])) for line in own if line["entry"] == "begun" and line["id"] not in gone
    )
    limits = [float(line["limit"]) for line in own if line["entry"] == "limit"]
    return Sum(entries, limits[-1] if limits else None)


def _entry(line: Json, end: Json | None) -> Entry:
    begun = Entry(line["id"], line["when"], line["mechanism"], Budget(**line["budget"]))
    if end is None:
        return begun
    return replace(begun, spent=spent_from_dict(end["spent"]), ledger=Ledger.from_list(end["ledger"]))


def _limited(found: Sum, budget: Budget) -> Sum:
    others = {entry.budget.relation for entry in found.entries} - {budget.relation}
    if others:
        raise UserError(
            f"earlier releases of this table are private between neighbours of relation={others.pop()}, and their sum "
            f"has no meaning together with relation={budget.relation}: keep to one"
        )
    return found
