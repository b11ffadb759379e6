"""Links from the numbers of tables to the cells of their trials."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from dpbench.files import write_file
from dpbench.report.page.cells import Cells
from dpbench.report.page.documents import Block, Links
from dpbench.report.page.filters import Tags
from dpbench.report.tables.trials import Trials

EPSILON = "data-e"


def save_trials(tables: Sequence[Trials], folder: Path, name: str) -> list[Path]:
    """Write the trials behind the numbers of some tables into `folder`/`name`.trials.json; its path.

    Trials that several numbers share are written once.
    """
    path = folder / f"{name}.trials.json"
    saved = []
    for table in tables:
        shared: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        for place, trials in table.items():
            shared.setdefault(tuple(trials), []).append(place)
        saved.append([[places, trials] for trials, places in shared.items()])
    return [write_file(path, json.dumps(saved))]


def add_links(found: Iterable[Block], folder: Path, name: str, cells: Cells, experiments: Collection[str]) -> None:
    """Add the links that `save_trials` wrote to the tables of a document; none if it wrote nothing.

    `experiments` restricts the cells to theirs; all, if it is empty.
    """
    path = folder / f"{name}.trials.json"
    if not path.exists():
        return
    tables = (block for block in found if block.kind == "table")
    for block, saved in zip(tables, json.loads(path.read_text()), strict=True):
        block.links = _links(saved, cells, experiments)


def _links(saved: Iterable[tuple[list[list[int]], list[str]]], cells: Cells, experiments: Collection[str]) -> Links:
    led: dict[tuple[int, int], list[int]] = {}
    for places, trials in saved:
        if leads := _cover(trials, cells, experiments):
            led |= dict.fromkeys(((row, column) for row, column in places), leads)
    columns = _tags(((column, leads) for (_, column), leads in led.items()), cells)
    rows = {} if columns else _tags(((row, leads) for (row, _), leads in led.items()), cells)
    return Links(led, rows, columns)


def _cover(trials: Iterable[str], cells: Cells, experiments: Collection[str]) -> list[int]:
    """Few cells that hold all of the trials; none if some trial is in no cell of the experiments."""
    left = {
        trial: [
            place
            for place in cells.places.get(trial, [])
            if not experiments or cells.cells[place].experiment in experiments
        ]
        for trial in trials
    }
    if not all(left.values()):
        return []
    chosen = []
    while left:
        first = next(iter(left.values()))
        best = max(first, key=lambda place: sum(place in places for places in left.values()))
        chosen.append(best)
        left = {trial: places for trial, places in left.items() if best not in places}
    return chosen


def _tags(numbers: Iterable[tuple[int, Sequence[int]]], cells: Cells) -> Mapping[int, Tags]:
    """The epsilon of each row or column, from the links of its numbers; none where they do not share one.

    A non-private number has no epsilon: its row or column is shown at every one.
    """
    found: dict[int, list[set[str]]] = {}
    for line, leads in numbers:
        tags = [cells.cells[place].tags for place in leads]
        found.setdefault(line, []).append({one[EPSILON] for one in tags if EPSILON in one})
    return {
        line: {EPSILON: min(own[0])}
        for line, own in found.items()
        if len(own[0]) == 1 and all(e == own[0] for e in own)
    }
