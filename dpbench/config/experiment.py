"""A composed configuration as an `Experiment`, or as a `Single` release, with every value checked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from dpbench.config.composition import GROUPS, composed, hydra_text, merged, resolved, unknown_setting, with_dataset
from dpbench.config.parts import parts_of
from dpbench.config.protocol import departures
from dpbench.config.registry import PARTS, choices
from dpbench.config.reports import checked_report
from dpbench.config.schema import Experiment, Parameters, Part
from dpbench.config.sizes import delta_of, epsilons_of, executor_of, limits_of, repetitions_of, sample_of, slurm_of
from dpbench.config.specs import Report
from dpbench.config.validation import check_experiment
from dpbench.config.values import check_keys, checked_name, checked_type, integer, listed
from dpbench.data.dataset import Dataset
from dpbench.errors import UserError, shown
from dpbench.files import Json, Node
from dpbench.privacy.budget import Budget

MOST_POINTS, MOST_TRIALS = 500, 2_000_000
MOST = {"draws": 1000, "jobs": 1024, "shards": 10_000, "seed": 2**63 - 1}
SETTINGS = {  # the configuration's own keys, and the type of each
    "dataset": "dict",
    "mechanism": "dict",
    "model": "dict",
    "metric": "dict",
    "sample": "dict",
    "limits": "dict",
    "name": "str | int | float",
    "title": "str",
    "protocol": "str | None",
    "epsilon": "float | list",
    "delta": "float | str",
    "mu": "float | list | None",
    "relation": "str",
    "repetitions": "int | dict",
    "draws": "int",
    "seed": "int",
    "calibration": "str | list",
    "noise": "str",
    "sweep": "dict",
    "design": "dict",
    "jobs": "int | None",
    "executor": "str",
    "results": "str",
    "shards": "int",
    "slurm": "dict",
    "report": "dict",
}
READ = (
    *("dataset", "mechanism", "model", "epsilon", "delta", "mu", "relation", "calibration", "noise", "design"),
    *("limits", "sample"),  # of which parameters of mechanisms are taken: model_mb, the declared number of rows
)
NEEDED = ("dataset", "mechanism")
Item = TypeVar("Item")


def compose(overrides: Sequence[str], config_dir: Path | None = None) -> Experiment:
    """The experiment of these settings in Hydra's syntax, over the project's configs and those of `config_dir`.

    Raises `UserError` for invalid input: an unknown name, a wrong type, a value out of range.
    """
    base = merged(overrides, config_dir)
    config = resolved(base, {}, overrides, config_dir)
    if config["mu"] is not None and any(override.startswith("epsilon=") for override in overrides):
        raise UserError("mu is set, and gives the budgets in place of epsilon: leave epsilon out, or set mu=null too")
    axes = _axes(config, overrides)
    if not axes:
        experiment = _experiment(config, config_dir)
    else:
        parts: dict[str, tuple[Part, ...]] = {}  # points mostly share them
        grids = tuple(_experiment(point, config_dir, parts) for point in _points(base, axes, overrides, config_dir))
        experiment = replace(grids[0], points=grids, configuration=config)
    experiment = replace(experiment, report=_report(experiment.grids[0]))
    if (protocol := config["protocol"]) is not None:
        experiment = replace(experiment, protocol=protocol, departures=departures(base, overrides, config_dir))
    trials = sum(_trials(grid) for grid in experiment.grids)
    if trials > MOST_TRIALS:
        raise UserError(f"the grid has {trials:,} trials, and {MOST_TRIALS:,} at most are run at once: divide it")
    return experiment


def _axes(config: Node, overrides: Sequence[str]) -> dict[str, list[Any]]:
    """The sweep, setting -> values, without what the line itself sets; of its own sweep, what it sets afterwards.

    Of the files' sweep, settings of parts in whose place the line names others are left out, too.
    """
    sweep = config.get("sweep", {})  # a deleted one is reported with the other settings
    if not isinstance(sweep, dict) or not all(isinstance(values, list) and values for values in sweep.values()):
        raise UserError(
            f"sweep must map settings to lists of values, such as {{sample.train_rows: [100, 1000]}}: {shown(sweep)}"
        )
    pinned, own = set[str](), set[str]()
    for override in overrides:
        name = override.split("=", 1)[0].lstrip("+")
        if name == "sweep":
            over = set(re.findall(r"[\w.@-]+(?=['\"]?\s*:)", override))
            own, pinned = own | over, pinned - over
        else:
            pinned.add(name)

    def counts(key: str) -> bool:
        group, _, rest = key.partition(".")
        of_another = group in PARTS and group in pinned and rest.partition(".")[0] not in config[group]
        return key not in pinned and (key in own or not of_another)

    kept = {key: values for key, values in ((str(key), values) for key, values in sweep.items()) if counts(key)}
    points = math.prod(map(len, _factors(kept)))
    if points > MOST_POINTS:
        raise UserError(f"the sweep has {points:,} points, and {MOST_POINTS} at most are read: divide it")
    return kept


def _points(
    base: Any, axes: Mapping[str, list[Any]], overrides: Sequence[str], config_dir: Path | None
) -> Iterator[Json]:
    """The configuration of each point.

    Hydra merges the files once for all that differ in plain settings alone, or in a data set of the project that the
    line does not change.
    """
    made = {tuple(overrides): base}
    of_line = (*overrides, *(key for key in axes if key[0] in "+~"))
    changed = any(item.lstrip("+~").startswith("dataset.") for item in of_line)
    named = axes.get("dataset", [None])
    apart = config_dir is None and not changed and set(map(str, named)) <= set(choices("dataset"))
    for parts in product(*_factors(axes)):
        point = dict(item for part in parts for item in part.items())
        plain = {key: value for key, value in point.items() if key not in GROUPS and key[0] not in "+~"}
        line = (*overrides, *(f"{key}={hydra_text(value)}" for key, value in point.items() if key not in plain))
        if line not in made and apart:
            rest = (*(item for item in line if not item.startswith("dataset=")), "~dataset")
            if rest not in made:
                made[rest] = merged(rest)
            made[line] = with_dataset(made[rest], point["dataset"])
        elif line not in made:
            made[line] = merged(line, config_dir)
        yield resolved(made[line], plain, line, config_dir)


def _factors(axes: Mapping[str, list[Any]]) -> list[list[Json]]:
    """What a sweep crosses, each a list of parts of a point.

    Settings of different mechanisms are not crossed, since a trial has one of them: each mechanism goes through its own
    combinations, and begins again where another has more.
    """
    of_mechanism: dict[str, dict[str, list[Any]]] = {}
    crossed = []
    for key, values in axes.items():
        group, _, rest = key.lstrip("+~").partition(".")
        if group == "mechanism" and rest:
            of_mechanism.setdefault(rest.partition(".")[0], {})[key] = values
        else:
            crossed.append([{key: value} for value in values])
    own = [[dict(zip(one, values, strict=True)) for values in product(*one.values())] for one in of_mechanism.values()]
    if own:
        turns = range(max(map(len, own)))
        crossed.append([dict(item for one in own for item in one[turn % len(one)].items()) for turn in turns])
    return crossed


def _trials(grid: Experiment) -> int:
    """At most so many trials are on the releases of a grid."""
    repetitions = sum(grid.repetitions_of(mechanism.name) for mechanism in grid.mechanisms)
    cells = len(grid.calibrations) * len(grid.epsilons) * repetitions
    return cells * sum(grid.draws if "rows" in model.needs else 1 for model in grid.models)


def _experiment(config: Node, config_dir: Path | None, known: dict[str, tuple[Part, ...]] | None = None) -> Experiment:
    """The experiment of a configuration; `known`: the parts that were read before, by what the configuration says."""
    _check_settings(config)
    known = {} if known is None else known

    def parts(group: str) -> tuple[Part, ...]:
        said = repr((group, config.get(group), config["noise"]))
        if said not in known:
            known[said] = parts_of(group, config, config_dir)
        return known[said]

    sample, limits = sample_of(config["sample"]), limits_of(config["limits"])
    dataset = Dataset.of(config["dataset"])
    delta = delta_of(config["delta"], dataset, sample)
    repetitions, own_repetitions = repetitions_of(config["repetitions"], config_dir)
    experiment = Experiment(
        name=checked_name(config["name"]),
        title=config["title"],
        dataset=dataset,
        mechanisms=parts("mechanism"),
        models=parts("model"),
        metrics=parts("metric"),
        epsilons=epsilons_of(config, delta),
        delta=delta,
        delta_power=config["delta"] if isinstance(config["delta"], str) else None,
        relation=config["relation"],
        repetitions=repetitions,
        own_repetitions=own_repetitions,
        draws=integer("draws", config["draws"], 1, MOST["draws"]),
        seed=integer("seed", config["seed"], 0, MOST["seed"]),
        calibrations=tuple(str(value) for value in listed(config["calibration"])),
        design=config["design"],
        sample=sample,
        limits=limits,
        jobs=None if config["jobs"] is None else integer("jobs", config["jobs"], 1, MOST["jobs"]),
        executor=executor_of(config["executor"]),
        results=Path(config["results"]),
        shards=integer("shards", config["shards"], 1, MOST["shards"]),
        slurm=slurm_of(config["slurm"]),
        config_dir=config_dir,
        configuration=config,
    )
    check_experiment(experiment)
    return experiment


def _check_settings(config: Node) -> None:
    """All settings are there, of their types, and no others; so are those of the design."""
    from dpbench.data.encode import Design

    for key in config:
        if key not in SETTINGS:
            raise unknown_setting(key, SETTINGS)
    for key, kind in SETTINGS.items():
        if key not in config:
            if key in PARTS:
                continue  # none is named: `parts_of` says how to
            raise UserError(f"the setting {key} is missing: it was deleted, or no file gives it")
        if key not in (*PARTS, "epsilon", "mu", "repetitions", *MOST):
            checked_type(key, config[key], kind)
    if config["design"].get("target") is None:
        raise UserError("no target is given: the attribute that is predicted, such as dataset.target=income")
    known = {one.name: str(one.type) for one in fields(Design) if one.name != "domain"}
    check_keys("setting of design", "design", config["design"], known)
    for key in ("name", "_target_"):
        checked_type(f"dataset.{key}", config["dataset"].get(key), "str")


def _report(experiment: Experiment) -> Report:
    """The report, with tables of the metrics that the grid has: those that it names, or all if it names none. If it
    names no figure, there is one of MSE and one of AUC against epsilon, or of the first metric of a grid without them.
    """
    given = [metric.name for metric in experiment.metrics]
    named = experiment.configuration["report"]
    if not named.get("figures"):
        shown = [name for name in ("mse", "auc") if name in given] or given[:1]
        scales = {"mse": {"yscale": "log"}}
        own = [{"name": name, "metric": name, "title": experiment.title, **scales.get(name, {})} for name in shown]
        named = {**named, "figures": own}
    report = checked_report(named, [*given, *choices("metric", experiment.config_dir)])
    return {**report, "metrics": [name for name in report["metrics"] if name in given] or given}


@dataclass(frozen=True)
class Single:
    """A mechanism under a budget, and the models that its release is for; none named: none.

    `parameters`: of the mechanism, where the line gives a calibration. `delta_power`: delta as it was given, if that is
    a power of the number of rows. `design`: the settings of `Design`, with numbers as they are in the table; its target
    may be None.
    """

    dataset: Dataset
    mechanism: Part
    parameters: Parameters
    models: tuple[Part, ...]
    budget: Budget
    delta_power: str | None
    design: Node


def single(overrides: Sequence[str], config_dir: Path | None = None) -> Single:
    """The release of these settings. Raises `UserError` for those of a grid, and for several of what is one here."""
    names = {item.lstrip("+~").partition("=")[0].partition(".")[0]: item for item in overrides}
    for name, item in names.items():
        if name in {*SETTINGS, "experiment", "as"} - {*READ}:
            raise UserError(f"{shown(item)}: a release takes {', '.join(READ)}; {name} is for dpbench run")
        if name not in READ:
            raise unknown_setting(name, READ)
    if missing := [name for name in NEEDED if name not in names]:
        example = "dpbench release dataset=csv dataset.path=my.csv dataset.domain=my.yaml mechanism=aim epsilon=1"
        raise UserError(f"name the {' and the '.join(missing)} of the release, such as {example} --out folder")
    config = composed(overrides, config_dir)
    dataset, sample = Dataset.of(config["dataset"]), sample_of(config["sample"])
    delta = delta_of(config["delta"], dataset, sample)
    mechanism = _one("mechanism", parts_of("mechanism", config, config_dir))
    calibration = _one("calibration", listed(config["calibration"]))
    own = mechanism.takes("calibration") and "calibration" not in mechanism.parameters and "calibration" in names
    return Single(
        dataset=dataset,
        mechanism=mechanism,
        parameters={"calibration": calibration} if own else {},
        models=parts_of("model", config, config_dir) if "model" in names else (),
        budget=Budget(_one("epsilon", epsilons_of(config, delta)), delta, str(config["relation"])),
        delta_power=config["delta"] if isinstance(config["delta"], str) else None,
        design={"exact": True, **config["design"]},
    )


def _one(name: str, given: Sequence[Item]) -> Item:
    if len(given) != 1:
        raise UserError(
            f"a release has one {name}, not {len(given)}: {', '.join(str(getattr(x, 'name', x)) for x in given)}"
        )
    return given[0]
