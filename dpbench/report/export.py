"""The export: the trials of a paper or an experiment in one compressed file, repetitions side by side.

Lines of JSON under xz: a header, then a line for each cell. A cell holds the trials that differ in nothing but their
repetition: their key stands there once, and what else all of them share too.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

NAME = "trials.jsonl.xz"
FORMAT = 1
FILTERS = [  # numbers as text repeat little: a shallow search for it takes a sixth of the time, and 2% more bytes
    {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0, "mf": lzma.MF_HC4, "depth": 2, "nice_len": 32}
]
PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Cell:
    """Trials with one key but for the repetition, which is 0 in `key`, and one experiment and provenance.

    `records` has what differs between them, as `_packed` packs it. A trial is made when it is asked for.
    """

    key: TrialKey
    shared: Mapping[str, Any]
    count: int
    records: Mapping[str, Any]

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
        for record in _unpacked(self.records, self.count):
            release = replace(self.key.release, repetition=record["repetition"])
            fit = FitKey(release, self.key.fit.model, self.key.fit.design, self.key.fit.draw)
            made.append(Trial.from_dict({**record, **self.shared}, TrialKey(fit, self.key.metrics)))
        return made

    def column(self, *path: str) -> Sequence[Any]:
        """The value at a path of each record, None where there is none: ("spent", "epsilon")."""
        node = self.records
        for place, name in enumerate(path):
            if "dict" not in node:
                return [_at(value, path[place:]) for value in _unpacked(node, self.count)]
            if name not in node["dict"]:
                return [None] * self.count
            node = node["dict"][name]
        return _unpacked(node, self.count)


class Exported(Sequence[Trial]):
    """Trials of an export; `parts` are its cells, each with the places of the trials in it."""

    def __init__(self, parts: Sequence[tuple[Cell, Sequence[int]]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(len(places) for _, places in self.parts)

    def __getitem__(self, place: Any) -> Any:
        return self._trials[place]

    @property
    def keys(self) -> Iterator[TrialKey]:
        """The keys of the trials, each but for its repetition."""
        return (cell.key for cell, places in self.parts if places)

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


def write_export(trials: Iterable[Trial], folder: Path) -> Path:
    """Write `NAME` into `folder`, each trial as it is `publishable`; its path. A file with the same trials stays as it
    is.
    """
    cells: dict[str, list[dict[str, Any]]] = {}
    texts: dict[object, str] = {}
    with all_stays():
        for trial in sorted(trials, key=lambda one: (one.key.release.repetition, one.id)):
            record = {**publishable(trial).own(), "repetition": trial.key.release.repetition}
            # provenances are long: trials that do not share them stand in cells of their own
            same = {name: record.pop(name) for name in ("experiment", "provenance", "release_provenance")}
            told = (trial.key.setting, trial.experiment, id(trial.provenance), id(trial.release_provenance))
            if told not in texts:
                texts[told] = canonical({"key": without_repetition(trial.key.to_dict())[0], **same})
            cells.setdefault(texts[told], []).append(record)
        lines: list[dict[str, Any]] = [{"format": FORMAT, "cells": len(cells)}]
        for text, records in sorted(cells.items()):
            lines.append({**json.loads(text), "count": len(records), "records": _packed(records)})
    content = "".join(canonical(line) + "\n" for line in lines).encode()
    path = folder / NAME
    if path.exists() and lzma.decompress(path.read_bytes()) == content:
        return path
    return write_file(path, lzma.compress(content, filters=FILTERS))


def add_to_export(trials: Sequence[Trial], folder: Path) -> Path:
    """Write the trials into the export of `folder`, in place of those that answer the same; the others stay."""
    path, new, questions = folder / NAME, set(), dict[object, str]()
    for trial in trials:
        setting = trial.key.setting
        if setting not in questions:
            questions[setting] = question_of(trial.key)
        new.add((trial.experiment, questions[setting], trial.key.release.repetition))
    kept = []
    for cell in load_export(path) if path.exists() else []:
        asked = enumerate(cell.column("repetition"))
        kept.append((cell, [k for k, one in asked if (cell.experiment, cell.question, one) not in new]))
    return write_export([*Exported(kept), *trials], folder)


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


def _packed(values: Sequence[Any]) -> dict[str, Any]:
    """Values of one place in all records: {"all": the one value}, or dicts and lists taken apart, or {"each": list}."""
    first, kind = values[0], type(values[0])
    if kind is dict and all(type(value) is dict and value.keys() == first.keys() for value in values):
        columns = {name: _packed([value[name] for value in values]) for name in first}
        return {"dict": columns} if any("all" not in column for column in columns.values()) else {"all": first}
    if kind in PLAIN and first != 0:  # there is a negative zero too
        same = all(value is first or (type(value) is kind and value == first) for value in values)
    else:
        text = canonical(first)
        same = all(value is first or canonical(value) == text for value in values)
    if same:
        return {"all": first}
    if all(isinstance(value, list) and len(value) == len(first) > 0 and isinstance(value[0], dict) for value in values):
        return {"list": [_packed(items) for items in zip(*values, strict=True)]}
    return {"each": list(values)}


def _unpacked(node: Mapping[str, Any], count: int) -> Sequence[Any]:
    ((how, found),) = node.items()
    if how == "all":
        return [found] * count
    if how == "each":
        each: list[Any] = found
        return each
    if how == "list":
        return list(map(list, zip(*(_unpacked(item, count) for item in found), strict=True)))
    columns = [_unpacked(column, count) for column in found.values()]
    return [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _check(node: Mapping[str, Any], count: int) -> None:
    """`ValueError` if a column has not `count` values."""
    ((how, found),) = node.items()
    if how == "each" and len(found) != count:
        raise ValueError(f"a column of {len(found)} values for {count} trials")
    for part in found.values() if how == "dict" else found if how == "list" else ():
        _check(part, count)


def load_export(path: Path) -> list[Cell]:
    """The cells of an export. Raises `UserError` if there is no such file, or it is damaged."""
    try:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
        header = json.loads(lines[0])
        releases: dict[str, ReleaseKey] = {}
        cells = [_cell(json.loads(line), releases) for line in lines[1:]]
        if header["format"] != FORMAT or header["cells"] != len(cells):
            raise ValueError("another format, or cut")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; `dpbench figures` writes it") from error
    except (lzma.LZMAError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path} is damaged or of another version ({error}); take it from the repository, or delete it and write "
            "it again with `dpbench figures` from stored trials"
        ) from error
    return cells


def _cell(data: dict[str, Any], releases: dict[str, ReleaseKey]) -> Cell:
    """One cell. `releases`: the keys of those met before, for cells on one release share it."""
    own = data["key"]
    text = canonical(own["release"])
    if text not in releases:
        releases[text] = ReleaseKey.from_dict({**own["release"], "repetition": 0})
    shared = {name: data[name] for name in ("experiment", "provenance", "release_provenance")}
    cell = Cell(TrialKey.of(releases[text], own), shared, data["count"], data["records"])
    _check(cell.records, cell.count)
    if missing := {one.name for one in fields(Trial)} - {"key", *shared} - _names(cell.records):
        raise ValueError(f"no {', '.join(sorted(missing))}")
    return cell


def _names(node: Mapping[str, Any]) -> set[str]:
    """The fields that all records have."""
    ((how, found),) = node.items()
    return set.intersection(*map(set, found)) if how == "each" else set(found)
