"""Submissions on the leaderboards, and a page for each: marked, and without a say in the ranks of other methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.files import Json
from dpbench.grid.audits import AuditRecord
from dpbench.grid.seeds import canonical
from dpbench.report.export_file import Cell
from dpbench.report.site.boards import Board, board_of
from dpbench.report.site.leaderboards import Behind, Pages, Row, scored
from dpbench.report.site.rendering import Site
from dpbench.report.submissions import About, Submission, metrics_of, place_of


@dataclass(frozen=True)
class Entry:
    """What a submission has on a leaderboard: a line for each number, and what stands behind it.

    `ranks`: for each epsilon the mean of the ranks that it would have among the methods of the board, on how many
    tables, and on how many of them the first one.
    """

    about: About
    board: Board
    label: str
    rows: Sequence[Row]
    behind: Sequence[Behind]
    ranks: Mapping[float, tuple[float, int, int]]

    @property
    def mark(self) -> str:
        """How far its numbers can be relied on, by which protocol they are if not that of the board, and on how many
        of its tables.
        """
        other = "" if self.about.protocol == self.board.protocol else self.about.protocol
        tables = {row.cell["dataset"] for row in self.rows}
        count = f"{len(tables)} of {len(self.board.datasets)} tables"
        return ", ".join(filter(None, [self.about.mark, other, count]))

    def beyond(self, row: Row) -> str:
        """A mark of a mean that is better than that of every method without privacy on the table; "" for others."""
        cells = self.board.cells
        exact = cells[(cells["dataset"] == row.cell["dataset"]) & ~np.isfinite(cells["epsilon"])]["mean"]
        if row.cell["direction"] == "higher":
            return "above the score without privacy" if row.cell["mean"] > exact.max() else ""
        return "below the error without privacy" if row.cell["mean"] < exact.min() else ""

    @property
    def page(self) -> str:
        """The page of the submission."""
        return f"submissions/{self.about.name}.md"


def entries_of(
    board: Board, submission: Submission, datasets: Mapping[str, Dataset], audits: Sequence[AuditRecord]
) -> list[Entry]:
    """What a submission has on a leaderboard, one for each of its methods; none if nothing can be compared.

    Numbers can be compared that are of the same rows, splits, budget and metric as those of the leaderboard.
    """
    exported = list({id(cell): cell for cell in board.by_trial.values()}.values())
    own = [*_comparable(submission.cells, exported)]
    tables = {cell.key.release.dataset["name"] for cell in own}
    there = [cell for cell in exported if cell.key.release.dataset["name"] in tables]
    merged = board_of(board.paper, board.spec, there, own) if own else board
    names = {(cell.key.release.mechanism.name, cell.key.fit.model.name) for cell in own}
    pages, found = Pages(merged, datasets, audits), []
    for method in sorted(names):
        mine = [row for row in pages.rows if (row.cell["mechanism"], row.cell["model"]) == method]
        if not mine:
            continue  # no score by the metric of the board
        label = submission.about.method if len(names) == 1 else f"{submission.about.method} ({method[1]})"
        rows = [replace(row, cell=_renamed(row.cell, label, board)) for row in mine]
        behind = [_behind(pages.behind(table, own), submission.about) for table, own in _by_table(rows)]
        found.append(Entry(submission.about, board, label, rows, behind, _ranks(rows)))
    return found


def _comparable(cells: Sequence[Cell], exported: Sequence[Cell]) -> Iterator[Cell]:
    """The cells at a place where the leaderboard has a private method, by the same metrics."""
    private = (cell.key for cell in exported if math.isfinite(cell.key.release.budget.epsilon))
    known: dict[str, dict[str, Json]] = {}
    for key in private:
        known.setdefault(canonical(place_of(key)), {}).update(metrics_of(key))
    for cell in cells:
        asked, own = known.get(canonical(place_of(cell.key))), metrics_of(cell.key)
        if asked is not None and all(own[name] == asked[name] for name in own.keys() & asked.keys()):
            yield cell


def _renamed(cell: Mapping[Any, Any], label: str, board: Board) -> dict[Any, Any]:
    """The cell under the name of the submission, with an anchor that no other leaderboard has; without seconds if none
    are known.
    """
    anchor = f"{board.name}-{cell['dataset']}-{cell['anchor']}"
    return {**cell, "series": label, "anchor": anchor, "seconds": cell["seconds"] or math.nan}


def _by_table(rows: Sequence[Row]) -> Iterator[tuple[str, list[Mapping[Any, Any]]]]:
    """The cells of each table and setting, which have one title."""
    found: dict[tuple[str, str, str], list[Mapping[Any, Any]]] = {}
    for row in rows:
        found.setdefault((row.table, row.cell["calibration"], row.cell["variant"]), []).append(row.cell)
    for (table, *setting), cells in found.items():
        yield ", ".join(filter(None, [table, *setting])), cells


def _behind(found: Behind, about: About) -> Behind:
    """What stands behind the numbers; of a method that ran elsewhere only what its scores say."""
    if about.ran_here:
        return replace(found, command=f"{found.command} --config-dir own")
    numbers = [replace(one, facts=list(scored(one.cell))) for one in found.numbers]
    return replace(found, facts=(), command="", numbers=numbers)


def _ranks(rows: Sequence[Row]) -> dict[float, tuple[float, int, int]]:
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(float(row.cell["epsilon"]), []).append(float(row.cell["rank"]))
    return {epsilon: (float(np.mean(own)), len(own), own.count(1.0)) for epsilon, own in found.items()}


def write_submissions(site: Site, submissions: Sequence[Submission], entries: Sequence[Entry]) -> None:
    """Write a page for each submission, and the list of all."""
    listed = []
    for submission in submissions:
        about = submission.about
        own = [entry for entry in entries if entry.about is about]
        trials = sum(cell.count for cell in submission.cells)
        listed.append((about, list(dict.fromkeys(entry.board.name for entry in own)), trials))
        site.render(f"submissions/{about.name}.md", "submission.md.j2", about=about, entries=own, trials=trials)
    titles = {entry.board.name: entry.board.title for entry in entries}
    site.render("submissions/index.md", "submissions.md.j2", listed=listed, titles=titles)
