"""Composing a line such as `experiment=linreg_adult epsilon=[0.1,1]` into one validated `Experiment`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from dpbench.errors import UserError, unknown
from dpbench.resources import conf_dir

SUPPLIED = ("design", "rng")  # parameters that the grid gives; no config may


@dataclass(frozen=True)
class Part:
    """A mechanism, model or metric of the registry: its name, function, parameters and what the grid knows of it.

    `offers`: kinds of release a mechanism makes. `needs`: the kinds of which a model or metric reads one (none named:
    any). `labels`: whether the target must have two levels. `test_rows`: whether there must be test rows. `version`
    changes when the same parameters give another result; it is part of a trial's identity.
    """

    name: str
    target: str
    parameters: Mapping[str, Any]
    version: int = 1
    offers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    private: bool = True
    labels: bool = False
    test_rows: bool = False

    def reads(self, offers: Sequence[str]) -> bool:
        """Whether a release with these offers is enough for this model or metric."""
        return not self.needs or bool(set(self.needs) & set(offers))

    def takes(self, parameter: str) -> bool:
        """Whether the function has this parameter."""
        return parameter in inspect.signature(resolve(self.target)).parameters

    def key(self) -> dict[str, Any]:
        """The part as it stands in a trial's key."""
        return {
            "name": self.name,
            "target": self.target,
            "version": self.version,
            "parameters": dict(self.parameters),
        }


@dataclass(frozen=True)
class Limits:
    """Rows of a split, and the most seconds and MB of memory for a release or a trial on it.

    `test_rows` below 1 is a part of the rows, and [0.2, 1000] a fifth of them, but 1,000 at most; 0 is none: metrics
    are then of the training rows.
    """

    name: str
    train_rows: int
    test_rows: float | Sequence[float]
    seconds: float
    memory_mb: float


@dataclass(frozen=True)
class Experiment:
    """A grid: dataset x mechanism x calibration x epsilon x repetition, and models and metrics on each release.

    With a sweep over other settings it is the sum of the grids of `points`.
    """

    name: str
    title: str
    dataset: Mapping[str, Any]
    mechanisms: tuple[Part, ...]
    models: tuple[Part, ...]
    metrics: tuple[Part, ...]
    epsilons: tuple[float, ...]
    delta: float
    repetitions: int
    seed: int
    calibrations: tuple[str, ...]
    design: Mapping[str, Any]
    limits: Limits
    jobs: int | None
    results: Path
    shards: int
    slurm: Mapping[str, Any]
    report: Mapping[str, Any] = field(default_factory=dict)
    points: tuple[Experiment, ...] = ()

    @property
    def grids(self) -> tuple[Experiment, ...]:
        """The points of the sweep, or the experiment itself."""
        return self.points or (self,)


def compose(overrides: Sequence[str], config_dir: Path | None = None) -> Experiment:
    """The experiment of these overrides in Hydra's syntax, over the project's configs and those of `config_dir`.

    Raises `UserError` for whatever the user can mend: an unknown name, a wrong type, a value out of range.
    """
    config = composed(overrides, config_dir)
    sweep = config["sweep"]
    if not isinstance(sweep, dict) or not all(isinstance(values, list) and values for values in sweep.values()):
        raise UserError(
            f"sweep must map settings to lists of values, such as {{limits.train_rows: [100, 1000]}}: {sweep}"
        )
    pinned = {override.split("=", 1)[0].lstrip("+") for override in overrides}
    axes = [[f"{key}={_text(value)}" for value in values] for key, values in sweep.items() if key not in pinned]
    if not axes:
        return _experiment(config)
    points = tuple(_experiment(composed([*overrides, *point], config_dir)) for point in product(*axes))
    return replace(points[0], points=points)


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


def _experiment(config: Mapping[str, Any]) -> Experiment:
    limits = _limits(config["limits"])
    delta = _delta(config, limits)
    experiment = Experiment(
        name=_name(config["name"]),
        title=str(config["title"]),
        dataset=config["dataset"],
        mechanisms=_parts("mechanism", config),
        models=_parts("model", config),
        metrics=_parts("metric", config),
        epsilons=_epsilons(config, delta),
        delta=delta,
        repetitions=_integer("repetitions", config["repetitions"], 1),
        seed=_integer("seed", config["seed"], 0),
        calibrations=tuple(str(value) for value in _listed(config["calibration"])),
        design=config["design"],
        limits=limits,
        jobs=None if config["jobs"] is None else _integer("jobs", config["jobs"], 1),
        results=Path(str(config["results"])),
        shards=_integer("shards", config["shards"], 1),
        slurm=config["slurm"],
        report=config["report"],
    )
    _check(experiment)
    return experiment


@dataclass(frozen=True)
class Paper:
    """What is drawn over several experiments: figures and tables of one paper, and what the paper itself prints."""

    name: str
    title: str
    report: Mapping[str, Any]
    published: Mapping[str, Any]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that its figures name, each once."""
        return tuple(dict.fromkeys(name for spec in self.report["figures"] for name in spec.get("experiments", [])))


def paper_of(name: str, config_dir: Path | None = None) -> Paper:
    """The paper of conf/paper/`name`.yaml, with conf/published/`name`.yaml. Raises `UserError` for an unknown name."""
    from omegaconf import OmegaConf

    if name not in choices("paper", config_dir):
        raise unknown("paper", name, choices("paper", config_dir))
    files = [choices(group, config_dir).get(name) for group in ("paper", "published")]
    paper, published = (OmegaConf.to_container(OmegaConf.load(path)) if path else {} for path in files)
    assert isinstance(paper, dict) and isinstance(published, dict)
    return Paper(_name(name), str(paper["title"]), paper["report"], {str(key): published[key] for key in published})


def resolve(target: str) -> Callable[..., Any]:
    """The function that a `_target_` names, such as dpbench.mechanisms.aim.aim."""
    module, _, name = target.rpartition(".")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"_target_ {target!r} cannot be imported: {error}") from error
    return function


def choices(group: str, config_dir: Path | None = None) -> dict[str, Path]:
    """The configs of a group, by name; those of `config_dir` come over the project's."""
    folders = [conf_dir(), *([config_dir] if config_dir else [])]
    return {path.stem: path for folder in folders for path in sorted((folder / group).glob("*.yaml"))}


def part_of(group: str, name: str, config_dir: Path | None = None) -> Part:
    """One mechanism, model or metric with its default parameters."""
    if name not in choices(group, config_dir):
        raise unknown(group, name, choices(group, config_dir))
    (part,) = _parts(group, composed([f"{group}=[{name}]"], config_dir))
    return part


# --- Hydra ---------------------------------------------------------------------------------------------------------


def composed(overrides: Sequence[str], config_dir: Path | None = None) -> dict[str, Any]:
    """What Hydra makes of the overrides, as plain data. Raises `UserError` if it cannot."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if config_dir is not None:
        if not config_dir.is_dir():
            raise UserError(f"--config-dir {config_dir}: no such folder")
        overrides = [*overrides, f"hydra.searchpath=[file://{config_dir.resolve()}]"]
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            composed = hydra_compose("config", overrides=list(overrides))
        config = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explained(error, overrides, config_dir) from error
    assert isinstance(config, dict)
    return {str(key): value for key, value in config.items()}


def _explained(error: Exception, overrides: Sequence[str], config_dir: Path | None) -> UserError:
    """Hydra's complaint in one line, with the nearest known names."""
    text = str(error)
    missing = re.search(r"Could not (?:find|load) '(\w+)/([^']+)'", text)
    if missing:
        return unknown(missing[1], missing[2], choices(missing[1], config_dir))
    key = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if key:
        given = next((item for item in overrides if key[1] in item), key[1])
        known = [*composed([], config_dir), "experiment"]
        if key[1].split(".")[0] not in known:
            return unknown("setting", key[1], known)
        return UserError(
            f"cannot set {given!r}: this configuration has no {key[1]!r}; `dpbench run --show` prints what "
            f"it has, and a + in front (+{given}) adds a parameter that it leaves at its default"
        )
    first = " ".join(line.strip() for line in text.splitlines()[:2])
    return UserError(f"the overrides cannot be read: {first}")


# --- budgets and sizes ---------------------------------------------------------------------------------------------


def _limits(limits: Mapping[str, Any]) -> Limits:
    return Limits(
        name=str(limits["name"]),
        train_rows=_integer("limits.train_rows", limits["train_rows"], 1),
        test_rows=_test_rows(limits["test_rows"]),
        seconds=_number("limits.seconds", limits["seconds"], above=0),
        memory_mb=_number("limits.memory_mb", limits["memory_mb"], above=0),
    )


def _test_rows(given: Any) -> float | list[float]:
    match given:
        case bool() | [_, bool()]:
            pass
        case int() if given >= 0:
            return given
        case float() if 0 < given < 1:
            return given
        case [float(part), int(most)] if 0 < part < 1 <= most:
            return [part, most]
    raise UserError(
        "limits.test_rows must be a whole number of at least 0, a part of the rows such as 0.2, or this with the most "
        f"rows that it may come to, such as [0.2, 1000], not {given!r}"
    )


def _delta(config: Mapping[str, Any], limits: Limits) -> float:
    """The number given, or the power of n that "n**-1.1" names, n the declared number of training rows."""
    from dpbench.data.table import count_test_rows

    given = config["delta"]
    power = re.fullmatch(r"n\*\*-(\d+(?:\.\d+)?)", str(given))
    if not power:
        if isinstance(given, str):
            raise UserError(f"delta must be a number between 0 and 1, both excluded, or such as n**-1.1, not {given!r}")
        return _number("delta", given, above=0, below=1)
    n, declared = limits.train_rows, (config["dataset"].get("card") or {}).get("rows")
    if declared is not None:
        n = min(n, declared - count_test_rows(limits.test_rows, declared))
    return _rounded(_number("n", n, above=1) ** -float(power[1]))


def _epsilons(config: Mapping[str, Any], delta: float) -> tuple[float, ...]:
    """Those given, or those at `delta` of the Gaussian-DP parameters `mu` (Paper 1, Proposition 2.1(i))."""
    if config["mu"] is None:
        return tuple(_number("epsilon", value, above=0) for value in _listed(config["epsilon"]))
    from dpbench.privacy.accounting import gaussian_epsilon

    mus = [_number("mu", value, above=0) for value in _listed(config["mu"])]
    return tuple(_number("epsilon of mu", _rounded(gaussian_epsilon(mu, delta)), above=0) for mu in mus)


def _rounded(value: float) -> float:
    """To ten digits, so that an identity does not hang on the last bits of a power or a root.

    >>> _rounded(1 / 3)
    0.3333333333
    """
    return float(f"{value:.10g}")


# --- validation ----------------------------------------------------------------------------------------------------


def _parts(group: str, config: Mapping[str, Any]) -> tuple[Part, ...]:
    nodes = config.get(group) or {}
    if not nodes:
        raise UserError(f"name at least one {group}, such as {group}=[{next(iter(choices(group)))}]")
    return tuple(_part(group, name, node) for name, node in nodes.items())


def _part(group: str, name: str, node: Any) -> Part:
    if not isinstance(node, dict) or "_target_" not in node:
        raise unknown(group, str(name), choices(group))
    reserved = {key: value for key, value in node.items() if key.startswith("_")}
    parameters = {key: value for key, value in node.items() if key not in reserved}
    _check_parameters(f"{group}.{name}", resolve(node["_target_"]), parameters)
    return Part(
        name=str(name),
        target=str(node["_target_"]),
        parameters=parameters,
        version=int(reserved.get("_version_", 1)),
        offers=tuple(reserved.get("_offers_", ())),
        needs=tuple(_listed(reserved.get("_needs_", ()))),
        private=bool(reserved.get("_private_", True)),
        labels=bool(reserved.get("_labels_", False)),
        test_rows=bool(reserved.get("_test_rows_", False)),
    )


def _check_parameters(where: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Every parameter is one of the function's, and of the type that its annotation names."""
    known = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in SUPPLIED
    }
    for name, value in given.items():
        if name not in known:
            raise unknown(f"parameter of {where}", name, known)
        _check_type(f"{where}.{name}", value, _written(known[name].annotation))


def _written(annotation: Any) -> str:
    """An annotation as it stands in the source, whether or not its module postpones annotations."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _check_type(where: str, value: Any, annotation: str) -> None:
    simple: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool}
    kinds = [kind.strip() for kind in annotation.split("|")]
    if any(kind not in simple and kind != "None" for kind in kinds) and not isinstance(value, str):
        return  # a richer type: the function checks it
    fits = (value is None and "None" in kinds) or any(
        isinstance(value, simple[kind]) and (kind == "bool") == isinstance(value, bool)
        for kind in kinds
        if kind in simple
    )
    if not fits:
        raise UserError(f"{where} must be {annotation.replace(' | ', ' or ')}, not {value!r}")


def _check(experiment: Experiment) -> None:
    """What must hold before a plan is made: budget, calibrations, and a model for every mechanism."""
    from dpbench.privacy.accounting import check_calibration
    from dpbench.privacy.budget import Budget

    for epsilon in experiment.epsilons:
        Budget(epsilon, experiment.delta)
    for calibration in experiment.calibrations:
        check_calibration(calibration)
    for label, values in (("epsilon", experiment.epsilons), ("calibration", experiment.calibrations)):
        if not values or len(set(values)) != len(values):
            raise UserError(f"{label} must list at least one value, and none twice: {list(values)}")
    wanting = [metric.name for metric in experiment.metrics if metric.test_rows]
    if wanting and not experiment.limits.test_rows:
        raise UserError(
            f"limits.test_rows=0 leaves {', '.join(wanting)} without test rows; give some, or name other metrics"
        )
    kinds = {kind for model in experiment.models for kind in model.needs}
    for mechanism in experiment.mechanisms:
        if not any(model.reads(mechanism.offers) for model in experiment.models):
            fitting = [name for name in choices("mechanism") if kinds & set(part_of("mechanism", name).offers)]
            models = ", ".join(model.name for model in experiment.models)
            raise UserError(
                f"no model given ({models}) can read what {mechanism.name} offers ({', '.join(mechanism.offers)}); "
                f"mechanisms that offer {' or '.join(sorted(kinds))}: {', '.join(fitting)}"
            )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _number(name: str, value: Any, *, above: float, below: float = math.inf) -> float:
    """A float within (above, below)."""
    bounds = f"greater than {above:g}" if math.isinf(below) else f"between {above:g} and {below:g}, both excluded"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name} must be a number {bounds}, not {value!r}")
    if not above < value < below:
        raise UserError(f"{name} must be {bounds}, not {value}")
    return float(value)


def _integer(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UserError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return value


def _name(value: Any) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", str(value)):
        raise UserError(f"name must consist of letters, digits, '_', '.' and '-', not {value!r}: it names a folder")
    return str(value)
