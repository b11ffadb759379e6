"""A composed configuration -> an `Experiment` whose every value was checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from dpbench.config.composition import composed
from dpbench.config.parts import parts_of
from dpbench.config.registry import choices, declared
from dpbench.config.reports import checked_report
from dpbench.config.schema import Experiment, Limits, Part
from dpbench.config.values import checked_name, checked_type, integer, listed, number
from dpbench.errors import UserError, shown, unknown
from dpbench.privacy.budget import RELATIONS

MOST_POINTS, MOST_TRIALS = 500, 200_000
MOST = {"repetitions": 100_000, "jobs": 1024, "shards": 10_000, "rows": 10**9, "seed": 2**63 - 1}
MOST_SECONDS, MOST_MB = 1e7, 1e8  # 115 days, 100 TB
SETTINGS = {  # the configuration's own keys, and the type of each
    "dataset": "dict",
    "mechanism": "dict",
    "model": "dict",
    "metric": "dict",
    "limits": "dict",
    "name": "str | int | float",
    "title": "str",
    "epsilon": "float | list",
    "delta": "float | str",
    "mu": "float | list | None",
    "relation": "str",
    "repetitions": "int",
    "seed": "int",
    "calibration": "str | list",
    "sweep": "dict",
    "design": "dict",
    "jobs": "int | None",
    "results": "str",
    "shards": "int",
    "slurm": "dict",
    "report": "dict",
}
LIMITS = ("name", "train_rows", "test_rows", "model_mb", "iterations", "seconds", "memory_mb")


def compose(overrides: Sequence[str], config_dir: Path | None = None) -> Experiment:
    """The experiment of these settings in Hydra's syntax, over the project's configs and those of `config_dir`.

    Raises `UserError` for whatever the user can mend: an unknown name, a wrong type, a value out of range.
    """
    config = composed(overrides, config_dir)
    axes = _axes(config, overrides)
    if not axes:
        experiment = _experiment(config, config_dir)
    else:
        points = (_experiment(composed([*overrides, *point], config_dir), config_dir) for point in product(*axes))
        grids = tuple(points)
        experiment = replace(grids[0], points=grids)
    trials = sum(_trials(grid) for grid in experiment.grids)
    if trials > MOST_TRIALS:
        raise UserError(f"the grid has {trials:,} trials, and {MOST_TRIALS:,} at most are run at once: divide it")
    return experiment


def _axes(config: Mapping[str, Any], overrides: Sequence[str]) -> list[list[str]]:
    """The sweep as lists of settings, without what the line itself sets."""
    sweep = config.get("sweep")
    if not isinstance(sweep, dict) or not all(isinstance(values, list) and values for values in sweep.values()):
        raise UserError(
            f"sweep must map settings to lists of values, such as {{limits.train_rows: [100, 1000]}}: {shown(sweep)}"
        )
    pinned = {override.split("=", 1)[0].lstrip("+") for override in overrides}
    kept = {str(key): values for key, values in sweep.items() if key not in pinned}
    points = math.prod(len(values) for values in kept.values())
    if points > MOST_POINTS:
        raise UserError(f"the sweep has {points:,} points, and {MOST_POINTS} at most are read: divide it")
    return [[f"{key}={_text(value)}" for value in values] for key, values in kept.items()]


def _text(value: Any) -> str:
    """A value in Hydra's syntax.

    >>> _text([0, 1.5]), _text(None), _text("adult"), _text({"bins": 2})
    ('[0,1.5]', 'null', 'adult', '{bins:2}')
    """
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_text(item)}' for key, item in value.items())}}}"
    return "null" if value is None else str(value)


def _trials(grid: Experiment) -> int:
    """At most so many trials are on the releases of a grid."""
    cells = len(grid.mechanisms) * len(grid.calibrations) * len(grid.epsilons) * grid.repetitions
    return cells * len(grid.models)


def _experiment(config: Mapping[str, Any], config_dir: Path | None) -> Experiment:
    _check_settings(config)
    limits = _limits(config["limits"])
    delta = _delta(config, limits)
    experiment = Experiment(
        name=checked_name(config["name"]),
        title=config["title"],
        dataset=config["dataset"],
        mechanisms=parts_of("mechanism", config, config_dir),
        models=parts_of("model", config, config_dir),
        metrics=parts_of("metric", config, config_dir),
        epsilons=_epsilons(config, delta),
        delta=delta,
        delta_power=config["delta"] if isinstance(config["delta"], str) else None,
        relation=config["relation"],
        repetitions=integer("repetitions", config["repetitions"], 1, MOST["repetitions"]),
        seed=integer("seed", config["seed"], 0, MOST["seed"]),
        calibrations=tuple(str(value) for value in listed(config["calibration"])),
        design=config["design"],
        limits=limits,
        jobs=None if config["jobs"] is None else integer("jobs", config["jobs"], 1, MOST["jobs"]),
        results=Path(config["results"]),
        shards=integer("shards", config["shards"], 1, MOST["shards"]),
        slurm=_slurm(config["slurm"]),
        report=config["report"],
        config_dir=config_dir,
    )
    _check(experiment)
    return replace(experiment, report=_report(experiment))


def _check_settings(config: Mapping[str, Any]) -> None:
    """All settings are there, of their types, and no others; so are those of the design."""
    from dpbench.data.encode import Design

    for key in config:
        if key not in SETTINGS:
            raise unknown("setting", key, SETTINGS)
    for key, kind in SETTINGS.items():
        if key not in config:
            if key in ("mechanism", "model", "metric"):
                continue  # none is named: `parts_of` says how to
            raise UserError(f"the setting {key} is missing: it was deleted, or no file gives it")
        if key not in ("mechanism", "model", "metric", "repetitions", "seed", "shards", "jobs", "epsilon", "mu"):
            checked_type(key, config[key], kind)
    known = {one.name: str(one.type) for one in fields(Design) if one.name != "domain"}
    for key, value in config["design"].items():
        if key not in known:
            raise unknown("setting of design", str(key), known)
        checked_type(f"design.{key}", value, known[str(key)])
    if "target" not in config["design"]:
        raise UserError("design.target is missing: the attribute that is predicted, such as design.target=income")


# --- budgets and sizes ---------------------------------------------------------------------------------------------


def _limits(limits: Mapping[str, Any]) -> Limits:
    for key in limits:
        if key not in LIMITS:
            raise unknown("setting of limits", str(key), LIMITS)
    for key in LIMITS:
        if key not in limits:
            raise UserError(f"limits.{key} is missing: see conf/limits/full.yaml")
    return Limits(
        name=str(limits["name"]),
        train_rows=integer("limits.train_rows", limits["train_rows"], 1, MOST["rows"]),
        test_rows=_test_rows(limits["test_rows"]),
        seconds=number("limits.seconds", limits["seconds"], above=0, most=MOST_SECONDS),
        memory_mb=number("limits.memory_mb", limits["memory_mb"], above=0, most=MOST_MB),
    )


def _test_rows(given: Any) -> float | list[float]:
    match given:
        case bool() | [_, bool()]:
            pass
        case int() if 0 <= given <= MOST["rows"]:
            return given
        case float() if 0 < given < 1:
            return given
        case [float(part), int(most)] if 0 < part < 1 <= most <= MOST["rows"]:
            return [part, most]
    raise UserError(
        "limits.test_rows must be a whole number of at least 0, a part of the rows such as 0.2, or this with the most "
        f"rows that it may come to, such as [0.2, 1000], not {shown(given)}"
    )


def _delta(config: Mapping[str, Any], limits: Limits) -> float:
    """The number given, or the power of n that "n**-1.1" names, n the declared number of training rows."""
    from dpbench.data.table import count_test_rows

    given = config["delta"]
    power = re.fullmatch(r"n\*\*-(\d{1,3}(?:\.\d{1,9})?)", str(given))
    if not power:
        if isinstance(given, str):
            raise UserError(
                f"delta must be a number between 0 and 1, both excluded, or such as n**-1.1, not {shown(given)}"
            )
        return number("delta", given, above=0, below=1)
    n, declared_rows = limits.train_rows, _declared_rows(config["dataset"])
    if declared_rows is not None:
        n = min(n, declared_rows - count_test_rows(limits.test_rows, declared_rows))
    return number("delta", _rounded(number("n", n, above=1) ** -float(power[1])), above=0, below=1)


def _declared_rows(dataset: Mapping[str, Any]) -> int | None:
    """How many rows a data set's card says it has."""
    card = dataset.get("card") or {}
    checked_type("dataset.card", card, "dict")
    rows = card.get("rows")
    return None if rows is None else integer("dataset.card.rows", rows, 1, MOST["rows"])


def _epsilons(config: Mapping[str, Any], delta: float) -> tuple[float, ...]:
    """Those given, or those at `delta` of the Gaussian-DP parameters `mu` (Paper 1, Proposition 2.1(i))."""
    if config["mu"] is None:
        return tuple(number("epsilon", value, above=0) for value in listed(config["epsilon"]))
    from dpbench.privacy.accounting import gaussian_epsilon

    mus = [number("mu", value, above=0, most=1e4) for value in listed(config["mu"])]
    return tuple(number("epsilon of mu", _rounded(gaussian_epsilon(mu, delta)), above=0) for mu in mus)


def _rounded(value: float) -> float:
    """To ten digits, so that an identity does not hang on the last bits of a power or a root.

    >>> _rounded(1 / 3)
    0.3333333333
    """
    return float(f"{value:.10g}")


def _slurm(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of sbatch: each is one word, and its value one line."""
    for name, value in options.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", str(name)):
            raise UserError(f"slurm: {shown(name)} is no option of sbatch, such as mem or cpus-per-task")
        checked_type(f"slurm.{name}", value, "str | int | None")
        if not re.fullmatch(r"[\w.,:;@%+=/()\[\]* -]{0,200}", str(value), re.ASCII):
            raise UserError(f"slurm.{name} must be one line without quotes, at most 200 characters, not {shown(value)}")
    return dict(options)


# --- what must hold before a plan is made --------------------------------------------------------------------------


def _check(experiment: Experiment) -> None:
    """Budget, relation, calibrations, and a model for every mechanism."""
    from dpbench.privacy.accounting import check_calibration
    from dpbench.privacy.budget import Budget

    if experiment.relation not in RELATIONS:
        raise unknown("relation", experiment.relation, RELATIONS)
    for epsilon in experiment.epsilons:
        Budget(epsilon, experiment.delta, experiment.relation)
    for calibration in experiment.calibrations:
        check_calibration(calibration)
    for label, values in (("epsilon", experiment.epsilons), ("calibration", experiment.calibrations)):
        if not values or len(set(values)) != len(values):
            raise UserError(f"{label} must list at least one value, and none twice: {shown(list(values))}")
    wanting = [metric.name for metric in experiment.metrics if metric.test_rows]
    if wanting and not experiment.limits.test_rows:
        raise UserError(
            f"limits.test_rows=0 leaves {', '.join(wanting)} without test rows; give some, or name other metrics"
        )
    for mechanism in experiment.mechanisms:
        _check_relation(mechanism, experiment)
        _check_models(mechanism, experiment)


def _check_relation(mechanism: Part, experiment: Experiment) -> None:
    """The mechanism proves its guarantee between neighbours of the experiment's relation."""
    if experiment.relation in mechanism.relations:
        return
    nodes = declared("mechanism", experiment.config_dir)
    proving = [
        name
        for name, node in sorted(nodes.items())
        if node.get("_private_") is False or experiment.relation in listed(node.get("_relations_", RELATIONS[:1]))
    ]
    raise UserError(
        f"{mechanism.name} is private under {' and '.join(mechanism.relations)}, and not proven to be under "
        f"relation={experiment.relation}; mechanisms that are: {', '.join(proving)}"
    )


def _check_models(mechanism: Part, experiment: Experiment) -> None:
    """Some model reads what the mechanism offers."""
    if any(model.reads(mechanism.offers) for model in experiment.models):
        return
    needed = {kind for model in experiment.models for kind in model.needs}
    nodes = declared("mechanism", experiment.config_dir)
    fitting = [name for name, node in sorted(nodes.items()) if needed & set(listed(node.get("_offers_", ())))]
    models = ", ".join(model.name for model in experiment.models)
    raise UserError(
        f"no model given ({models}) can read what {mechanism.name} "
        f"offers ({', '.join(mechanism.offers)}); mechanisms that "
        f"offer {' or '.join(sorted(needed))}: {', '.join(fitting)}"
    )


def _report(experiment: Experiment) -> dict[str, Any]:
    """The report, with tables of the metrics that the grid has: those that it names, or all if it names none."""
    given = [metric.name for metric in experiment.metrics]
    report = checked_report(experiment.report, [*given, *choices("metric", experiment.config_dir)])
    return {**report, "metrics": [name for name in report["metrics"] if name in given] or given}
