"""The plan: every release and trial of an experiment, fully resolved, with an identity that holds no path or time."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from dpbench.config import Experiment, Limits, Part, checked_name
from dpbench.data.encode import Design
from dpbench.data.load import declared_domain
from dpbench.errors import UserError
from dpbench.grid.identity import Key, code_of, dataset_key
from dpbench.grid.seeds import digest
from dpbench.mechanisms.release import json_number
from dpbench.privacy.accounting import CALIBRATIONS

FORMAT = 3


@dataclass(frozen=True)
class TrialItem:
    """One model on one release. `key` holds what is not in the release's key: model, design and metrics."""

    id: str
    key: Key


@dataclass(frozen=True)
class ReleaseItem:
    """One run of a mechanism, and the trials on its release; `setting` is the place of its `Setting` in the plan.

    `offers`: the kinds of release that it must hold. `nonprivate_inputs`: what the settings took from the private rows
    before the mechanism ran. `hide_runtime`: seconds and memory of the run depend on a secret, and are not recorded.
    """

    id: str
    key: Key
    trials: tuple[TrialItem, ...]
    setting: int = 0
    offers: tuple[str, ...] = ()
    nonprivate_inputs: tuple[str, ...] = ()
    hide_runtime: bool = False


@dataclass(frozen=True)
class Setting:
    """What a worker needs besides a release's key: the dataset's config and the limits."""

    dataset: Mapping[str, Any]
    limits: Limits


@dataclass(frozen=True)
class Plan:
    """All releases of an experiment, and the settings under which they run, one for each point of a sweep."""

    name: str
    settings: tuple[Setting, ...]
    releases: tuple[ReleaseItem, ...]

    @property
    def trial_ids(self) -> list[str]:
        """The ids of all trials, in the plan's order."""
        return [trial.id for release in self.releases for trial in release.trials]

    @property
    def limits(self) -> str:
        """The name of the limits."""
        return self.settings[0].limits.name

    def shard(self, i: int, n: int) -> Plan:
        """The i-th (from 1) of n parts; a release and its trials stay together."""
        return replace(self, releases=self.releases[i - 1 :: n])

    def without(self, trials: Collection[str]) -> Plan:
        """The plan without the trials of these ids, and without releases that then have none."""
        items = (replace(item, trials=tuple(t for t in item.trials if t.id not in trials)) for item in self.releases)
        return replace(self, releases=tuple(item for item in items if item.trials))

    def lines(self) -> Iterator[str]:
        """The plan as JSON lines: a header, then one line a release; `read_plan` reads them back."""
        header = {"format": FORMAT, "name": self.name, "releases": len(self.releases)}
        header["settings"] = [asdict(setting) for setting in self.settings]
        yield json.dumps(header) + "\n"  # the order in which a dataset declares its attributes is part of its identity
        for release in self.releases:
            yield json.dumps(asdict(release), sort_keys=True) + "\n"


def read_plan(path: Path) -> Plan:
    """The plan in a file that `Plan.lines` wrote. Raises `UserError` if it is not one, or not all of it."""
    try:
        with path.open() as file:
            header = json.loads(next(file))
            if header["format"] != FORMAT:
                raise UserError(
                    f"{path} is a plan of format {header['format']}, this version reads format {FORMAT}; take it away, "
                    "or give another results=FOLDER, and run the experiment again"
                )
            plan = Plan(
                name=checked_name(header["name"]),
                settings=tuple(Setting(one["dataset"], Limits(**one["limits"])) for one in header["settings"]),
                releases=tuple(_release_item(json.loads(line)) for line in file),
            )
    except (OSError, StopIteration, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as a plan: {type(error).__name__}: {str(error)[:200]}") from error
    if len(plan.releases) != header["releases"]:
        raise UserError(
            f"{path} holds {len(plan.releases)} releases of {header['releases']}: it was cut; make it again"
        )
    return plan


def _release_item(data: Mapping[str, Any]) -> ReleaseItem:
    trials = tuple(TrialItem(**trial) for trial in data["trials"])
    lists = {name: tuple(data[name]) for name in ("offers", "nonprivate_inputs")}
    return ReleaseItem(**{**data, **lists, "trials": trials})


def make_plan(experiment: Experiment) -> Plan:
    """Multiply out the axes: mechanism x calibration x epsilon x repetition, and on each release the fitting models.

    Calibrations multiply only mechanisms that have the parameter; the non-private reference runs once a repetition,
    at epsilon = inf. A release's key names the design only if the mechanism takes one, so that one release serves
    every target. Points of a sweep that ask for the same release share it.

    Raises `UserError` for a target that the data do not have, or of which a part needs two levels.
    """
    releases: dict[str, ReleaseItem] = {}
    for place, grid in enumerate(experiment.grids):
        for item in _releases(grid, place):
            releases.setdefault(item.id, item)
    settings = tuple(Setting(grid.dataset, grid.limits) for grid in experiment.grids)
    return Plan(experiment.name, settings, tuple(releases.values()))


def _releases(experiment: Experiment, setting: int) -> Iterator[ReleaseItem]:
    """The releases of one grid."""
    _check_labels(experiment, Design(declared_domain(experiment.dataset), **experiment.design))
    base: Key = {
        "dataset": dataset_key(experiment.dataset),
        "split": {"train_rows": experiment.limits.train_rows, "test_rows": experiment.limits.test_rows},
        "seed": experiment.seed,
    }
    budget = {"delta": experiment.delta, "relation": experiment.relation}
    for mechanism in experiment.mechanisms:
        stage_two = list(_stage_two(experiment, mechanism))
        taken = tuple(_nonprivate_inputs(experiment, mechanism))
        variants = [_part_key(part) for part in _variants(mechanism, experiment.calibrations)]
        axes = product(variants, _epsilons(mechanism, experiment))
        for (variant, epsilon), repetition in product(axes, range(experiment.repetitions)):
            key = {**base, "mechanism": variant, "repetition": repetition}
            key["budget"] = {"epsilon": json_number(epsilon), **budget}
            if mechanism.takes("design"):
                key["design"] = dict(experiment.design)
            identity = digest(key)
            trials = (TrialItem(trial_id(identity, rest), rest) for rest in stage_two)
            yield ReleaseItem(identity, key, tuple(trials), setting, mechanism.offers, taken, mechanism.hide_runtime)


def trial_id(release: str, key: Key) -> str:
    """The identity of a trial: that of its release, and what is done with it."""
    return digest({"release": release, **key})


def _part_key(part: Part) -> Key:
    return {**part.key(), "code": code_of(part.target)}


def _nonprivate_inputs(experiment: Experiment, mechanism: Part) -> Iterator[str]:
    """What the settings themselves took from the private rows without paying for it."""
    if experiment.dataset.get("bounds") == "data":
        yield "the bounds of the attributes: the least and greatest value of all rows"
    if experiment.delta_power is not None:
        yield f"delta: a power of the number of training rows, {experiment.delta_power}"
    if (taken := mechanism.unpaid.get(str(experiment.dataset["name"]))) is not None:
        yield taken


def _check_labels(experiment: Experiment, design: Design) -> None:
    parts = (*experiment.mechanisms, *experiment.models, *experiment.metrics)
    wanting = [part.name for part in parts if part.labels]
    if wanting and not design.binary:
        binary = [a.name for a in design.domain.attributes if a.size == 2]
        raise UserError(
            f"{', '.join(wanting)}: for a target of two levels, which {design.target!r} is not; choose dataset.target "
            f"among {', '.join(binary) or 'attributes of two levels (there are none)'}, or leave them out"
        )


def _stage_two(experiment: Experiment, mechanism: Part) -> Iterator[Key]:
    metrics = {
        part.name: {name: value for name, value in _part_key(part).items() if name != "name"}
        for part in experiment.metrics
        if part.reads(mechanism.offers)
    }
    for model in experiment.models:
        if model.reads(mechanism.offers):
            yield {"model": _part_key(model), "design": dict(experiment.design), "metrics": metrics}


def _variants(mechanism: Part, calibrations: Sequence[str]) -> list[Part]:
    """The mechanism under each calibration, if it prints constants; a calibration set on it alone holds."""
    if not mechanism.takes("calibration") or "calibration" in mechanism.parameters:
        return [mechanism]
    ordered = [name for name in CALIBRATIONS if name in calibrations]
    return [replace(mechanism, parameters={**mechanism.parameters, "calibration": name}) for name in ordered]


def _epsilons(mechanism: Part, experiment: Experiment) -> tuple[float, ...]:
    return experiment.epsilons if mechanism.private else (float("inf"),)
