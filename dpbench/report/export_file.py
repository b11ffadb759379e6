"""The export: the trials of an experiment in one compressed file, repetitions stored together.

That of an experiment alone is `NAME` in its folder, those of a paper are in its folder `FOLDER`, one per experiment.

Lines of JSON under xz: a header, a line for each ledger that it has, then a line for each cell. A cell holds the trials
of one status that differ only in their repetition: their key is stored once, with all else that they share and the
index of the ledger of the first release, if it was available. Identities follow from the keys, and are left out.

Records are stored by column, and a value that all of them share once. Scores are stored to the last digit, their
details and the notes to `DIGITS`.
"""

from __future__ import annotations

import json
import logging
import lzma
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from dpbench.config import Experiment
from dpbench.errors import MALFORMED, UserError
from dpbench.files import Json, read_xz, write_file
from dpbench.grid.plan import all_stays, one_repetition
from dpbench.grid.provenance import Provenance
from dpbench.grid.records import ReleaseKey, Trial, TrialKey, without_repetition
from dpbench.grid.seeds import canonical
from dpbench.report.frames.ledgers import Events, FirstLedger, LedgerOf, no_ledgers

log = logging.getLogger(__name__)
PLAIN = (str, int, float, bool, type(None))
NAME, FOLDER, SUFFIX = "trials.jsonl.xz", "exports", ".jsonl.xz"
DIGITS = 6  # of notes and of the details of scores, such as the ends of intervals: nine take a third more bytes
FORMAT, WITH_IDENTITIES = 3, (1, 2)  # in those before, each trial has its identities too
FILTERS = [  # numbers as text repeat little: a shallow search takes a third of the time, and 2 to 6 % more bytes
    {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0, "mf": lzma.MF_HC4, "depth": 8, "nice_len": 64}
]


class Packed(TypedDict, total=False):
    """Values of one place in all records, in one of these ways: one for all, each of them, or by their parts."""

    all: Any
    each: Sequence[Any]
    dict: Mapping[str, Packed]
    list: Sequence[Packed]


def packed(values: Sequence[Any]) -> Packed:
    """Values of one place in all records: {"all": the one value}, or dicts and lists taken apart, or {"each": list}."""
    first, kind = values[0], type(values[0])
    if kind is dict and all(type(value) is dict and value.keys() == first.keys() for value in values):
        columns = {name: packed([value[name] for value in values]) for name in first}
        return {"dict": columns} if any("all" not in column for column in columns.values()) else {"all": first}
    if kind in PLAIN and first != 0:  # there is a negative zero too
        same = all(value is first or (type(value) is kind and value == first) for value in values)
    else:
        text = canonical(first)
        same = all(value is first or canonical(value) == text for value in values)
    if same:
        return {"all": first}
    if all(isinstance(value, list) and len(value) == len(first) > 0 and isinstance(value[0], dict) for value in values):
        return {"list": [packed(items) for items in zip(*values, strict=True)]}
    return {"each": list(values)}


def unpacked(node: Packed, count: int) -> Sequence[Any]:
    """The `count` values of a node made by `packed`."""
    if "all" in node:
        return [node["all"]] * count
    if "each" in node:
        return node["each"]
    if "list" in node:
        return list(map(list, zip(*(unpacked(item, count) for item in node["list"]), strict=True)))
    columns = [unpacked(column, count) for column in node["dict"].values()]
    return [dict(zip(node["dict"], row, strict=True)) for row in zip(*columns, strict=True)]


def value_at(value: Any, path: Sequence[str]) -> Any:
    """The value in nested dicts at a path, None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def check_columns(node: Packed, count: int) -> None:
    """Raises `ValueError` if a column does not have `count` values, or is none."""
    ((how, _),) = node.items()
    if how not in ("all", "each", "list", "dict"):
        raise ValueError(f"a column of the kind {how!r}")
    if "each" in node and len(node["each"]) != count:
        raise ValueError(f"a column of {len(node['each'])} values for {count} trials")
    for part in (*node.get("dict", {}).values(), *node.get("list", ())):
        check_columns(part, count)


def check_count(node: Packed, count: object) -> None:
    """Raises `ValueError` for a count that the node does not list: trials differ at least in their repetition."""
    listed = {**node, **node.get("dict", {}).get("repetition", {})}
    if type(count) is not int or (count != 1 and "each" not in listed):
        raise ValueError(f"{count} trials without a repetition for each")


def names_of(node: Packed) -> set[str]:
    """The fields that all records have."""
    if "each" in node:
        return set.intersection(*map(set, node["each"]))
    return set(node["all"] if "all" in node else node["dict"])


class Shared(TypedDict):
    """What the trials of a cell have in common besides their key and status."""

    experiment: str
    provenance: Provenance
    release_provenance: Provenance | None


@dataclass(frozen=True)
class Cell:
    """Trials with one key except the repetition, which is 0 in `key`, one experiment, provenance and status.

    `records` has what differs between them, by column. A trial is made when it is requested.
    `ledger` is None where no release was available.
    """

    key: TrialKey
    shared: Shared
    count: int
    records: Packed
    ledger: FirstLedger | None = None

    @cached_property
    def question(self) -> str:
        """The settings of the first repetition, by any version of the code."""
        return self.key.unversioned().id

    @property
    def experiment(self) -> str:
        """The one that the trials were run for."""
        return self.shared["experiment"]

    @cached_property
    def keys(self) -> Sequence[TrialKey]:
        """The key of each trial, on a release of its own repetition."""
        releases = map(self.key.release.repeated, self.column("repetition"), self.release_ids)
        return [self.key.on(release, identity) for release, identity in zip(releases, self.ids, strict=True)]

    @cached_property
    def ids(self) -> Sequence[str]:
        """The identity of each trial."""
        return [*self.key.ids(self.release_ids)]

    @cached_property
    def release_ids(self) -> Sequence[str]:
        """The identity of the release of each trial."""
        return [*self.key.release.ids(self.column("repetition"))]

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All of them."""
        return [
            Trial.from_dict({**record, **self.shared, "id": key.id, "release_id": key.release.id}, key)
            for record, key in zip(unpacked(self.records, self.count), self.keys, strict=True)
        ]

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


class Answers(NamedTuple):
    """Trials of an export for an experiment, by the current versions and by others, and how many it plans."""

    own: Exported
    others: Exported
    planned: int


def answers(cells: Iterable[Cell], experiment: Experiment, *, today: bool = False) -> Answers:
    """The trials of an export for the experiment; `today`: those by the current versions alone.

    Its own trials come before those of other experiments.
    """
    asked = {trial.unversioned().id: trial for trial in one_repetition(experiment).trials}

    def by_another(cell: Cell) -> bool:
        return asked[cell.question].id != cell.key.id

    def planned(trial: TrialKey) -> int:
        return experiment.repetitions_of(trial.fit.release.mechanism.name)

    matching = [cell for cell in cells if cell.question in asked and not (today and by_another(cell))]
    parts: list[tuple[Cell, list[int]]] = []
    others: list[tuple[Cell, list[int]]] = []
    found = dict[str, set[int]]()
    for cell in sorted(matching, key=lambda cell: (cell.experiment != experiment.name, by_another(cell))):
        known, most = found.setdefault(cell.question, set()), planned(asked[cell.question])
        repetitions = cell.column("repetition")
        places = [place for place, n in enumerate(repetitions) if n < most and n not in known]
        known.update(repetitions)
        (others if by_another(cell) else parts).append((cell, places))
    return Answers(Exported(parts), Exported(others), sum(map(planned, asked.values())))


def first_ledgers(cells: Iterable[Cell]) -> dict[str, FirstLedger]:
    """The ledger shown for each release of the cells: its own if it is there, else the one of its cell."""
    found: dict[str, FirstLedger] = {}
    for cell in cells:
        if cell.ledger is not None:
            for release in cell.release_ids:
                found.setdefault(release, cell.ledger)
            found[cell.ledger.release] = cell.ledger
    return found


def exports_in(folder: Path) -> list[Path]:
    """The exports in the folder of a paper or an experiment.

    A paper's folder may have `NAME`, with the trials of all its experiments, from before there was one for each: it
    comes last, as theirs are newer.
    """
    return [path for path in (*sorted((folder / FOLDER).glob(f"*{SUFFIX}")), folder / NAME) if path.is_file()]


def write_export(
    trials: Iterable[Trial],
    folder: Path,
    ledger_of: LedgerOf = no_ledgers,
    name: str = NAME,
    about: Json | None = None,
    *,
    details: bool = True,
) -> Path:
    """Write `name` into `folder`: each trial in its `publishable` form, and the first available ledger of each cell.

    `about`: what else stands in the header. `details`: whether to keep what scores have besides their values. Returns
    its path; a file with the same contents is not changed.
    """
    cells: dict[tuple[str, str], list[Json]] = {}
    texts: dict[object, str] = {}
    first: dict[str, Json] = {}
    ledgers: dict[str, int] = {}
    with all_stays():
        for trial in sorted(trials, key=lambda one: (one.key.release.repetition, one.id)):
            record = {**publishable(trial, details=details).own(), "repetition": trial.key.release.repetition}
            del record["id"], record["release_id"]
            # provenances are long: trials with different ones get separate cells
            same = {name: record.pop(name) for name in ("experiment", "provenance", "release_provenance")}
            origin = (trial.key.setting, trial.experiment, id(trial.provenance), id(trial.release_provenance))
            if origin not in texts:
                texts[origin] = canonical({"key": without_repetition(trial.key.to_dict())[0], **same})
            text = texts[origin]
            cells.setdefault((text, trial.status), []).append(record)  # scores lie side by side where all have some
            if text not in first and (events := ledger_of(trial)) is not None:
                place = ledgers.setdefault(canonical(events), len(ledgers))
                first[text] = {"release": trial.release_id, "repetition": record["repetition"], "events": place}
        header = {**(about or {}), "format": FORMAT, "ledgers": len(ledgers), "cells": len(cells)}
        lines: list[Any] = [header, *map(json.loads, ledgers)]
        for (text, _), records in sorted(cells.items()):
            kept = {"ledger": first[text]} if text in first else {}
            lines.append({**json.loads(text), "count": len(records), "records": packed(records), **kept})
    content = "".join(canonical(line) + "\n" for line in lines).encode()
    path = folder / name
    if path.exists() and read_xz(path) == content:
        return path
    return write_file(path, lzma.compress(content, filters=FILTERS))


def add_to_export(
    trials: Sequence[Trial],
    folder: Path,
    ledger_of: LedgerOf = no_ledgers,
    name: str = NAME,
    *,
    details: bool = True,
) -> Path:
    """Write the trials into the export `name` of `folder`, in place of those with the same settings; the others stay,
    as do the export's ledgers of releases that are not available. Private trials with no ledger are named in a warning.
    Without `details`, those of all scores are left out.
    """
    path, new, questions = folder / name, set(), dict[object, str]()
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

    has_ledger = dict[str, bool]()  # by setting: whether one of its releases has one
    for trial in trials:
        if trial.status == "done" and math.isfinite(trial.key.release.budget.epsilon):
            question = questions[trial.key.setting]
            has_ledger[question] = has_ledger.get(question) or ledger(trial) is not None
    if count := len(has_ledger) - sum(has_ledger.values()):
        log.warning(
            "%s has no privacy ledger for %d of %d settings: their releases are not in the results folder. If results "
            "were copied, copy the folder releases/ too",
            path,
            count,
            len(has_ledger),
        )
    return write_export([*Exported(kept), *trials], folder, ledger, name, details=details)


def question_of(key: TrialKey) -> str:
    """The settings that all repetitions of a cell share, by any version of the code (`Cell.question`)."""
    first = replace(key.fit, release=replace(key.release, repetition=0))
    return TrialKey(first, key.metrics).unversioned().id


def publishable(trial: Trial, *, details: bool = True) -> Trial:
    """The trial, with its notes and the `details` of its scores to `DIGITS` digits; on private rows without the
    details, which contain exact statistics of the rows, and without the text of an error, which may contain their
    values.
    """
    kept = details and trial.public
    scores = tuple(replace(one, detail=_rounded(one.detail) if kept else None) for one in trial.scores)
    trial = replace(trial, notes=_rounded(trial.notes), scores=scores)
    if trial.public or trial.error is None:
        return trial
    return replace(trial, error=replace(trial.error, message="(left out: the rows are private)", traceback=""))


def _rounded(value: Any) -> Any:
    """What JSON can hold, with its numbers to `DIGITS` digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [*map(_rounded, value)] if isinstance(value, list | tuple) else value


def load_export(path: Path) -> list[Cell]:
    """The cells of an export. Raises `UserError` if there is no such file, or it is damaged."""
    try:
        lines = read_xz(path).decode().splitlines()
        header = json.loads(lines[0])
        releases: dict[str, ReleaseKey] = {}
        start = 1 + header.get("ledgers", 0)
        ledgers = [_events(json.loads(line)) for line in lines[1:start]]
        cells = [_cell(json.loads(line), releases, ledgers) for line in lines[start:]]
        if header["format"] not in (FORMAT, *WITH_IDENTITIES) or header["cells"] != len(cells):
            raise ValueError("another format, or truncated")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; `dpbench figures` writes it") from error
    except MALFORMED as error:
        raise UserError(
            f"{path} is damaged or of another version ({error}); take it from the repository, or delete it and write "
            "it again with `dpbench figures` from stored trials"
        ) from error
    return cells


def count_exported(path: Path) -> int:
    """How many trials an export holds, by what its lines say: to load it takes ten times as long.

    Raises `UserError` if it cannot be read.
    """
    try:
        return sum(map(int, re.findall(rb'^\{"count":(\d+),', read_xz(path), re.MULTILINE)))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _events(data: list[Json]) -> Events:
    """The events of a ledger, each of which has a kind."""
    if not all("kind" in event for event in data):
        raise ValueError("an event without its kind")
    return data


def _cell(data: Json, releases: dict[str, ReleaseKey], ledgers: Sequence[Events]) -> Cell:
    """One cell. `releases`: the keys of those read before, since cells on one release share its key."""
    own = data["key"]
    text = canonical(own["release"])
    if text not in releases:
        releases[text] = ReleaseKey.from_dict({**own["release"], "repetition": 0})
    shared = Shared(
        experiment=str(data["experiment"]),
        provenance=data["provenance"],
        release_provenance=data["release_provenance"],
    )
    first = data.get("ledger") and FirstLedger(**{**data["ledger"], "events": ledgers[data["ledger"]["events"]]})
    cell = Cell(TrialKey.of(releases[text], own), shared, data["count"], data["records"], first)
    check_columns(cell.records, cell.count)
    check_count(cell.records, cell.count)
    expected = {one.name for one in fields(Trial)} - {"id", "release_id", "key", *shared} | {"repetition"}
    if missing := expected - names_of(cell.records):
        raise ValueError(f"no {', '.join(sorted(missing))}")
    return cell
