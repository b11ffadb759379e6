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
from dpbench.report.frames.frame import LEVEL
from dpbench.report.page.shown_ledgers import lines_of
from dpbench.report.site.boards import Board
from dpbench.report.site.rendering import Scale, Site, chart, digits, score
from dpbench.report.tables.runs import measured_for
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
class Behind:
    """All that stands behind a number: the facts, the command, the ledger and the trials."""

    cell: Mapping[Any, Any]
    score: str
    facts: Sequence[tuple[str, str]]
    command: str
    whose: str
    ledger: Sequence[tuple[str, str]]
    trials: Sequence[tuple[int, str, str]]


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
            behind=[self.behind(cell) for cell in cells.to_dict("records")],
        )

    def behind(self, cell: Mapping[Any, Any]) -> Behind:
        """What stands behind the number of a cell."""
        exported = self.board.exported(cell)
        ledger = next((one.ledger for one in exported if one.ledger is not None), None)
        trials = [
            (one.repetition, one.id, digits(one.value, 5) if one.status == "done" else one.status.replace("_", " "))
            for one in self.board.trials[cell["place"]]
        ]
        return Behind(
            cell,
            score(cell),
            list(self._facts(cell, exported)),
            command(exported[0]),
            "" if ledger is None else f"the release of repetition {ledger.repetition}",
            [] if ledger is None else list(lines_of(ledger.events)),
            trials,
        )

    def _facts(self, cell: Mapping[Any, Any], exported: Sequence[Cell]) -> Iterator[tuple[str, str]]:
        key = exported[0].key
        if cell["count"]:
            yield INTERVAL, f"{digits(cell['low'], 5)} to {digits(cell['high'], 5)} (Student's t)"
        lost = {"not finite": "nonfinite", "failed": "failed"}
        counts = [f"{cell['runs']} runs", *(f"{cell[name]} {text}" for text, name in lost.items() if cell[name])]
        yield "Runs", ", ".join(counts)
        if math.isfinite(cell["epsilon"]):
            target = f"ε = {number(cell['epsilon'])}, δ = {number(cell['delta'])}"
            yield "Budget", f"{target}, neighbours {cell['relation'].replace('_', '/')}"
            spent = cell["spent_epsilon"]
            yield "Spent", "unknown: no release" if pd.isna(spent) else f"at most ε = {number(spent)} at this δ"
            yield "Measured ε ≥", measured_for([one.key for one in exported], self.audits)
        made = [("mechanism", key.release.mechanism), ("model", key.fit.model)]
        yield "Versions", ", ".join(f"{kind} {part.name} {part.version}" for kind, part in made)
        commits = Counter[str]()
        for one in exported:
            commits[str(one.shared["provenance"]["commit"])[:12]] += one.count
        yield "Commits", ", ".join(f"{commit} ({count})" for commit, count in commits.items())


def command(cell: Cell) -> str:
    """The line that runs the trials of a cell again."""
    key, epsilon = cell.key, cell.key.release.budget.epsilon
    settings = [f"experiment={cell.experiment}", f"sweep.dataset=[{key.release.dataset['name']}]"]
    settings += [f"mechanism=[{key.release.mechanism.name}]", f"model=[{key.fit.model.name}]"]
    settings += [f"epsilon=[{number(epsilon)}]"] if math.isfinite(epsilon) else []
    return shlex.join(["dpbench", "run", *settings])
