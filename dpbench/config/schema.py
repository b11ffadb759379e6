"""The types of a composed experiment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpbench.targets import resolve


@dataclass(frozen=True)
class Part:
    """A mechanism, model or metric of the registry (`group`): its name, function, parameters and what the grid knows.

    `offers`: kinds of release a mechanism makes. `relations`: the neighbouring relations it proves. `needs`: the kinds
    of release of which a model or metric reads one (none named: any). `labels`: whether the target must have two
    levels. `test_rows`: whether there must be test rows. `unpaid`: by data set, what the parameters took from its
    private rows. `hide_runtime`: whether time and memory of a release depend on a secret, and are not recorded.
    """

    group: str
    name: str
    target: str
    parameters: Mapping[str, Any]
    offers: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    private: bool = True
    labels: bool = False
    test_rows: bool = False
    unpaid: Mapping[str, str] = field(default_factory=dict)
    hide_runtime: bool = False

    def reads(self, offers: Sequence[str]) -> bool:
        """Whether a release with these offers is enough for this model or metric."""
        return not self.needs or bool(set(self.needs) & set(offers))

    def takes(self, parameter: str) -> bool:
        """Whether the function has this parameter."""
        return parameter in inspect.signature(self.function).parameters

    @property
    def function(self) -> Callable[..., Any]:
        """What `target` names."""
        return resolve(self.group, self.target, f"{self.group}.{self.name}: _target_")

    def key(self) -> dict[str, Any]:
        """The part as it stands in a trial's key."""
        return {"name": self.name, "target": self.target, "parameters": dict(self.parameters)}


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

    With a sweep over other settings it is the sum of the grids of `points`. `delta_power` is delta as it was given, if
    that is a power of the number of training rows.
    """

    name: str
    title: str
    dataset: Mapping[str, Any]
    mechanisms: tuple[Part, ...]
    models: tuple[Part, ...]
    metrics: tuple[Part, ...]
    epsilons: tuple[float, ...]
    delta: float
    delta_power: str | None
    relation: str
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
    config_dir: Path | None = None
    points: tuple[Experiment, ...] = ()

    @property
    def grids(self) -> tuple[Experiment, ...]:
        """The points of the sweep, or the experiment itself."""
        return self.points or (self,)


@dataclass(frozen=True)
class Kind:
    """A kind of figure or table (`group`): its function, and the keys of a spec with the types of their values.

    `reads`: paths of a trial that the frame must have besides the settings that the spec names.
    """

    group: str
    name: str
    target: str
    required: Mapping[str, str]
    optional: Mapping[str, str]
    reads: tuple[str, ...] = ()

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
    """What is drawn over several experiments: figures and tables of one paper, and what the paper itself prints."""

    name: str
    title: str
    report: Mapping[str, Any]
    published: Mapping[str, Any]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that its figures name, each once."""
        return tuple(dict.fromkeys(name for spec in self.report["figures"] for name in spec.get("experiments", [])))
