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

from dpbench.commands.report import notes_of
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import Experiment, choices, compose, hydra_text
from dpbench.config.experiment import single
from dpbench.config.registry import read_yaml
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.errors import UserError
from dpbench.grid.single import check_reads, design_of
from dpbench.report.footnotes import as_text, listed
from dpbench.report.frames.results import Results, frame_of, notes_on, several_versions
from dpbench.report.frames.series import Series
from dpbench.report.recommendation import (
    CLOSE,
    IN_UNITS,
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
)
from dpbench.report.text import aligned, number, span

NEEDS = {  # the arenas that answer it, and the model, if one alone does
    "coefficients": (("arena_regression",), ""),
    "intervals": (("arena_intervals", "arena_intervals_marginals"), ""),
    "rows": (("arena_regression",), "linear_rows"),
    "queries": (("arena_queries",), ""),
    "classifier": (("arena_classification",), ""),
}
ROWS_OF_CLASSES = (("arena_classification",), "logistic_rows")
SHOWN = 3  # methods
UNTESTED = "metric=[coefficient_distance]"  # of the table its size is asked for, so that it needs no test rows
KEPT = ("dataset", "design", "delta", "relation", "limits", "noise")  # of the settings, in the commands
SOME_TABLE = ("dataset=csv", "dataset.path=FILE.csv", "dataset.domain=FILE.yaml", "dataset.target=NAME")
TRIVIAL = {"r2": "the mean", "auc": "a constant score"}


@dataclass(frozen=True)
class Own:
    """The table that is asked for: its name, "" if its size alone is known, the budgets, and its settings.

    `counted`: the size rests on the number of its private rows.
    """

    name: str
    size: Size
    epsilons: Sequence[float]
    settings: Sequence[str] = SOME_TABLE
    counted: bool = False


@dataclass(frozen=True)
class Asked:
    """The arenas as they were run, of whose methods those with `model` count ("": all), and the table.

    `need`: "" where an arena is named in its place.
    """

    need: str
    arenas: Sequence[Experiment]
    model: str
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
    found = [(one, stored_trials(one, arguments.config_dir, other_code=True)) for one in asked.arenas]
    results = [Results(one, stored.trials, notes_of(one, stored)) for one, stored in found]
    known = _known(asked, frame_of(results, {}))
    sentences = [f"{asked.own.name or 'A table'}: {_size_text(asked.own.size)}"]
    if asked.own.counted:
        sentences.append("The rows were counted, which no ledger pays for: the answer depends on their number")
    sentences += [f"Error: {known.error} in {listed([one.name for one in asked.arenas])}", *notes_on(results)]
    sentences += several_versions(results, asked.arenas[0].report["labels"], {})
    print(as_text(sentences))
    right, cases = rates(known.costs), len(known.costs)
    chosen, other = right.index
    within = f"within {100 * (CLOSE - 1):.0f} % of the best in {right[chosen]} of {cases} cases"
    how = f"With each table left out in turn it was {within}, the {RULES[other]} in {right[other]}"
    print(f"Named: the {RULES[chosen]}. {how}.")
    for epsilon in asked.own.epsilons:
        answer = _answer(asked, known, epsilon, by_all=chosen == "overall", config_dir=arguments.config_dir)
        print("", *answer, sep="\n")
    return 0


def _known(asked: Asked, frame: pd.DataFrame) -> Known:
    arena = asked.arenas[0]
    private = frame["epsilon"] < math.inf
    wanted = (frame["model"] == asked.model) | (not asked.model) | ~private
    frame = frame[(frame["dataset"] != asked.own.name) & wanted]
    if not private[frame.index].any():
        raise UserError(
            f"{arena.results} holds no trials of {arena.name} on other tables: they stand in the folder results of "
            f"dpbench's repository, not in the installed package. Name that folder (results=...), or run it, which "
            f"takes hours (dpbench run experiment={arena.name})"
        )
    metric = ranking_metric(arena.report)
    if IN_UNITS.get(metric) in set(frame["metric"]):
        metric = IN_UNITS[metric]
    levels = [part.parameters["level"] for part in arena.models if "level" in part.parameters]
    level = max(levels, default=None) if "coverage" in set(frame["metric"]) else None
    sizes = {grid.dataset.name: _size(grid, int(grid.dataset.card["rows"])) for grid in arena.grids}
    higher = (frame.loc[frame["metric"] == metric, "direction"] == "higher").any()
    evidence = evidence_of(frame, metric, arena.report["labels"], level)
    return Known(evidence, sizes, metric, f"1 - {metric}" if higher else metric, level)


# --- the question ----------------------------------------------------------------------------------------------------


def _asked(arguments: argparse.Namespace) -> Asked:
    """The arenas as they were run, and the table of the settings or of the size that is given in place of one, with the
    epsilons of the arena where none is given. The target of a table says whether coefficients or a classifier are
    needed, if nothing else does.
    """
    overrides, config_dir, need = arguments.overrides, arguments.config_dir, arguments.need
    experiment = [item for item in overrides if item.startswith("experiment=")]
    where = [item for item in overrides if item.startswith("results=")]
    budget = [item for item in overrides if item.startswith(("epsilon=", "mu="))]
    table = any(item.startswith("dataset=") for item in overrides)
    sized = any(given is not None for given in (arguments.rows, arguments.columns, arguments.coefficients))
    if table == sized:
        raise UserError(
            "name a table: dataset=csv with dataset.path, dataset.domain and dataset.target, or one of `dpbench list "
            "datasets`; or give its size alone: --rows and --columns"
        )
    if experiment and need:
        raise UserError(f"--need {need} names the arena: leave {experiment[0]} out")
    if sized:
        if rest := [item for item in overrides if item not in (*experiment, *where, *budget)]:
            raise UserError(f"with a size only experiment, epsilon, mu and results can be set, not {rest[0]}")
        composed, binary = compose([*experiment, *budget], config_dir), False
        own = Own("", _given(arguments), composed.epsilons)
    else:
        composed = compose([UNTESTED, *(item for item in overrides if item not in experiment)], config_dir)
        design = _design(composed)
        binary = design.binary
        settings = [item for item in overrides if item.lstrip("+~").partition("=")[0].partition(".")[0] in KEPT]
        counted = not (composed.dataset.public or "rows" in composed.dataset.card)
        own = Own(composed.dataset.name, _size(composed, _rows(composed)), composed.epsilons, settings, counted)
        if need == "classifier" and not binary:
            raise UserError(f"--need classifier: the target {design.target} does not have two levels")
    need = "" if experiment else need or ("classifier" if binary else "coefficients")
    names, model = ROWS_OF_CLASSES if need == "rows" and binary else NEEDS.get(need, ((), ""))
    lines = [[f"experiment={name}", *where] for name in names] or [[*experiment, *where]]
    arenas = [compose(line, config_dir) for line in lines]
    return Asked(need, arenas, model, own if budget else replace(own, epsilons=arenas[0].epsilons))


def _given(arguments: argparse.Namespace) -> Size:
    """The size in the options. Raises `UserError` for one that no table has."""
    rows, columns, coefficients = arguments.rows, arguments.columns, arguments.coefficients
    if rows is None or columns is None:
        raise UserError("--rows and --columns go together")
    size = Size(rows, columns, columns if coefficients is None else coefficients)
    if min(size.rows, size.columns, size.coefficients) < 1:
        raise UserError("--rows, --columns and --coefficients must be at least 1")
    return size


def _rows(experiment: Experiment) -> int:
    if "rows" in experiment.dataset.card:
        return int(experiment.dataset.card["rows"])
    table = load_dataset(experiment.dataset)
    return experiment.sample.train_rows if isinstance(table, Simulation) else len(table)


def _size(experiment: Experiment, rows: int) -> Size:
    design = _design(experiment)
    most = experiment.sample.train_rows if experiment.dataset.public else rows  # all of one's own are trained on
    return Size(min(rows, most), len(design.domain.names), len(design.columns))


def _design(experiment: Experiment) -> Design:
    return Design(experiment.dataset.domain, **experiment.design)


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
    usable, lines, refused = ranked(near), dict[str, str](), list[str]()
    for name in ranked(evidence.errors) if by_all else usable:
        if name in usable and len(lines) < SHOWN:
            try:
                lines[name] = _command(asked, evidence.methods[name], epsilon, config_dir)
            except UserError as error:
                refused.append(f"{name} does not run on this table: {error}")
    if lines:
        yield aligned(_expected(known, cells, near.index, [*lines]))
        yield from (f"{place}. {line}" for place, line in enumerate(lines.values(), 1))
    else:
        yield "No method can be named."
    yield from refused
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
        yield f"Not to be used, as intervals covered too little on one of these or more (the least): {named}."
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
    own, folder = asked.own, [] if config_dir is None else ["--config-dir", str(config_dir)]
    table = own.settings if own.name else [f"dataset={arena.grids[0].dataset.name}"]
    if asked.need in ("", "queries"):
        parts = [f"mechanism=[{method.mechanism}]", f"model=[{method.model}]", f"epsilon={number(epsilon)}"]
        compose([f"experiment={arena.name}", *table, *parts], config_dir)
        return shlex.join(["dpbench", "run", f"experiment={arena.name}", *own.settings, *parts, *folder])
    parts = [f"mechanism={method.mechanism}"]
    if asked.need != "rows":
        parts.append(f"model={method.model}")
    parts += [*_set_by(arena, method, config_dir), f"epsilon={number(epsilon)}"]
    if any(part.takes("expected_rows") for part in (*arena.mechanisms, *arena.models) if part.name in method.identity):
        parts.append(f"sample.train_rows={float(f'{own.size.rows:.2g}'):.0f}")  # declared, so not their exact number
    made = single([*table, *parts], config_dir)
    for model in made.models:
        check_reads(model, made.mechanism.offers, config_dir)
        design_of(model, made.dataset.domain, made.design)
    return shlex.join(["dpbench", "release", *own.settings, *parts, *folder, "--out", "FOLDER"])


def _set_by(arena: Experiment, method: Series, config_dir: Path | None) -> Iterator[str]:
    """What the file of the arena sets for the mechanism and the model, but for what it takes from elsewhere."""
    given = read_yaml(choices("experiment", config_dir)[arena.name])
    for group, name in (("mechanism", method.mechanism), ("model", method.model)):
        for key, value in given.get(group, {}).get(name, {}).items():
            if not key.startswith("_") and "${" not in str(value):
                yield f"{group}.{name}.{key}={hydra_text(value)}"
