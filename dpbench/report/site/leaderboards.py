"""The pages of the leaderboards: one each, and one for each of its tables, where every number has its permalink."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.config.labels import metric_label
from dpbench.config.parts import declared_parts
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.grid.audits import AuditRecord
from dpbench.grid.records import TrialKey
from dpbench.report.export_file import Cell
from dpbench.report.frames.frame import LEVEL, SERIES
from dpbench.report.page.shown_ledgers import lines_of
from dpbench.report.site.boards import Board
from dpbench.report.site.rendering import Scale, Site, chart, digits, score
from dpbench.report.tables.runs import audit_of, audited
from dpbench.report.text import number

if TYPE_CHECKING:
    from dpbench.report.site.submitted import Entry

INTERVAL = f"{100 * LEVEL:.0f} % interval"
SHARE, RATIO = Scale(0.0, 1.0), Scale(1.0, 1000.0, log=True)


class Size(NamedTuple):
    """What is public of a table in a board: training rows, columns, and coefficients of a regression on it."""

    rows: int
    columns: int
    coefficients: int


@dataclass(frozen=True)
class Row:
    """A line of a leaderboard: a cell with what its table and its method say."""

    cell: Mapping[Any, Any]
    table: str
    size: Size
    reads: str
    bar: str

    @property
    def anchor(self) -> str:
        """The permalink of its numbers on the page of the table."""
        return f"{self.cell['dataset']}.md#{self.cell['anchor']}"


@dataclass(frozen=True)
class Number:
    """All that stands behind a number: its own facts, the ledger and the trials. `whose`: the repetition of the ledger,
    "" for the first one.
    """

    cell: Mapping[Any, Any]
    score: str
    facts: Sequence[str]
    whose: str
    ledger: Sequence[tuple[str, str]]
    trials: Sequence[tuple[int, str, str]]


@dataclass(frozen=True)
class Behind:
    """What stands behind the numbers of a method on a table: what they share, the command and each number."""

    title: str
    facts: Sequence[str]
    command: str
    numbers: Sequence[Number]


@dataclass(frozen=True)
class Pages:
    """The pages of a board, with the data sets of its tables and all audits."""

    board: Board
    datasets: Mapping[str, Dataset]
    audits: Sequence[AuditRecord]

    @cached_property
    def rows(self) -> list[Row]:
        """The lines of private methods, the tables in their order."""
        cells, reads = self.board.private, declared_parts("model")
        scale = RATIO if self.board.relative.startswith("×") else SHARE
        order = cells["dataset"].map(list(self.board.datasets).index)
        made = []
        for cell in cells.iloc[np.argsort(order, kind="stable")].to_dict("records"):
            name = str(cell["dataset"])
            bar = scale.bar(cell["relative_low"], cell["relative"], cell["relative_high"])
            read = ", ".join(reads[cell["model"]].needs[:1]) if cell["model"] in reads else "its own model"
            made.append(Row(cell, self.board.datasets[name], self.sizes[name], read, bar))
        return made

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """The size of each table."""
        keys = {str(cell.key.release.dataset["name"]): cell.key for cell in self.board.by_trial.values()}
        return {name: self._size(self.datasets[name], key) for name, key in keys.items()}

    @staticmethod
    def _size(dataset: Dataset, key: TrialKey) -> Size:
        design = Design(dataset.domain, **key.fit.design)
        rows = min(int(dataset.card["rows"]), int(key.release.split["train_rows"]))
        return Size(rows, len(design.domain.names), len(design.columns))

    def write(self, site: Site, entries: Sequence[Entry] = ()) -> None:
        """Write them, with the entries of submissions."""
        board = self.board
        files = {
            "the mean ranks as a figure": f"results/{board.paper.name}/figures/{board.spec['name']}.csv",
            "as a table": f"results/{board.paper.name}/tables/{board.spec['name']}_table.csv",
        }
        site.render(
            f"boards/{board.name}.md",
            "board.md.j2",
            board=board,
            rows=self.rows,
            entries=entries,
            metric=metric_label(board.metric),
            chart=chart(board.ranks, "mean_rank", "low", "high", "mean rank, with half the critical difference"),
            ranks=self._ranks(),
            epsilons=sorted(board.ranks["epsilon"].unique()),
            files=files,
        )
        for name, title in board.datasets.items():
            self._write_place(site, name, title)

    def _ranks(self) -> list[tuple[str, str, dict[float, dict[Any, Any]]]]:
        """A line for each method, the best one first: its mechanism, its label, and its ranks at each epsilon."""
        ranks = self.board.ranks
        mechanisms = self.board.private.set_index("series")["mechanism"].to_dict()
        order = ranks.groupby("series")["mean_rank"].mean().sort_values(kind="stable").index
        by = {name: {row["epsilon"]: row for row in rows.to_dict("records")} for name, rows in ranks.groupby("series")}
        return [(mechanisms[name], name, by[name]) for name in order]

    def _write_place(self, site: Site, name: str, title: str) -> None:
        board, cells = self.board, self.board.cells[self.board.cells["dataset"] == name]
        private = cells[np.isfinite(cells["epsilon"])]
        log = bool((private["mean"].dropna() > 0).all() and private["mean"].max() > 10 * private["mean"].min())
        label = metric_label(board.metric)
        axis = f"{label} with its {INTERVAL}{', logarithmic' if log else ''}"
        site.render(
            f"boards/{board.name}/{name}.md",
            "place.md.j2",
            board=board,
            dataset=name,
            title=title,
            size=self.sizes[name],
            metric=label,
            rows=[row for row in self.rows if row.cell["dataset"] == name],
            references=[cell for cell in cells.to_dict("records") if not math.isfinite(cell["epsilon"])],
            chart=chart(private, "mean", "low", "high", axis, log=log),
            behind=[self.behind(str(own["series"].iloc[0]), own.to_dict("records")) for own in methods_of(cells)],
        )

    def behind(self, title: str, cells: Sequence[Mapping[Any, Any]]) -> Behind:
        """What stands behind the numbers of one method on one table."""
        exported = [self.board.exported(cell) for cell in cells]
        facts = [list(facts_of(*one)) for one in zip(cells, exported, strict=True)]
        shared = [fact for fact in facts[0] if len(facts) > 1 and all(fact in own for own in facts)]
        numbers = [
            self._number(cell, [fact for fact in own if fact not in shared])
            for cell, own in zip(cells, facts, strict=True)
        ]
        every = [one for own in exported for one in own]
        told = [", ".join(dict.fromkeys(part for one in every for part in _parts(one.key))), *self._bounds(exported)]
        told += [f"each number: {'; '.join(shared)}"] if shared else []
        return Behind(title, told, command(every), numbers)

    def _bounds(self, exported: Sequence[Sequence[Cell]]) -> Iterator[str]:
        """The lower bounds by audits that the numbers of a private method have, each once."""
        keys = [[one.key for one in own] for own in exported]
        private = [own for own in keys if math.isfinite(own[0].release.budget.epsilon)]
        if private:
            bounds = dict.fromkeys(audited(audit_of(own, self.audits)) for own in private)
            yield f"lower bound on ε by audit: {'; '.join(bounds)}"

    def _number(self, cell: Mapping[Any, Any], facts: Sequence[str]) -> Number:
        exported = self.board.exported(cell)
        ledger = next((one.ledger for one in exported if one.ledger is not None), None)
        trials = [
            (one.repetition, one.id, digits(one.value, 5) if one.status == "done" else one.status.replace("_", " "))
            for one in self.board.trials[cell["place"]]
        ]
        return Number(
            cell,
            score(cell),
            facts,
            f"repetition {ledger.repetition}" if ledger is not None and ledger.repetition else "",
            [] if ledger is None else list(lines_of(ledger.events)),
            trials,
        )


def facts_of(cell: Mapping[Any, Any], exported: Sequence[Cell]) -> Iterator[str]:
    """The facts of a number: its interval and runs, its budget and its code."""
    yield from scored(cell)
    if math.isfinite(cell["epsilon"]):
        spent = cell["spent_epsilon"]
        yield "spent unknown: no release" if pd.isna(spent) else f"spent at most ε = {number(spent)}"
        yield f"δ = {number(cell['delta'])}, neighbours {cell['relation'].replace('_', '/')}"
    commits = Counter[str]()
    for one in exported:
        commits[str(one.shared["provenance"]["commit"])[:12]] += one.count
    yield f"commit {', '.join(f'{commit} ({count})' for commit, count in commits.items())}"


def methods_of(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The cells of each method, in the order of its first; its numbers by epsilon."""
    for _, own in cells.groupby(list(SERIES), sort=False, dropna=False):
        yield own.sort_values("epsilon", kind="stable")


def scored(cell: Mapping[Any, Any]) -> Iterator[str]:
    """The interval of a number, and its runs."""
    if cell["count"]:
        yield f"interval {digits(cell['low'], 5)} to {digits(cell['high'], 5)}"
    lost = {"not finite": "nonfinite", "failed": "failed"}
    yield ", ".join([f"{cell['runs']} runs", *(f"{cell[name]} {text}" for text, name in lost.items() if cell[name])])


def _parts(key: TrialKey) -> Iterator[str]:
    for kind, part in (("mechanism", key.release.mechanism), ("model", key.fit.model)):
        yield f"{kind} {part.name} {part.version}"


def command(cells: Sequence[Cell]) -> str:
    """The line that runs the trials of a method on a table again."""
    key = cells[0].key
    settings = [f"experiment={cells[0].experiment}", f"sweep.dataset=[{key.release.dataset['name']}]"]
    settings += [f"mechanism=[{key.release.mechanism.name}]", f"model=[{key.fit.model.name}]"]
    budgets = dict.fromkeys(one.key.release.budget.epsilon for one in cells)
    finite = [number(epsilon) for epsilon in budgets if math.isfinite(epsilon)]
    settings += [f"epsilon=[{','.join(finite)}]"] if finite else []
    return shlex.join(["dpbench", "run", *settings])
