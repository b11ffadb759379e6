"""The export: the trials of a paper or an experiment in one compressed file, repetitions side by side.

Lines of JSON under xz: a header, a line for each ledger that it has, then a line for each cell. A cell holds the trials
that differ in nothing but their repetition: their key stands there once, and what else all of them share too, and the
place of the ledger of its first release, where that was at hand.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dpbench.config import Experiment
from dpbench.errors import UserError
from dpbench.files import write_file
from dpbench.grid.plan import all_stays, one_repetition
from dpbench.grid.records import FitKey, ReleaseKey, Trial, TrialKey, without_repetition
from dpbench.grid.seeds import canonical
from dpbench.report.columns import check_columns, names_of, packed, unpacked, value_at
from dpbench.report.frames.ledgers import Events, FirstLedger, LedgerOf, no_ledgers

NAME = "trials.jsonl.xz"
FORMAT, WITH_LEDGERS = 1, 2
FILTERS = [  # numbers as text repeat little: a shallow search for it takes a sixth of the time, and 2% more bytes
    {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0, "mf": lzma.MF_HC4, "depth": 2, "nice_len": 32}
]


@dataclass(frozen=True)
class Cell:
    """Trials with one key but for the repetition, which is 0 in `key`, and one experiment and provenance.

    `records` has what differs between them, as `columns.packed` packs it. A trial is made when it is asked for.
    `ledger` is None where no release was at hand.
    """

    key: TrialKey
    shared: Mapping[str, Any]
    count: int
    records: Mapping[str, Any]
    ledger: FirstLedger | None = None

    @cached_property
    def question(self) -> str:
        """What the first repetition answers, whatever code made it."""
        return self.key.uncoded().id

    @property
    def experiment(self) -> str:
        """The one that the trials were run for."""
        return str(self.shared["experiment"])

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All of them, on releases of their own repetition."""
        made = []
        for record in unpacked(self.records, self.count):
            release = replace(self.key.release, repetition=record["repetition"])
            fit = FitKey(release, self.key.fit.model, self.key.fit.design, self.key.fit.draw)
            made.append(Trial.from_dict({**record, **self.shared}, TrialKey(fit, self.key.metrics)))
        return made

    def column(self, *path: str) -> Sequence[Any]:
        """The value at a path of each record, None where there is none: ("spent", "epsilon")."""
        node = self.records
        for place, name in enumerate(path):
            if "dict" not in node:
                return [value_at(value, path[place:]) for value in unpacked(node, self.count)]
            if name not in node["dict"]:
                return [None] * self.count
            node = node["dict"][name]
        return unpacked(node, self.count)


class Exported(Sequence[Trial]):
    """Trials of an export; `parts` are its cells, each with the places of the trials in it."""

    def __init__(self, parts: Sequence[tuple[Cell, Sequence[int]]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(len(places) for _, places in self.parts)

    def __getitem__(self, place: Any) -> Any:
        return self._trials[place]

    @cached_property
    def _trials(self) -> list[Trial]:
        return [cell.trials[place] for cell, places in self.parts for place in places]


def answers(cells: Iterable[Cell], experiment: Experiment) -> tuple[Exported, int]:
    """The trials of an export that answer the experiment, whatever code made them, and how many it asks for.

    Its own trials come before those of others.
    """
    asked = set(one_repetition(experiment).trial_ids)
    parts, found = [], dict[str, set[int]]()
    for cell in sorted(cells, key=lambda cell: cell.experiment != experiment.name):
        if cell.question in asked:
            known = found.setdefault(cell.question, set())
            repetitions = cell.column("repetition")
            places = [
                place
                for place, repetition in enumerate(repetitions)
                if repetition < experiment.repetitions and repetition not in known
            ]
            known.update(repetitions)
            parts.append((cell, places))
    return Exported(parts), len(asked) * experiment.repetitions


def first_ledgers(cells: Iterable[Cell]) -> dict[str, FirstLedger]:
    """The ledger that stands for each release of the cells: its own if it is there, else the one of its cell."""
    found: dict[str, FirstLedger] = {}
    for cell in cells:
        if cell.ledger is not None:
            for release in cell.column("release_id"):
                found.setdefault(release, cell.ledger)
            found[cell.ledger.release] = cell.ledger
    return found


def write_export(trials: Iterable[Trial], folder: Path, ledger_of: LedgerOf = no_ledgers) -> Path:
    """Write `NAME` into `folder`, each trial as it is `publishable`, and of each cell the first ledger that there is.

    Its path; a file that says the same stays as it is.
    """
    cells: dict[str, list[dict[str, Any]]] = {}
    texts: dict[object, str] = {}
    first: dict[str, dict[str, Any]] = {}
    ledgers: dict[str, int] = {}
    with all_stays():
        for trial in sorted(trials, key=lambda one: (one.key.release.repetition, one.id)):
            record = {**publishable(trial).own(), "repetition": trial.key.release.repetition}
            # provenances are long: trials that do not share them stand in cells of their own
            same = {name: record.pop(name) for name in ("experiment", "provenance", "release_provenance")}
            told = (trial.key.setting, trial.experiment, id(trial.provenance), id(trial.release_provenance))
            if told not in texts:
                texts[told] = canonical({"key": without_repetition(trial.key.to_dict())[0], **same})
            text = texts[told]
            cells.setdefault(text, []).append(record)
            if text not in first and (events := ledger_of(trial)) is not None:
                place = ledgers.setdefault(canonical(events), len(ledgers))
                first[text] = {"release": trial.release_id, "repetition": record["repetition"], "events": place}
        header = {"format": WITH_LEDGERS, "ledgers": len(ledgers)} if ledgers else {"format": FORMAT}
        lines: list[Any] = [{**header, "cells": len(cells)}, *map(json.loads, ledgers)]
        for text, records in sorted(cells.items()):
            kept = {"ledger": first[text]} if text in first else {}
            lines.append({**json.loads(text), "count": len(records), "records": packed(records), **kept})
    content = "".join(canonical(line) + "\n" for line in lines).encode()
    path = folder / NAME
    if path.exists() and lzma.decompress(path.read_bytes()) == content:
        return path
    return write_file(path, lzma.compress(content, filters=FILTERS))


def add_to_export(trials: Sequence[Trial], folder: Path, ledger_of: LedgerOf = no_ledgers) -> Path:
    """Write the trials into the export of `folder`, in place of those that answer the same; the others stay, and the
    ledgers that the export has of releases that are not at hand.
    """
    path, new, questions = folder / NAME, set(), dict[object, str]()
    for trial in trials:
        setting = trial.key.setting
        if setting not in questions:
            questions[setting] = question_of(trial.key)
        new.add((trial.experiment, questions[setting], trial.key.release.repetition))
    kept, old = [], load_export(path) if path.exists() else []
    for cell in old:
        asked = enumerate(cell.column("repetition"))
        kept.append((cell, [k for k, one in asked if (cell.experiment, cell.question, one) not in new]))
    known = {cell.ledger.release: cell.ledger.events for cell in old if cell.ledger is not None}

    def ledger(trial: Trial) -> Events | None:
        events = ledger_of(trial)
        return known.get(trial.release_id) if events is None else events

    return write_export([*Exported(kept), *trials], folder, ledger)


def question_of(key: TrialKey) -> str:
    """What all repetitions of a cell ask, whatever code answers (`Cell.question`)."""
    first = replace(key.fit, release=replace(key.release, repetition=0))
    return TrialKey(first, key.metrics).uncoded().id


def publishable(trial: Trial) -> Trial:
    """The trial; on private rows without the text of an error, which may hold values of theirs, and without the details
    of the scores, which hold statistics of theirs without noise.
    """
    if trial.public:
        return trial
    scores = tuple(replace(score, detail=None) for score in trial.scores)
    error = trial.error and replace(trial.error, message="(left out: the rows are private)", traceback="")
    return replace(trial, scores=scores, error=error)


def load_export(path: Path) -> list[Cell]:
    """The cells of an export. Raises `UserError` if there is no such file, or it is damaged."""
    try:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
        header = json.loads(lines[0])
        releases: dict[str, ReleaseKey] = {}
        start = 1 + header.get("ledgers", 0)
        ledgers = [_events(json.loads(line)) for line in lines[1:start]]
        cells = [_cell(json.loads(line), releases, ledgers) for line in lines[start:]]
        if header["format"] not in (FORMAT, WITH_LEDGERS) or header["cells"] != len(cells):
            raise ValueError("another format, or cut")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; `dpbench figures` writes it") from error
    except (lzma.LZMAError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path} is damaged or of another version ({error}); take it from the repository, or delete it and write "
            "it again with `dpbench figures` from stored trials"
        ) from error
    return cells


def _events(data: list[dict[str, Any]]) -> Events:
    """The events of a ledger, each of which has a kind."""
    if not all("kind" in event for event in data):
        raise ValueError("an event without its kind")
    return data


def _cell(data: dict[str, Any], releases: dict[str, ReleaseKey], ledgers: Sequence[Events]) -> Cell:
    """One cell. `releases`: the keys of those met before, for cells on one release share it."""
    own = data["key"]
    text = canonical(own["release"])
    if text not in releases:
        releases[text] = ReleaseKey.from_dict({**own["release"], "repetition": 0})
    shared = {name: data[name] for name in ("experiment", "provenance", "release_provenance")}
    first = data.get("ledger") and FirstLedger(**{**data["ledger"], "events": ledgers[data["ledger"]["events"]]})
    cell = Cell(TrialKey.of(releases[text], own), shared, data["count"], data["records"], first)
    check_columns(cell.records, cell.count)
    if missing := {one.name for one in fields(Trial)} - {"key", *shared} - names_of(cell.records):
        raise ValueError(f"no {', '.join(sorted(missing))}")
    return cell
