"""Cautions for a reader: settings that differ, failures, overspending, early stops, non-private inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dpbench.files import Json
from dpbench.report.footnotes import SLACK
from dpbench.report.page.text_blocks import Block
from dpbench.report.page.trial_cells import Cell


def differences(manifest: Mapping[str, Json]) -> Block:
    """The settings in which experiments differ from what the paper states, experiments with the same difference
    together.
    """
    alike: dict[str, list[str]] = {}
    for name, one in manifest.items():
        if one["differs"]:
            alike.setdefault("; ".join(one["differs"]), []).append(name)
    rows = [[", ".join(names), difference] for difference, names in alike.items()]
    return Block("table", header=["experiments", "ours, and the paper's"], rows=rows)


def failures(cells: Iterable[Cell]) -> Block:
    """Trials without scores, by experiment, data set and method."""
    rows = []
    for place, here in _together(cells, lambda cell: (cell.experiment, cell.dataset, cell.method)).items():
        counts = sum((Counter(cell.statuses) for cell in here), Counter())
        lost = [f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items()) if status != "done"]
        if lost:
            at = ", ".join(cell.epsilon for cell in here if cell.statuses.keys() - {"done"})
            rows.append([*place, at, f"{', '.join(lost)} of {counts.total()}"])
    return Block("table", header=["experiment", "data set", "method", "ε", "trials without scores"], rows=rows)


def overspending(cells: Iterable[Cell]) -> Block:
    """Methods whose ledgers spend more than the target epsilon."""
    rows = []
    for method, here in _together(cells, lambda cell: (cell.method.partition(" [")[0],)).items():
        over = [cell for cell in here if cell.overspent > SLACK]
        if over:
            where = ", ".join(dict.fromkeys(cell.dataset for cell in over))
            rows.append([*method, where, f"up to {max(cell.overspent for cell in over):.3g} times"])
    return Block("table", header=["method", "data sets", "spent ε / target ε"], rows=rows)


def unfinished(cells: Iterable[Cell]) -> Block:
    """Methods whose integer programmes were stopped by their time limit, with the best solution so far."""
    rows = []
    for place, here in _together(cells, lambda cell: (cell.experiment, cell.dataset, cell.method)).items():
        ended = [cell for cell in here if cell.unfinished]
        if ended:
            counts = f"{sum(cell.unfinished for cell in ended)} in {sum(cell.ended for cell in ended)}"
            at = ", ".join(cell.epsilon for cell in ended)
            rows.append([*place, at, f"{counts} of {sum(cell.total for cell in ended)} trials"])
    return Block("table", header=["experiment", "data set", "method", "ε", "programmes stopped"], rows=rows)


def unpaid(cells: Iterable[Cell]) -> Block:
    """Inputs taken from private rows outside the budget, such as hyperparameters tuned on them, and their methods."""
    users: dict[str, list[Cell]] = {}
    for cell in cells:
        for name in cell.unpaid:
            users.setdefault(name, []).append(cell)
    rows = []
    for name, here in users.items():
        methods = dict.fromkeys(cell.method.partition(" [")[0] for cell in here)
        rows.append([name, ", ".join(methods), ", ".join(dict.fromkeys(cell.dataset for cell in here))])
    return Block("table", header=["input", "methods", "data sets"], rows=rows)


def _together(cells: Iterable[Cell], place: Callable[[Cell], tuple[str, ...]]) -> dict[tuple[str, ...], Sequence[Cell]]:
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(place(cell), []).append(cell)
    return {**groups}
