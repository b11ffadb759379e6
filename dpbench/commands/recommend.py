"""`dpbench recommend`: what the arena says of methods for a table of one's own."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from dpbench.commands.release import checked
from dpbench.commands.report import notes_of
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import Experiment, choices, compose, declared_rows, hydra_text
from dpbench.config.experiment import Single, single
from dpbench.config.registry import folder_of, read_yaml
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Domain
from dpbench.data.encode import CATEGORICAL, Design
from dpbench.data.encode import number as encoded
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.errors import UserError
from dpbench.files import Node
from dpbench.privacy.budget import RELATIONS
from dpbench.report.footnotes import as_text, listed
from dpbench.report.frames.results import Results, frame_of, merged_notes, several_versions
from dpbench.report.frames.series import Series
from dpbench.report.outcomes import Outcomes, method_cells, shipped
from dpbench.report.recommendation import (
    CLOSE,
    RULES,
    Evidence,
    Size,
    beyond,
    evidence_of,
    left_out,
    nearest,
    ranked,
    ranking_metric,
    rates,
    without_unit,
)
from dpbench.report.text import aligned, number, span

NEEDS = {  # the arenas that answer it
    "coefficients": ("arena_regression",),
    "intervals": ("arena_intervals", "arena_intervals_marginals"),
    "rows": ("arena_rows",),
    "queries": ("arena_queries",),
    "classifier": ("arena_classification",),
}
SHOWN = 3  # methods
DECLARED = ("mechanism=exact", "epsilon=1")  # of a table its declaration is asked for, whatever is done with it
KEPT = ("dataset", "design", "delta", "relation", "limits", "noise")  # of the settings, in the commands
SOME_TABLE = ("dataset=csv", "dataset.path=FILE.csv", "dataset.domain=FILE.yaml", "dataset.target=NAME")
TRIVIAL = {"r2": "the mean", "auc": "a constant score", "two_way": "independent attributes"}


@dataclass(frozen=True)
class Own:
    """The table that is asked for: its name, "" if its size alone is known, the budgets, and its settings.

    `relation`: of its neighbours. `read`: what was read of private rows, in words.
    """

    name: str
    size: Size
    epsilons: Sequence[float]
    settings: Sequence[str] = SOME_TABLE
    relation: str = RELATIONS[0]
    read: str = ""


@dataclass(frozen=True)
class Asked:
    """The arenas as they were run, and the table.

    `need`: "" where an arena is named in its place.
    """

    need: str
    arenas: Sequence[Experiment]
    own: Own


@dataclass(frozen=True)
class Known:
    """What the arenas have: the evidence, the sizes of their tables, the metric, what the error is, the level of
    intervals.
    """

    evidence: Evidence
    sizes: Mapping[str, Size]
    metric: str
    error: str
    level: float | None

    @cached_property
    def costs(self) -> pd.DataFrame:
        """What the rules of choice would have cost."""
        return left_out(self.evidence.errors, self.sizes)

    @property
    def trivial(self) -> str:
        """The trivial answer, "" if there is none."""
        answers = not self.evidence.trivial.isna().all()
        return TRIVIAL.get(self.metric, "the best trivial answer") if answers else ""


def recommend(arguments: argparse.Namespace) -> int:
    """Print, for each epsilon, the methods to take, what to expect of them, and what is not worth doing.

    Results by other versions of the code count, and a line says how many: without them a method whose code was improved
    would be missing.
    """
    asked = _asked(arguments)
    found = [outcomes_of(one, arguments.config_dir) for one in asked.arenas]
    known = _known(asked, pd.concat([one.cells for one in found], ignore_index=True))
    sentences = [f"{asked.own.name or 'A table'}: {_size_text(asked.own.size)}"]
    sentences += [asked.own.read] if asked.own.read else []
    sentences += [f"Error: {known.error} in {listed([one.name for one in asked.arenas])}"]
    sentences += merged_notes({one.arena: one.notes if len(one.cells) else None for one in found})
    print(as_text(sentences))
    right, cases = rates(known.costs), len(known.costs)
    chosen, other = right.index
    within = f"within {100 * (CLOSE - 1):.0f} % of the best in {right[chosen]} of {cases} cases"
    how = f"Leave-one-table-out: {within}, the {RULES[other]} in {right[other]}"
    print(f"Recommended: the {RULES[chosen]}. {how}.")
    for epsilon in asked.own.epsilons:
        answer = _answer(asked, known, epsilon, by_all=chosen == "overall", config_dir=arguments.config_dir)
        print("", *answer, sep="\n")
    return 0


def outcomes_of(arena: Experiment, config_dir: Path | None) -> Outcomes:
    """How the methods of an arena did by its trials, or by what ships of them."""
    paper = folder_of(choices("experiment", config_dir)[arena.name]).rstrip("/")
    return shipped(arena, paper) or outcomes_of_trials(arena, config_dir)


def outcomes_of_trials(arena: Experiment, config_dir: Path | None) -> Outcomes:
    """How the methods of an arena did by the trials that are stored or exported."""
    stored = stored_trials(arena, config_dir, other_code=True)
    results = Results(arena, stored.trials, notes_of(arena, stored))
    frame, metric = frame_of([results], {}), ranking_metric(arena.report)
    cells = method_cells(frame, (metric, without_unit(metric, set(frame["metric"])), "coverage"))
    return Outcomes(arena.name, cells, [*results.notes, *several_versions([results], arena.report["labels"], {})])


def _known(asked: Asked, cells: pd.DataFrame) -> Known:
    arena = asked.arenas[0]
    private = cells["epsilon"] < math.inf
    cells = cells[cells["dataset"] != asked.own.name]
    if not private[cells.index].any():
        raise UserError(
            f"{arena.results} holds no trials of {arena.name} on other tables; dpbench run experiment={arena.name} "
            "makes them"
        )
    metric = without_unit(ranking_metric(arena.report), set(cells["metric"]))
    levels = [part.parameters["level"] for part in arena.models if "level" in part.parameters]
    level = max(levels, default=None) if "coverage" in set(cells["metric"]) else None
    sizes = {grid.dataset.name: _size(grid, _rows(grid.dataset), grid.sample.train_rows) for grid in arena.grids}
    higher = (cells.loc[cells["metric"] == metric, "direction"] == "higher").any()
    evidence = evidence_of(cells, metric, arena.report["labels"], level)
    return Known(evidence, sizes, metric, f"1 - {metric}" if higher else metric, level)


# --- the question ----------------------------------------------------------------------------------------------------


def _asked(arguments: argparse.Namespace) -> Asked:
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
        own = Own("", _given(arguments, rest), ())
        need = "" if experiment else need or "coefficients"
    lines = [[f"experiment={name}", *where] for name in NEEDS.get(need, ())] or [[*experiment, *where]]
    arenas = [compose(line, config_dir) for line in lines]
    delta = [item for item in rest if item.startswith("delta=")]
    epsilons = compose([*budget, *delta], config_dir).epsilons if budget else arenas[0].epsilons
    return Asked(need, arenas, replace(own, epsilons=epsilons))


def _given(arguments: argparse.Namespace, settings: Sequence[str]) -> Size:
    """The size in the options. Raises `UserError` for one that no table has."""
    rows, columns, coefficients = arguments.rows, arguments.columns, arguments.coefficients
    if rows is None and columns is None and coefficients is None:
        raise UserError(
            "name a table: dataset=csv with dataset.path, dataset.domain and dataset.target, or one of `dpbench list "
            "datasets`; or give its size alone: --rows and --columns"
        )
    if settings:
        raise UserError(f"with a size only experiment, epsilon, mu and results can be set, not {settings[0]}")
    if rows is None or columns is None:
        raise UserError("--rows and --columns go together where no table is named")
    return _checked(Size(rows, columns, columns if coefficients is None else coefficients))


def _checked(size: Size) -> Size:
    if min(size.rows, size.columns, size.coefficients) < 1:
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
    if binary is None and (named or need not in (None, "rows")):
        raise UserError("give the attribute that is predicted, such as dataset.target=income; or --need rows")
    if need == "classifier" and not binary:
        raise UserError(f"--need classifier: the target {target} does not have two levels")
    if not named and need is None:
        need = "rows" if binary is None else "classifier" if binary else "coefficients"
    kept = [item for item in settings if item.lstrip("+~").partition("=")[0].partition(".")[0] in KEPT]
    rows, read = _public_rows(table, arguments.rows)
    own = Own(table.dataset.name, _checked(_size(table, rows)), (), kept, table.budget.relation, read)
    return own, need or ""


def _public_rows(table: Single, given: int | None) -> tuple[int, str]:
    """How many rows the table has, and what was read to know it, in words; `given`: the number in the options.

    Raises `UserError` where nothing says it, and whoever counted the rows would tell something of them.
    """
    dataset = table.dataset
    if given is not None:
        return given, "" if dataset.public else "No row of it was read"
    if dataset.public or declared_rows(dataset) is not None:
        return _rows(dataset), ""
    if table.budget.relation == "replace":
        return _rows(dataset), "Its rows were counted: their number is public where neighbours replace a record"
    raise UserError(
        f"the number of rows of {dataset.name} is not public, and counting them pays no budget: say about how many "
        "there are, by what may be known of them, such as --rows 20000"
    )


def _rows(dataset: Dataset) -> int:
    if (rows := declared_rows(dataset)) is not None:
        return rows
    table = load_dataset(dataset)
    if isinstance(table, Simulation):
        raise UserError(f"{dataset.name} has as many rows as are drawn: say how many, such as --rows 20000")
    return len(table)


def _size(one: Experiment | Single, rows: int, most: int | None = None) -> Size:
    """The size of a table, with `most` so many rows."""
    domain = one.dataset.domain
    return Size(rows if most is None else min(rows, most), len(domain.names), _coefficients(domain, one.design))


def _coefficients(domain: Domain, settings: Node) -> int:
    """Those of a regression; without a target, of one of another number on all columns but one."""
    if settings.get("target") is not None:
        return len(Design(domain, **settings).columns)
    encode = CATEGORICAL[settings.get("categorical", Design.categorical)]
    return sum(len(encoded(one) if one.numeric else encode(one)) for one in domain.attributes)


def _size_text(size: Size) -> str:
    return f"{size.rows:,} rows, {size.columns} columns, {size.coefficients} coefficients"


# --- the answer ------------------------------------------------------------------------------------------------------


def _answer(asked: Asked, known: Known, epsilon: float, *, by_all: bool, config_dir: Path | None) -> Iterator[str]:
    """What to take under a budget, how to run it, what to expect of it, and what is not worth doing."""
    evidence, own = known.evidence, asked.own.size
    near = nearest(evidence.errors, known.sizes, own.at(epsilon))
    cells = evidence.cells.reset_index("series").loc[near.index]
    places = [f"{dataset} at {number(budget)}" for dataset, budget in near.index]
    what = "Medians (ranges) are of the nearest by n ε, columns and coefficients"
    yield f"ε = {number(epsilon)}. {what}: {listed(places)}."
    if outside := beyond(evidence.errors, known.sizes, own, epsilon):
        yield f"Extrapolated: {'; '.join(outside)}."
    usable, lines, refused = ranked(near), dict[str, str](), dict[str, list[str]]()
    for name in ranked(evidence.errors) if by_all else usable:
        if name in usable and len(lines) < SHOWN:
            try:
                lines[name] = _command(asked, evidence.methods[name], epsilon, config_dir)
            except UserError as error:
                refused.setdefault(str(error), []).append(name)
    if lines:
        yield aligned(_expected(known, cells, near.index, [*lines]))
        yield from (f"{place}. {line}" for place, line in enumerate(lines.values(), 1))
    else:
        yield "No recommendation."
    yield from (f"Not on this table: {listed(names)}: {reason}" for reason, names in refused.items())
    yield from _not_worth(known, cells, near)


def _expected(known: Known, cells: pd.DataFrame, near: pd.Index, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The columns of a table of what some methods did on the nearest tables: medians, and all in brackets."""
    share = f"of the gain over {known.trivial} kept" if known.trivial else f"{known.error} / non-private"
    of_method = [cells[cells["series"] == name] for name in names]
    yield ["method", *names]
    yield [share, *(_range(known.evidence.expected.loc[near, name]) for name in names)]
    if known.level is not None:
        yield [f"coverage of {number(known.level)}", *(_range(rows["coverage"]) for rows in of_method)]
    yield ["seconds", *(f"{rows['seconds'].median():.2g}" for rows in of_method)]
    yield ["MB", *(f"{rows['mb'].median():.0f}" for rows in of_method)]
    value = "value" if known.level is None else "interval"
    yield [f"no {value} in", *(_without(rows) for rows in of_method)]


def _range(values: pd.Series[float]) -> str:
    """The median, and the least and the largest."""
    found = values.dropna()
    return f"{found.median():.2g} ({span(found, 2)})"


def _without(rows: pd.DataFrame) -> str:
    return f"{rows['without'].sum()} of {rows['runs'].sum()} runs"


def _not_worth(known: Known, cells: pd.DataFrame, near: pd.DataFrame) -> Iterator[str]:
    """What is not worth doing, by the nearest tables."""
    low = cells[cells["below"]].groupby("series")["coverage"].min()
    if len(low):
        named = ", ".join(f"{name} {coverage:.2f}" for name, coverage in low.items())
        yield f"Not to be used, for undercoverage on at least one of these tables (minimum shown): {named}."
    if mostly := [str(name) for name in near if name not in low and near[name].notna().mean() <= 0.5]:
        counts = (f"{name} {_without(cells[cells['series'] == name])}" for name in mostly)
        yield f"Left out, as they were not run or have no value on most of these: {', '.join(counts)}."
    if known.trivial and (lost := (~known.evidence.beaten.loc[near.index]).sum()):
        here = "No method beats" if 2 * lost > len(near) else "Sometimes no method beats"
        yield f"{here} {known.trivial} here: by two standard errors none does on {lost} of these {len(near)}."


# --- the commands ----------------------------------------------------------------------------------------------------


def _command(asked: Asked, method: Series, epsilon: float, config_dir: Path | None) -> str:
    """The line that runs a method on the table. Raises `UserError` if it would be refused.

    It is a release, with the settings that the arena's file gives the method, or for answers to queries, which are not
    written, and where an arena is named, a run of it.
    """
    arena = next(
        one
        for one in asked.arenas
        if method.mechanism in {part.name for part in one.mechanisms}
        and method.model in {part.name for part in one.models}
    )
    part = next(one for one in arena.mechanisms if one.name == method.mechanism)
    own, folder = asked.own, [] if config_dir is None else ["--config-dir", str(config_dir)]
    table = own.settings if own.name else [f"dataset={arena.grids[0].dataset.name}"]
    if asked.need in ("", "queries"):
        parts = [f"mechanism=[{method.mechanism}]", f"model=[{method.model}]", f"epsilon={number(epsilon)}"]
        compose([f"experiment={arena.name}", *table, *parts], config_dir)
        return shlex.join(["dpbench", "run", f"experiment={arena.name}", *own.settings, *parts, *folder])
    if own.relation not in part.relations:
        raise UserError(f"private under {' and '.join(part.relations)} alone, and not under relation={own.relation}")
    parts = [f"mechanism={method.mechanism}"]
    if asked.need != "rows":
        parts.append(f"model={method.model}")
    parts += [*_set_by(arena, method, config_dir), f"epsilon={number(epsilon)}"]
    if any(part.takes("expected_rows") for part in (*arena.mechanisms, *arena.models) if part.name in method.identity):
        parts.append(f"sample.train_rows={float(f'{own.size.rows:.2g}'):.0f}")  # declared, so not their exact number
    checked(single([*table, *parts], config_dir), config_dir)
    return shlex.join(["dpbench", "release", *own.settings, *parts, *folder, "--out", "FOLDER"])


def _set_by(arena: Experiment, method: Series, config_dir: Path | None) -> Iterator[str]:
    """What the file of the arena sets for the mechanism and the model, but for what it takes from elsewhere."""
    given = read_yaml(choices("experiment", config_dir)[arena.name])
    for group, name in (("mechanism", method.mechanism), ("model", method.model)):
        own = read_yaml(choices(group, config_dir)[name])
        for key, value in given.get(group, {}).get(name, {}).items():
            if not key.startswith("_") and "${" not in str(value):
                sign = "" if key in own else "++"  # a file may leave a parameter at its default
                yield f"{sign}{group}.{name}.{key}={hydra_text(value)}"
