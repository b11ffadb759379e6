"""A page for each mechanism, and the list of all."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpbench.config.catalogue import Entry, catalogue
from dpbench.config.parts import declared_parts
from dpbench.config.schema import Part
from dpbench.grid import golden
from dpbench.grid.audits import AuditRecord
from dpbench.report.export_file import Cell
from dpbench.report.site.boards import Board
from dpbench.report.site.documents import Checkout
from dpbench.report.site.leaderboards import command
from dpbench.report.site.rendering import Site
from dpbench.resources import PACKAGE

ENDS = 3  # tables named as those where a method does best, and worst


@dataclass(frozen=True)
class Record:
    """How a method did in a leaderboard at an epsilon: its ranks, if it has any, and the cells where it did best and
    worst.
    """

    board: Board
    label: str
    epsilon: float
    ranks: Mapping[Any, Any] | None
    methods: int
    best: Sequence[Mapping[Any, Any]]
    worst: Sequence[Mapping[Any, Any]]
    seconds: float
    mb: float


def write_methods(
    site: Site, checkout: Checkout, boards: Sequence[Board], exported: Iterable[Cell], audits: Sequence[AuditRecord]
) -> None:
    """Write the page of each mechanism, and the list."""
    entries, parts = catalogue("mechanism"), declared_parts("mechanism")
    runs = defaultdict[str, list[Cell]](list)
    for cell in exported:
        runs[cell.key.release.mechanism.name].append(cell)
    for entry in entries:
        name, part = entry.name, parts[entry.name]
        own = runs[name]
        records = [record for board in boards for record in records_of(board, name)]
        path, text = source_of(part.target)
        site.render(
            f"methods/{name}.md",
            "method.md.j2",
            entry=entry,
            part=part,
            about=text,
            version=version_of(part),
            source=path,
            address=checkout.address(path),
            records=records,
            experiments=sorted({cell.experiment for cell in own}),
            trials=sum(cell.count for cell in own),
            command=_example(boards, name),
            audits=[one for one in audits if one.mechanism == name],
        )
    site.render("methods/index.md", "methods.md.j2", rows=[_listed(entry, boards, audits) for entry in entries])


def _listed(entry: Entry, boards: Sequence[Board], audits: Sequence[AuditRecord]) -> tuple[Entry, list[Board], int]:
    """A method, the leaderboards that have it, and the number of its audits."""
    own = [board for board in boards if entry.name in board.by_mechanism]
    return entry, own, sum(one.mechanism == entry.name for one in audits)


def records_of(board: Board, mechanism: str) -> list[Record]:
    """How the methods of a mechanism did in a leaderboard: one for each of its labels and epsilons."""
    found = []
    own = board.by_mechanism.get(mechanism)
    for (label, epsilon), cells in () if own is None else own.groupby(["series", "epsilon"], sort=True):
        order, medians = cells.sort_values("rank", kind="stable"), cells[["seconds", "mb"]].median()
        best, worst = (rows.head(ENDS).to_dict("records") for rows in (order, order[::-1]))
        methods = int((board.ranks["epsilon"] == epsilon).sum())
        name, at = str(label), float(str(epsilon))
        found.append(Record(board, name, at, board.ranked.get((name, at)), methods, best, worst, *medians))
    return found


def source_of(target: str) -> tuple[str, str]:
    """The file of a function of the project, and its docstring as Markdown; the code is read, not run."""
    module, _, name = target.rpartition(".")
    path = module.replace(".", "/") + ".py"
    tree = ast.parse((PACKAGE.parent / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    return path, as_markdown(ast.get_docstring(next(functions)) or "")


def as_markdown(docstring: str) -> str:
    """A docstring whose parts begin paragraphs.

    >>> print(as_markdown("Do it.\\n**Source** A paper."))
    Do it.
    <BLANKLINE>
    **Source** A paper.
    """
    text = re.sub(r"(?<!\n)\n(?=\*\*)", "\n\n", docstring)
    return re.sub(r"(?<!`)([<>])(?!`)", lambda found: {"<": "&lt;", ">": "&gt;"}[found[1]], text)


def version_of(part: Part) -> str:
    """Its version today; "" for a part without golden outputs."""
    known = golden.stored().get(f"{part.group}/{part.name}")
    return "" if known is None else str(len(known.versions))


def _example(boards: Sequence[Board], mechanism: str) -> str:
    """A line that runs it, of the first leaderboard that has it; "" if none has."""
    for board in boards:
        if mechanism in board.by_mechanism:
            return command(board.exported(board.by_mechanism[mechanism].iloc[0].to_dict()))
    return ""
