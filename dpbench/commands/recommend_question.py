"""What `dpbench recommend` is asked: the arenas that answer, and the table or its size."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpbench.config import Experiment, compose, declared_rows
from dpbench.config.experiment import Single, single
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Domain
from dpbench.data.encode import CATEGORICAL, Design
from dpbench.data.encode import number as encoded
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.errors import UserError
from dpbench.files import Node
from dpbench.report.recommendation import Size
from dpbench.report.text import number

NEEDS = {  # the arenas that answer it
    "coefficients": ("arena_regression",),
    "classifier": ("arena_classification",),
    "intervals": ("arena_intervals", "arena_intervals_more", "arena_intervals_marginals"),
    "rows": ("arena_rows",),
    "queries": ("arena_queries", "arena_queries_more"),
}
WITHOUT_TARGET = ("rows", "queries")
DECLARED = ("mechanism=exact", "epsilon=1")  # of a table its declaration is asked for, whatever is done with it
KEPT = ("dataset", "design", "delta", "relation", "limits", "noise")  # of the settings, in the commands
SOME_TABLE = ("dataset=csv", "dataset.path=FILE.csv", "dataset.domain=FILE.yaml", "dataset.target=NAME")


@dataclass(frozen=True)
class Own:
    """The table that is asked for: its name, "" if its size alone is known, the budgets, and its settings.

    `delta`: as it is given, or that of the arena. `relation`: of its neighbours, "" if none is set. `read`: what was
    read of private rows, in words. `files`: the checksums of its public sources, by which other tables of the same rows
    are known.
    """

    name: str
    size: Size
    epsilons: Sequence[float]
    settings: Sequence[str]
    delta: str = ""
    relation: str = ""
    read: str = ""
    files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """The arenas as they were run, and the table.

    `need`: "" where an arena is named in its place.
    """

    need: str
    arenas: Sequence[Experiment]
    own: Own


def asked_of(arguments: argparse.Namespace) -> Asked:
    """The arenas as they were run, and the table of the settings or of the size that is given in place of one, with the
    epsilons of the arena where none is given. The target of a table says whether coefficients or a classifier are
    needed, if nothing else does; one without a target is asked for rows.
    """
    overrides, config_dir, need = arguments.overrides, arguments.config_dir, arguments.need
    experiment, where, budget = (
        [item for item in overrides if item.startswith(names)]
        for names in ("experiment=", "results=", ("epsilon=", "mu="))
    )
    rest = [item for item in overrides if item not in (*experiment, *where, *budget)]
    if experiment and need:
        raise UserError(f"--need {need} names the arena: leave {experiment[0]} out")
    if any(item.startswith("dataset=") for item in overrides):
        own, need = _table(arguments, rest, bool(experiment))
    else:
        need = "" if experiment else need or "coefficients"
        table = SOME_TABLE[:-1] if need in WITHOUT_TARGET else SOME_TABLE
        own = Own("", _given(arguments, rest), (), (*table, *rest))
    if need in WITHOUT_TARGET:
        own = replace(own, size=replace(own.size, coefficients=None))
    lines = [[f"experiment={name}", *where] for name in NEEDS.get(need, ())] or [[*experiment, *where]]
    arenas = [compose(line, config_dir) for line in lines]
    delta = [item for item in rest if item.startswith("delta=")]
    given = compose([*budget, *delta], config_dir)
    text = delta[0].partition("=")[2] if delta else number(arenas[0].delta)
    return Asked(need, arenas, replace(own, epsilons=given.epsilons if budget else arenas[0].epsilons, delta=text))


def _given(arguments: argparse.Namespace, settings: Sequence[str]) -> Size:
    """The size in the options. Raises `UserError` for one that no table has."""
    rows, columns, coefficients = arguments.rows, arguments.columns, arguments.coefficients
    if rows is None and columns is None and coefficients is None:
        raise UserError(
            "name a table: dataset=csv with dataset.path, dataset.domain and dataset.target, or one of `dpbench list "
            "datasets`; or give its size alone: --rows and --columns"
        )
    if other := [item for item in settings if not item.startswith("delta=")]:
        raise UserError(f"with a size only experiment, epsilon, mu, delta and results can be set, not {other[0]}")
    if rows is None or columns is None:
        raise UserError("--rows and --columns go together where no table is named")
    return _checked(Size(rows, columns, columns if coefficients is None else coefficients))


def _checked(size: Size) -> Size:
    if min(size.rows, size.columns, size.coefficients or 1) < 1:
        raise UserError("--rows, --columns and --coefficients must be at least 1")
    return size


def _table(arguments: argparse.Namespace, settings: Sequence[str], named: bool) -> tuple[Own, str]:
    """The table of these settings, and what is needed of it, "" where an arena is `named`. All but the number of rows
    is in its declaration.
    """
    if arguments.columns is not None or arguments.coefficients is not None:
        raise UserError("the declaration of a table has its columns: of one that is named give --rows alone")
    table = single([*settings, *DECLARED], arguments.config_dir)
    target, need = table.design.get("target"), arguments.need
    binary = None if target is None else Design(table.dataset.domain, **table.design).binary
    if binary is None and (named or need not in (None, *WITHOUT_TARGET)):
        raise UserError(
            "give the attribute that is predicted, such as dataset.target=income; or --need rows or --need queries"
        )
    if need == "classifier" and not binary:
        raise UserError(f"--need classifier: the target {target} does not have two levels")
    if not named and need is None:
        need = "rows" if binary is None else "classifier" if binary else "coefficients"
    kept = [item for item in settings if item.lstrip("+~").partition("=")[0].partition(".")[0] in KEPT]
    rows, read = _public_rows(table, arguments.rows)
    relation = table.budget.relation if any(item.startswith("relation=") for item in kept) else ""
    size = _checked(size_of(table, rows))
    own = Own(table.dataset.name, size, (), kept, "", relation, read, files_of(table.dataset))
    return own, need or ""


def files_of(dataset: Dataset) -> frozenset[str]:
    """The checksums of the files that its rows are read from, as far as they are declared."""
    return frozenset(one.sha256 for one in dataset.sources if one.sha256)


def _public_rows(table: Single, given: int | None) -> tuple[int, str]:
    """How many rows the table has, and what was read to know it, in words; `given`: the number in the options.

    Raises `UserError` where nothing says it, and whoever counted the rows would tell something of them.
    """
    dataset = table.dataset
    if given is not None:
        return given, "" if dataset.public else "No row of it was read"
    if dataset.public or declared_rows(dataset) is not None:
        return rows_of(dataset), ""
    if table.budget.relation == "replace":
        return rows_of(dataset), "Its rows were counted: their number is public where neighbours replace a record"
    raise UserError(
        f"the number of rows of {dataset.name} is not public, and counting them pays no budget: say about how many "
        "there are, by what may be known of them, such as --rows 20000"
    )


def rows_of(dataset: Dataset) -> int:
    """How many rows the table has by its card, or else by itself. Raises `UserError` for one that draws its rows."""
    if (rows := declared_rows(dataset)) is not None:
        return rows
    table = load_dataset(dataset)
    if isinstance(table, Simulation):
        raise UserError(f"{dataset.name} has as many rows as are drawn: say how many, such as --rows 20000")
    return len(table)


def size_of(one: Experiment | Single, rows: int, most: int | None = None) -> Size:
    """The size of a table, with `most` so many rows."""
    domain = one.dataset.domain
    return Size(rows if most is None else min(rows, most), len(domain.names), _coefficients(domain, one.design))


def _coefficients(domain: Domain, settings: Node) -> int:
    """Those of a regression; without a target, of one of another number on all columns but one."""
    if settings.get("target") is not None:
        return len(Design(domain, **settings).columns)
    encode = CATEGORICAL[settings.get("categorical", Design.categorical)]
    return sum(len(encoded(one) if one.numeric else encode(one)) for one in domain.attributes)


def size_text(size: Size) -> str:
    """The size in words.

    >>> size_text(Size(20000, 8, 1)), size_text(Size(9, 1, None))
    ('20,000 rows, 8 columns, 1 coefficient', '9 rows, 1 column')
    """
    counts = {"row": size.rows, "column": size.columns, "coefficient": size.coefficients}
    return ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in counts.items() if n is not None)
