"""`dpbench recommend`: what the arena says of methods for a table of one's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpbench.commands.report import notes_of
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import Experiment, compose
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.errors import UserError
from dpbench.report.footnotes import as_text
from dpbench.report.frames.results import Results, frame_of
from dpbench.report.recommendation import CLOSE, Size, errors_of, left_out, nearest, ranked, ranking_metric
from dpbench.report.text import aligned, number
from dpbench.report.versions import several_versions

REGRESSION, CLASSIFICATION = "arena_regression", "arena_classification"
SHOWN = 6  # methods
UNTESTED = "metric=[coefficient_distance]"  # of the table its size is asked for, so that it needs no test rows


@dataclass(frozen=True)
class Own:
    """The table that is asked for: its name, "" if its size alone is known, and the budgets.

    `counted`: the size rests on the number of its private rows.
    """

    name: str
    size: Size
    epsilons: Sequence[float]
    counted: bool = False


def recommend(arguments: argparse.Namespace) -> int:
    """Print, for each epsilon, how the methods did on the nearest tables, and what choosing so would have cost.

    Results by other versions of the code count, and a line says how many: without them a method whose code was improved
    would be missing.
    """
    arena, own = _asked(arguments)
    stored = stored_trials(arena, arguments.config_dir, other_code=True)
    metric = ranking_metric(arena.report)
    results = Results(arena, stored.trials, notes_of(arena, stored))
    frame = frame_of([results], {})
    errors = errors_of(frame, metric, arena.report["labels"])
    errors = errors[errors.index.get_level_values("dataset") != own.name]
    if errors.empty:
        raise UserError(
            f"{arena.results} holds no trials of {arena.name} on other tables; run it (dpbench run experiment="
            f"{arena.name}), or name the folder that has its results (results=...)"
        )
    sizes = {grid.dataset.name: _size(grid, int(grid.dataset.card["rows"])) for grid in arena.grids}
    error = f"1 - {metric}" if (frame.loc[frame["metric"] == metric, "direction"] == "higher").any() else metric
    sentences = [f"{own.name or 'A table'}: {_size_text(own.size)}"]
    if own.counted:
        sentences.append("The rows were counted, which no ledger pays for: the answer depends on their number")
    sentences += [f"Error: {error} in {arena.name}", *results.notes]
    sentences += several_versions([results], arena.report["labels"], {"metric": metric})
    print(as_text(sentences))
    for epsilon in own.epsilons:
        near = nearest(errors, sizes, own.size.at(epsilon))
        found = ranked(near)
        if found.empty:
            print(f"\nε = {number(epsilon)}: no method has a value of {metric} on any of the nearest tables.")
            continue
        print(f"\nε = {number(epsilon)}. The nearest tables by n ε, columns and coefficients:\n")
        print(_places(near, sizes))
        of_all = f" (the first {SHOWN} of {len(found)})" if len(found) > SHOWN else ""
        print(f"\nMethods by their error there, in multiples of the lowest at each{of_all}:\n")
        print(_methods(found))
        if lacking := [str(name) for name in near if not np.isfinite(near[name]).all()]:
            what = f"Not run, or without a value, on some of these {len(near)}, so that they stand last or are left out"
            print(f"\n{what}: {'; '.join(lacking)}")
    print("\n" + _trust(left_out(errors, sizes)))
    return 0


def _asked(arguments: argparse.Namespace) -> tuple[Experiment, Own]:
    """The arena as it was run, and the table of the settings or of the size that is given in place of one, with the
    epsilons of the arena where none is given. The target of a table says whether the arena is of regression or of
    classification.
    """
    overrides, config_dir = arguments.overrides, arguments.config_dir
    experiment = [item for item in overrides if item.startswith("experiment=")]
    where = [item for item in overrides if item.startswith("results=")]
    budget = [item for item in overrides if item.startswith(("epsilon=", "mu="))]
    table = any(item.startswith("dataset=") for item in overrides)
    sized = any(given is not None for given in (arguments.rows, arguments.columns, arguments.coefficients))
    if table == sized:
        raise UserError(
            "name a table: dataset=csv with dataset.path, dataset.domain and dataset.target, or one of `dpbench list "
            "datasets`; or give its size alone: --rows and --columns, with an arena such as experiment=arena_regression"
        )
    if sized:
        size = _given(arguments)
        if not experiment:
            raise UserError("without a table, name the arena: experiment=arena_regression, arena_classification, ...")
        if rest := [item for item in overrides if item not in (*experiment, *where, *budget)]:
            raise UserError(f"with a size only experiment, epsilon, mu and results can be set, not {rest[0]}")
        asked = compose([*experiment, *budget], config_dir).epsilons
        return compose([*experiment, *where], config_dir), Own("", size, asked)
    composed = compose([UNTESTED, *(item for item in overrides if item not in experiment)], config_dir)
    design = _design(composed)
    numeric = design.domain[design.target].numeric
    experiment = experiment or [f"experiment={REGRESSION if numeric else CLASSIFICATION}"]
    arena = compose([*experiment, *where], config_dir)
    size, epsilons = _size(composed, _rows(composed)), composed.epsilons if budget else arena.epsilons
    counted = not (composed.dataset.public or "rows" in composed.dataset.card)
    return arena, Own(composed.dataset.name, size, epsilons, counted)


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


def _places(near: pd.DataFrame, sizes: dict[str, Size]) -> str:
    rows = []
    for (dataset, epsilon), method, error in zip(near.index, near.idxmin(axis=1), near.min(axis=1), strict=True):
        rows.append([dataset, _size_text(sizes[dataset]), f"ε = {number(epsilon)}", f"{method} {error:.4g}"])
    return aligned(zip(["table", "", "", "lowest error"], *rows, strict=True))


def _methods(found: pd.DataFrame) -> str:
    rows = [
        [name, f"{row['ratio']:.3g}", f"{row['worst']:.3g}", f"{row['close']:.0f} of {row['value']:.0f}"]
        for name, row in found.head(SHOWN).iterrows()
    ]
    header = ["method", "geometric mean", "worst", f"within {100 * (CLOSE - 1):.0f} % of the best"]
    return aligned(zip(header, *rows, strict=True))


def _trust(costs: pd.DataFrame) -> str:
    """How such a choice did on the arena's own tables, each left out in turn."""
    if costs["chosen"].isna().all():
        return "How reliable that is is not known: no other table of the experiment has results."
    sentences = []
    for name, what in (("chosen", "the first method of such a list"), ("fixed", "the method that is best over all")):
        known = costs[name].dropna()
        sentences.append(
            f"{what} was within {100 * (CLOSE - 1):.0f} % of the best in {(known <= CLOSE).sum()} of {len(known)} "
            f"cases (median multiple {known.median():.3g}, worst {known.max():.3g})"
        )
    return f"How reliable that is: with each table left out in turn, {sentences[0]}; {sentences[1]}."
