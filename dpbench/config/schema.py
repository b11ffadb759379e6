"""The types of a composed experiment."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dpbench.config.specs import DesignSettings, Published, Report
from dpbench.config.values import listed
from dpbench.data.dataset import Dataset
from dpbench.errors import UserError
from dpbench.files import Node
from dpbench.privacy.budget import CALIBRATIONS, RELATIONS
from dpbench.privacy.renyi import RandomSearch
from dpbench.targets import resolve

Parameters = Node  # of a function, by name: whatever its config gives
LEVELS = ("two", "two or more", "any")  # of a target; more than two are for `design.classes`, any is with numbers, too
TEST_ROWS = "test_rows"  # among the needs of a metric
OTHERS = "others"  # among the labels of a mechanism, that of the methods that are not named


@dataclass(frozen=True)
class Part:
    """A mechanism, model or metric of the registry (`group`): its name, function, parameters and properties.

    `offers`: kinds of release a mechanism makes. `relations`: the neighbouring relations it proves; one that proves
    none is not `private`, and runs under any. `needs`: the kinds of release of which a model or metric reads one (none
    named: any). `labels`: whether the target must have two levels; `classes`: whether it may have more
    (`Design.several`). `test_rows`: whether there must be test rows. `unpaid`: by file of a data set's sources, what
    the parameters took from its rows. `secret_runtime`: see `hide_runtime`. `calibrations`: those it has if it takes
    any. `version`: what the user declares of a function of their own. `label`, `methods`, `styles`: see `labels`.
    `least`, `most`: between which the values of a metric are.
    """

    group: str
    name: str
    target: str
    parameters: Parameters
    offers: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    private: bool = True
    labels: bool = False
    classes: bool = False
    test_rows: bool = False
    unpaid: Mapping[str, str] = field(default_factory=dict)
    secret_runtime: bool = False
    calibrations: tuple[str, ...] = ("tight", "paper")
    version: str | None = None
    label: str | None = None
    methods: Mapping[str, str] = field(default_factory=dict)
    styles: Mapping[str, str] = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def of(cls, group: str, name: str, node: Node) -> Part:
        """What a node of a config says, with defaults for what it leaves out; `parts.parts_of` checks it."""

        def names(key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
            return tuple(map(str, listed(node.get(key, default))))

        def texts(key: str) -> dict[str, str]:
            return {str(one): str(text) for one, text in node.get(key, {}).items()}

        proven, needs, label = names("_relations_", RELATIONS[:1]), names("_needs_"), node.get("_label_")
        methods = texts("_label_") if isinstance(label, dict) else {}
        own = {key: value for key, value in node.items() if not str(key).startswith("_")}
        several = group == "mechanism" and isinstance(own.get("calibration"), list)  # those that the grid may choose
        return cls(
            group=group,
            name=name,
            target=node.get("_target_", ""),
            parameters={key: value for key, value in own.items() if not (several and key == "calibration")},
            offers=names("_offers_"),
            relations=proven or RELATIONS,
            needs=tuple(kind for kind in needs if kind != TEST_ROWS),
            private=bool(proven),
            labels=node.get("_levels_") in LEVELS[:2],
            classes=node.get("_levels_") in LEVELS[1:],
            test_rows=TEST_ROWS in needs,
            unpaid=texts("_unpaid_"),
            secret_runtime=node.get("_hide_runtime_", False),
            calibrations=names("calibration") if several else CALIBRATIONS[:2],
            version=f"declared {node['_version_']}" if node.get("_version_") is not None else None,
            label=methods.pop(OTHERS, None) if isinstance(label, dict) else label,
            methods=methods,
            styles=texts("_styles_"),
            least=float(node.get("_least_", -math.inf)),
            most=float(node.get("_most_", math.inf)),
        )

    def reads(self, offers: Sequence[str]) -> bool:
        """Whether a release with these offers is enough for this model or metric."""
        return not self.needs or bool(set(self.needs) & set(offers))

    def takes(self, parameter: str) -> bool:
        """Whether the function has this parameter."""
        return parameter in self._parameters

    def value(self, parameter: str) -> Any:
        """What the function takes for this parameter: that of the config, or its default."""
        return self.parameters[parameter] if parameter in self.parameters else self._parameters[parameter].default

    @property
    def hide_runtime(self) -> bool:
        """Whether time and memory depend on a secret, as its config says or as it runs a random number of times: they
        are not recorded.
        """
        return self.secret_runtime or (self.takes("tuning") and self.value("tuning") == RandomSearch.kind)

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    @property
    def function(self) -> Callable[..., Any]:
        """What `target` names."""
        return resolve(self.group, self.target, f"{self.group}.{self.name}: _target_")


@dataclass(frozen=True)
class Sample:
    """How many rows a split takes: `train_rows` at most, `test_rows`, and `public_rows`, which no budget protects.

    `test_rows` below 1 is a part of the rows, and [0.2, 1000] a fifth of them, but 1,000 at most; 0 is none: metrics
    are then of the training rows. `protocol`: which of them a mechanism sees (`dpbench.data.table.Split.seen`).
    `split`: "fresh", one for each repetition, or "fixed", that of repetition 0 for all of them.
    """

    name: str
    train_rows: int
    test_rows: float | Sequence[float]
    public_rows: int = 0
    protocol: str = "split"
    split: str = "fresh"


@dataclass(frozen=True)
class Limits:
    """The most seconds and MB of memory for a release, or for a trial on it."""

    name: str
    seconds: float
    memory_mb: float


@dataclass(frozen=True)
class Slurm:
    """Options of sbatch, the tasks of the array that may run at once (None: all), and further lines of its script."""

    options: Mapping[str, str | int]
    throttle: int | None
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """A grid: dataset x mechanism x calibration x epsilon x repetition, and models and metrics on each release.

    A model of synthetic rows is fitted to each of `draws` sets of them. With a sweep over other settings it is the sum
    of the grids of `points`. `configuration` is what Hydra composed. `own_repetitions` are the numbers of the
    mechanisms that have one of their own. `delta_power` is delta as it was given, if that is a power of the number of
    training rows. `departures`: the settings in which the line departs from the file that declares the `protocol`; no
    identity holds either.
    """

    name: str
    title: str
    dataset: Dataset
    mechanisms: tuple[Part, ...]
    models: tuple[Part, ...]
    metrics: tuple[Part, ...]
    epsilons: tuple[float, ...]
    delta: float
    delta_power: str | None
    relation: str
    repetitions: int
    own_repetitions: Mapping[str, int]
    draws: int
    seed: int
    calibrations: tuple[str, ...]
    design: DesignSettings
    sample: Sample
    limits: Limits
    jobs: int | None
    executor: str
    results: Path
    shards: int
    slurm: Slurm
    report: Report = field(
        default_factory=lambda: Report(metrics=[], figures=[], panels={}, labels={}, without_details=[])
    )
    config_dir: Path | None = None
    configuration: Node = field(default_factory=dict)
    points: tuple[Experiment, ...] = ()
    protocol: str | None = None
    departures: tuple[str, ...] = ()

    @property
    def follows(self) -> list[str]:
        """The protocol with its departures, as a sentence; none if there is none.

        >>> from dpbench.config import compose
        >>> compose(["experiment=arena_lite_regression", "sweep.dataset=[abalone]"]).follows
        ['Protocol: arena lite 1.1, departs in: sweep.dataset']
        """
        if self.protocol is None:
            return []
        return [", departs in: ".join(filter(None, [f"Protocol: {self.protocol}", ", ".join(self.departures)]))]

    @property
    def grids(self) -> tuple[Experiment, ...]:
        """The points of the sweep, or the experiment itself."""
        return self.points or (self,)

    def repetitions_of(self, mechanism: str) -> int:
        """The number of releases of the mechanism, at each budget."""
        return self.own_repetitions.get(mechanism, self.repetitions)

    @property
    def reduced(self) -> tuple[str, ...]:
        """What is not of the papers' size, such as ("sample: smoke", "limits: smoke")."""
        names = {"sample": self.sample.name, "limits": self.limits.name}
        return tuple(f"{group}: {name}" for group, name in names.items() if name != "full")


@dataclass(frozen=True)
class Kind:
    """A kind of figure or table (`group`): its function, and the keys of a spec with the types of their values."""

    group: str
    name: str
    target: str
    required: Mapping[str, str]
    optional: Mapping[str, str]

    @property
    def reads(self) -> tuple[str, ...]:
        """Paths of a trial that the frame must have besides the settings that the spec names: the defaults of the
        function's keyword-only parameters.
        """
        from dpbench.contracts import parameters_of

        found = parameters_of(self.group, self.function)
        for name, one in found.items():
            if not isinstance(one.default, str):
                raise UserError(
                    f"{self.group}.{self.name}: the default of {name} must be the path of a column that the frame is "
                    "to have, such as model.parameters.level; a key of the spec is no parameter, and spec has it"
                )
        return tuple(one.default for one in found.values())

    @property
    def function(self) -> Callable[..., Any]:
        """What `target` names, with the signature of its protocol."""
        from dpbench.contracts import check_signature

        where = f"{self.group}.{self.name}"
        function = resolve(self.group, self.target, f"{where}: _target_")
        check_signature(self.group, function, where)
        return function


@dataclass(frozen=True)
class Paper:
    """What is drawn over several experiments: figures and tables of one paper, and its published values."""

    name: str
    title: str
    report: Report
    published: Published

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that its figures name, each once."""
        return tuple(dict.fromkeys(name for spec in self.report["figures"] for name in spec.get("experiments", [])))
