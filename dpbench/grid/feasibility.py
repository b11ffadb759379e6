"""Settings compared with the declared attributes and rows, so that what cannot run is refused in the plan."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from dpbench.config import Experiment, Part, declared_rows
from dpbench.config.schema import Parameters
from dpbench.data.domain import Domain
from dpbench.data.encode import Design
from dpbench.data.table import count_test_rows
from dpbench.errors import UserError, shown
from dpbench.grid.seeds import canonical
from dpbench.mechanisms.query_release import HISTOGRAM_MB, HISTOGRAMS, check_histogram
from dpbench.mechanisms.workload import cliques_of
from dpbench.resources import PACKAGE

# Parameters of which each mechanism of the project that has one refuses less than 1, when it runs.
COUNTS = frozenset(
    {"rounds", "per_round", "samples", "projections", "pretraining", "programmes", "increase", "iterations"}
    | {"components", "latent", "hidden", "most", "degree", "nodes", "rows", "max_cells"}
    | {"teachers", "batch_size", "batch_sizes", "steps", "epochs"}
)
ANSWERS = "dpbench.models.released.released_answers"  # of which no feature is needed
AT_MOST_ROWS = frozenset({"teachers", "batch_size", "batch_sizes"})


def check_shapes(experiment: Experiment, domain: Domain) -> None:
    """Hold the settings of the project's own mechanisms and metrics against the data set's declaration.

    The number of rows is what a mechanism takes for n: `expected_rows` if it has this parameter and neighbours are not
    known to be as many, else that of the data set's card. Where neither is there, the mechanism looks when it runs.

    Raises `UserError` for features of too many levels, a workload or degree that the domain does not have, a domain of
    which no histogram can be kept, a count below 1, or more teachers, or rows in a batch, than rows.
    """
    where = f"dataset={experiment.dataset.name}"
    for part in (*experiment.mechanisms, *experiment.metrics):
        if _ours(part) and "workload" in part.parameters:
            try:
                _check_workload(domain, canonical(part.parameters["workload"]))
            except UserError as error:
                raise UserError(f"{part.group}.{part.name}, {where}: {error}") from error
    encoding = [part for part in filter(_ours, experiment.mechanisms) if part.takes("design")]
    if encoding or any(model.target != ANSWERS for model in filter(_ours, experiment.models)):
        Design(domain, **experiment.design).check_levels()
    for mechanism in filter(_ours, experiment.mechanisms):
        check_counts(mechanism, *_rows(mechanism, experiment))
        for name, value in _numbers(mechanism.parameters, {"degree"}):
            if value > len(domain.names):
                setting = f"{mechanism.group}.{mechanism.name}.{name}={value}"
                raise UserError(f"{setting}: {where} has {len(domain.names)} attributes; lower it")
        method = mechanism.parameters.get("method", mechanism.target.rpartition(".")[2])  # a search has one
        if method in HISTOGRAMS:
            limits = [limit for _, limit in _numbers(mechanism.parameters, {"max_model_mb"})]
            who = f"{mechanism.group}.{mechanism.name}, {where}: {method}"
            check_histogram(who, domain, min(limits, default=HISTOGRAM_MB))


def check_counts(mechanism: Part, rows: int | None, known: str) -> None:
    """Compare the counts among the parameters of a mechanism, if it is the project's, with the `rows` that it takes for
    n, of which `known` says where they are from. Raises `UserError` for one below 1, or for more in a batch than rows.
    """
    for name, value in _numbers(mechanism.parameters if _ours(mechanism) else {}, COUNTS):
        setting = f"{mechanism.group}.{mechanism.name}.{name}"
        if value < 1:
            raise UserError(f"{setting} must be at least 1, not {shown(value)}")
        if rows is not None and name.split(".")[-1] in AT_MOST_ROWS and value > rows:
            raise UserError(f"{setting}={value:,} is more than the {rows:,} {known}; lower it")


def declared(mechanism: Part) -> tuple[int | None, str]:
    """The rows that the mechanism's `expected_rows` declares, None if it has none, and what says so."""
    rows = mechanism.parameters.get("expected_rows")
    return rows, "" if rows is None else f"rows that mechanism.{mechanism.name}.expected_rows declares"


def _ours(part: Part) -> bool:
    """Whether the project knows what the parameters mean."""
    return part.target.startswith(f"{PACKAGE.name}.")


@lru_cache(maxsize=256)
def _check_workload(domain: Domain, workload: str) -> None:
    cliques_of(domain, json.loads(workload))


def _numbers(parameters: Parameters, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The numbers of these names, those in lists too, and in the `grid` and `shared` ones of a search."""
    for name, value in parameters.items():
        if name in ("grid", "shared") and isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", number) for inner, number in _numbers(value, names))
        elif name in names:
            values = value if isinstance(value, list) else [value]
            yield from ((name, one) for one in values if isinstance(one, int | float) and not isinstance(one, bool))


def _rows(mechanism: Part, experiment: Experiment) -> tuple[int | None, str]:
    """How many rows the mechanism takes for n, and what says so; None if that is not known before they are read."""
    expected, said = declared(mechanism)
    if expected is not None and experiment.relation != "replace":
        return expected, said
    rows, sample = declared_rows(experiment.dataset), experiment.sample
    if rows is None:
        return None, ""
    tests = count_test_rows(sample.test_rows, rows)
    train = min(sample.train_rows, rows - tests - (sample.public_rows if mechanism.takes("public") else 0))
    if train < 1:
        return None, ""  # the split is refused, with the numbers that it needs
    seen = train + (tests if sample.protocol == "authors" else 0)
    return seen, f"rows that it is given of dataset={experiment.dataset.name}"
