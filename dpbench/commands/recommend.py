"""`dpbench recommend`: what the arena says of methods for a table of one's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dpbench.commands.report import notes_of
from dpbench.commands.stored import stored_trials
from dpbench.config import Experiment, compose
from dpbench.data.encode import Design
from dpbench.data.load import declared_domain, is_public, load_dataset
from dpbench.data.simulate import Simulation
from dpbench.errors import UserError
from dpbench.report.footnotes import as_text
from dpbench.report.frames.results import Results, frame_of
from dpbench.report.recommendation import CLOSE, Size, errors_of, left_out, nearest, ranked
from dpbench.report.text import aligned, number

REGRESSION, CLASSIFICATION = "arena_regression", "arena_classification"
SHOWN = 6  # methods
UNTESTED = "metric=[coefficient_distance]"  # of the table its size is asked for, so that it needs no test rows


def recommend(arguments: argparse.Namespace) -> int:
    """Print, for each epsilon, how the methods did on the nearest tables, and what choosing so would have cost."""
    arena, own = _composed(arguments.overrides, arguments.config_dir)
    stored = stored_trials(arena, arguments.config_dir, other_code=arguments.other_code)
    trials = stored.trials
    metric = arena.report["metrics"][0]
    frame = frame_of([Results(arena, trials)], {})
    errors = errors_of(frame, metric, arena.report["labels"])
    errors = errors[errors.index.get_level_values("dataset") != own.dataset["name"]]
    if errors.empty:
        raise UserError(
            f"{arena.results} holds no trials of {arena.name} on other tables; run it (dpbench run experiment="
            f"{arena.name}), or name the folder that has its results (results=...)"
        )
    sizes = {grid.dataset["name"]: _size(grid, int(grid.dataset["card"]["rows"])) for grid in arena.grids}
    size = _size(own, _rows(own))
    error = f"1 - {metric}" if (frame.loc[frame["metric"] == metric, "direction"] == "higher").any() else metric
    told = [f"{own.dataset['name']}: {_told(size)}"]
    if not is_public(own.dataset) and size.rows < own.sample.train_rows:
        told.append("The rows were counted, which no ledger pays for: the answer depends on their number")
    told += [f"Error: {error} in {arena.name}", *notes_of(arena, stored)]
    print(as_text(told))
    for epsilon in own.epsilons:
        near = nearest(errors, sizes, size.at(epsilon))
        found = ranked(near)
        print(f"\nε = {number(epsilon)}. The nearest tables by n ε, columns and coefficients:\n")
        print(_places(near, sizes))
        of_all = f" (the first {SHOWN} of {len(found)})" if len(found) > SHOWN else ""
        print(f"\nMethods by their error there, in multiples of the lowest at each{of_all}:\n")
        print(_methods(found))
        if lacking := [str(name) for name in near if near[name].isna().any()]:
            print(f"\nNot run at all {len(near)}, so that they stand last or are left out: {', '.join(lacking)}")
    print("\n" + _trust(left_out(errors, sizes)))
    return 0


def _composed(overrides: Sequence[str], config_dir: Path | None) -> tuple[Experiment, Experiment]:
    """The arena as it was run, of regression or of classification as the target asks, and the table of the settings,
    with the epsilons of the arena where these give none.
    """
    if not any(item.startswith("dataset=") for item in overrides):
        raise UserError(
            "name a table: dataset=csv with dataset.path, dataset.domain and dataset.target, or one of `dpbench list "
            "datasets`"
        )
    named = [item for item in overrides if item.startswith("experiment=")]
    own = compose([UNTESTED, *(item for item in overrides if item not in named)], config_dir)
    design = _design(own)
    named = named or [f"experiment={REGRESSION if design.domain[design.target].numeric else CLASSIFICATION}"]
    where = [item for item in overrides if item.startswith("results=")]
    arena = compose([*named, *where], config_dir)
    given = any(item.startswith(("epsilon=", "mu=")) for item in overrides)
    return arena, own if given else replace(own, epsilons=arena.epsilons)


def _rows(experiment: Experiment) -> int:
    if "rows" in experiment.dataset.get("card", {}):
        return int(experiment.dataset["card"]["rows"])
    table = load_dataset(experiment.dataset)
    return experiment.sample.train_rows if isinstance(table, Simulation) else len(table)


def _size(experiment: Experiment, rows: int) -> Size:
    design = _design(experiment)
    return Size(min(rows, experiment.sample.train_rows), len(design.domain.names), len(design.columns))


def _design(experiment: Experiment) -> Design:
    return Design(declared_domain(experiment.dataset), **experiment.design)


def _told(size: Size) -> str:
    return f"{size.rows:,} rows, {size.columns} columns, {size.coefficients} coefficients"


def _places(near: pd.DataFrame, sizes: dict[str, Size]) -> str:
    rows = []
    for (dataset, epsilon), method, error in zip(near.index, near.idxmin(axis=1), near.min(axis=1), strict=True):
        rows.append([dataset, _told(sizes[dataset]), f"ε = {number(epsilon)}", f"{method} {error:.4g}"])
    return aligned(zip(["table", "", "", "lowest error"], *rows, strict=True))


def _methods(found: pd.DataFrame) -> str:
    rows = [
        [name, f"{row['ratio']:.3g}", f"{row['worst']:.3g}", f"{row['close']:.0f} of {row['run']:.0f}"]
        for name, row in found.head(SHOWN).iterrows()
    ]
    header = ["method", "geometric mean", "worst", f"within {100 * (CLOSE - 1):.0f} % of the best"]
    return aligned(zip(header, *rows, strict=True))


def _trust(costs: pd.DataFrame) -> str:
    """How such a choice did on the arena's own tables, each left out in turn."""
    told = []
    for name, what in (("chosen", "the first method of such a list"), ("fixed", "the method that is best over all")):
        known = costs[name].dropna()
        told.append(
            f"{what} was within {100 * (CLOSE - 1):.0f} % of the best in {(known <= CLOSE).sum()} of {len(known)} "
            f"cases (median multiple {known.median():.3g}, worst {known.max():.3g})"
        )
    return f"How sure that is: with each table left out in turn, {told[0]}; {told[1]}."
