"""The plan: every release and trial of an experiment, fully resolved, with an identity that holds no path or time."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import accumulate, groupby, product
from operator import attrgetter
from pathlib import Path
from typing import Any

from dpbench.config import Experiment, Limits, Part, checked_name
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.secret_split import COINS, testing_part
from dpbench.errors import UserError
from dpbench.files import Json
from dpbench.grid.code import codes_of
from dpbench.grid.feasibility import check_shapes
from dpbench.grid.identity import dataset_key
from dpbench.grid.records import FitKey, PartKey, ReleaseKey, SplitKey, TrialKey, with_repetition, without_repetition
from dpbench.grid.versions import Versions, versions_of
from dpbench.privacy.budget import Budget

FORMAT = 6


@dataclass(frozen=True)
class ReleaseItem:
    """One run of a mechanism, and the trials on its release; `setting` is the place of its `Setting` in the plan.

    `offers`: the kinds of release that it must hold. `nonprivate_inputs`: what the settings took from the private rows
    before the mechanism ran. `hide_runtime`: seconds and memory of the run depend on a secret, and are not recorded.
    """

    key: ReleaseKey
    trials: tuple[TrialKey, ...]
    setting: int = 0
    offers: tuple[str, ...] = ()
    nonprivate_inputs: tuple[str, ...] = ()
    hide_runtime: bool = False

    @property
    def common(self) -> tuple[Any, ...]:
        """All but the repetition; of items of one plan, equal parts are mostly one object."""
        key = self.key
        release = (key.dataset, key.split, key.seed, key.mechanism, key.budget, key.design)
        trials = [(trial.fit.model, trial.fit.design, trial.fit.draw, trial.metrics) for trial in self.trials]
        return (release, trials, self.setting, self.offers, self.nonprivate_inputs, self.hide_runtime)

    def to_dict(self) -> Json:
        """JSON-ready, without the repetition."""
        plain = {name: getattr(self, name) for name in ("setting", "offers", "nonprivate_inputs", "hide_runtime")}
        key, _ = without_repetition(self.key.to_dict())
        return {**plain, "key": key, "trials": [trial.own() for trial in self.trials]}

    def with_trials_of(self, other: ReleaseItem) -> ReleaseItem:
        """The release for the trials of both, with what the settings of either took, hidden if either hides it."""
        trials = {trial.id: trial for trial in (*self.trials, *other.trials)}
        inputs = dict.fromkeys([*self.nonprivate_inputs, *other.nonprivate_inputs])
        hidden = self.hide_runtime or other.hide_runtime
        return replace(self, trials=tuple(trials.values()), nonprivate_inputs=tuple(inputs), hide_runtime=hidden)


@dataclass(frozen=True)
class Repeated:
    """Releases that differ in their repetition alone, with the trials on them: the `item` of repetition 0, which need
    not be one of them, stands for all. A million trials are some lists of ids until they are asked for one by one.
    """

    item: ReleaseItem
    repetitions: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.repetitions)

    @cached_property
    def release_ids(self) -> list[str]:
        """The id of each release."""
        return [*self.item.key.ids(self.repetitions)]

    @cached_property
    def trial_ids(self) -> list[list[str]]:
        """For each trial on a release, its ids on all of them."""
        return [[*trial.ids(self.release_ids)] for trial in self.item.trials]

    def items(self, places: Iterable[int] | None = None) -> Iterator[ReleaseItem]:
        """The releases, or those at these places."""
        item = self.item
        rest = (item.setting, item.offers, item.nonprivate_inputs, item.hide_runtime)
        for place in range(len(self)) if places is None else places:
            key = item.key.repeated(self.repetitions[place], self.release_ids[place])
            trials = zip(item.trials, self.trial_ids, strict=True)
            yield ReleaseItem(key, tuple([trial.on(key, ids[place]) for trial, ids in trials]), *rest)

    def without(self, trials: Collection[str]) -> Iterator[Repeated]:
        """What is left without the trials of these ids, in parts that have the same trials."""
        out = [*zip(*(map(trials.__contains__, ids) for ids in self.trial_ids), strict=True)]
        some = (place for place, gone in enumerate(out) if not all(gone))
        for gone, places in groupby(some, key=out.__getitem__):
            left = tuple(trial for trial, without in zip(self.item.trials, gone, strict=True) if not without)
            yield Repeated(replace(self.item, trials=left), tuple([self.repetitions[place] for place in places]))


def in_groups(items: Iterable[ReleaseItem]) -> tuple[Repeated, ...]:
    """Releases in a row that differ in their repetition alone, together."""
    groups = (list(alike) for _, alike in groupby(items, key=attrgetter("common")))
    return tuple(Repeated(_first(group[0]), tuple([item.key.repetition for item in group])) for group in groups)


def _first(item: ReleaseItem) -> ReleaseItem:
    """The same of repetition 0."""
    key = replace(item.key, repetition=0)
    return replace(item, key=key, trials=tuple(replace(one, fit=replace(one.fit, release=key)) for one in item.trials))


@dataclass(frozen=True)
class Setting:
    """What a worker needs besides a release's key."""

    dataset: Dataset
    limits: Limits


@dataclass(frozen=True)
class Plan:
    """All releases of an experiment, and the settings under which they run, one for each point of a sweep.

    `groups` has the releases in their order, those together that differ in their repetition alone.
    `codes`: the digests of the code that the plan was made with, by target (`code.code_of`). They are no part of an
    identity: a run refuses code that was edited since.
    """

    name: str
    settings: tuple[Setting, ...]
    groups: tuple[Repeated, ...]
    codes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def releases(self) -> tuple[ReleaseItem, ...]:
        """All releases one by one."""
        return tuple(item for group in self.groups for item in group.items())

    @property
    def trial_ids(self) -> list[str]:
        """The ids of all trials, in the plan's order."""
        return [identity for group in self.groups for ids in zip(*group.trial_ids, strict=True) for identity in ids]

    @property
    def trials(self) -> Iterator[TrialKey]:
        """The keys of all trials, in the plan's order."""
        return (trial for release in self.releases for trial in release.trials)

    def keys(self, chosen: Callable[[str], bool]) -> Iterator[TrialKey]:
        """The keys of the trials whose ids are chosen, in the plan's order: none is made of the others."""
        for group in self.groups:
            ids = [*zip(*group.trial_ids, strict=True)]
            places = [place for place, own in enumerate(ids) if any(map(chosen, own))]
            yield from (trial for item in group.items(places) for trial in item.trials if chosen(trial.id))

    @property
    def limits(self) -> str:
        """The name of the limits."""
        return self.settings[0].limits.name

    def shard(self, i: int, n: int) -> Plan:
        """The i-th (from 1) of n parts; a release and its trials stay together."""
        starts = accumulate(map(len, self.groups), initial=0)
        parts = (
            replace(group, repetitions=group.repetitions[(i - 1 - start) % n :: n])
            for group, start in zip(self.groups, starts, strict=False)
        )
        return replace(self, groups=tuple(filter(len, parts)))

    def balanced(self, n: int, seconds: Sequence[float]) -> list[Plan]:
        """n parts that take about the same seconds, with a release in each if there are n; `seconds`: of each release.

        The longest releases first, each goes to the part that has least to do: at most 4/3 - 1/(3n) times as long as
        can be (Graham 1969, "Bounds on multiprocessing timing anomalies").
        """
        parts: list[list[int]] = [[] for _ in range(n)]
        least = [(0.0, 0, part) for part in range(n)]
        for place in sorted(range(len(self.releases)), key=lambda place: -seconds[place]):
            load, count, part = heappop(least)
            parts[part].append(place)
            heappush(least, (load + seconds[place], count + 1, part))
        return [self.of(self.releases[place] for place in sorted(part)) for part in parts]

    def of(self, items: Iterable[ReleaseItem]) -> Plan:
        """The same plan of these releases alone."""
        return replace(self, groups=in_groups(items))

    def without(self, trials: Collection[str]) -> Plan:
        """The plan without the trials of these ids, and without releases that then have none."""
        return replace(self, groups=tuple(left for group in self.groups for left in group.without(trials)))

    def lines(self) -> Iterator[str]:
        """The plan as JSON lines: a header, then one for each group."""
        header: Json = {"format": FORMAT, "name": self.name, "releases": sum(map(len, self.groups))}
        header["settings"] = [{"dataset": one.dataset.config, "limits": vars(one.limits)} for one in self.settings]
        header["codes"] = dict(self.codes)
        yield json.dumps(header) + "\n"  # the order in which a dataset declares its attributes is part of its identity
        for group in self.groups:
            yield json.dumps({**group.item.to_dict(), "repetitions": group.repetitions}, sort_keys=True) + "\n"


def read_plan(path: Path) -> Plan:
    """The plan in a file that `Plan.lines` wrote. Raises `UserError` if it is not one, or not all of it."""
    try:
        with path.open() as file, all_stays():
            header = json.loads(next(file))
            if header["format"] != FORMAT:
                raise UserError(
                    f"{path} is a plan of format {header['format']}, this version reads format {FORMAT}: the "
                    "results next to it are of another version; give another results=FOLDER, or remove this folder, "
                    "and run the experiment again"
                )
            plan = Plan(
                name=checked_name(header["name"]),
                settings=tuple(
                    Setting(Dataset.of(one["dataset"]), Limits(**one["limits"])) for one in header["settings"]
                ),
                groups=tuple(_group(json.loads(line)) for line in file),
                codes={str(target): str(code) for target, code in header["codes"].items()},
            )
            if not {group.item.setting for group in plan.groups} <= set(range(len(plan.settings))):
                raise ValueError("a release of a setting that is not there")
    except FileNotFoundError as error:
        raise UserError(f"no such plan: {path}") from error
    except OSError as error:
        raise UserError(f"the plan {path} cannot be read: {error.strerror or error}") from error
    except (StopIteration, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is not a plan as dpbench slurm writes it, or is damaged") from error
    if (count := sum(map(len, plan.groups))) != header["releases"]:
        raise UserError(f"{path} holds {count} releases of {header['releases']}: it was cut; make it again")
    return plan


def _group(data: Json) -> Repeated:
    """The releases of one line."""
    repetitions = tuple(data.pop("repetitions"))
    if not repetitions or not all(isinstance(repetition, int) for repetition in repetitions):
        raise ValueError("repetitions that are no numbers, or none")
    key = ReleaseKey.from_dict(with_repetition(data["key"], 0))
    trials = tuple(TrialKey.of(key, trial) for trial in data["trials"])
    lists = {name: tuple(data[name]) for name in ("offers", "nonprivate_inputs")}
    group = Repeated(ReleaseItem(**{**data, **lists, "key": key, "trials": trials}), repetitions)
    next(group.items())  # of a line that is damaged none can be made
    return group


@contextmanager
def all_stays() -> Iterator[None]:
    """What is made here stays: to look for garbage in it would take as long as to make it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def make_plan(experiment: Experiment) -> Plan:
    """Multiply out the axes: mechanism x calibration x epsilon x repetition, and on each release the fitting models.

    Calibrations multiply only mechanisms that have the parameter; the non-private reference runs once per repetition,
    at epsilon = inf. A model of synthetic rows is fitted to each of `draws` sets of them. A release's key names the
    design and the public rows only if the mechanism takes them, so that one release serves every
    target. Points of a sweep that ask for the same release share it, and each has its trials on it.

    Raises `UserError` for a target that the data do not have, or of which a part needs two levels, and for settings
    that do not fit the number of attributes or rows (`check_shapes`).
    """
    parts = [part for grid in experiment.grids for part in (*grid.mechanisms, *grid.models, *grid.metrics)]
    codes = codes_of(part.target for part in parts)  # before they are compared
    versions = versions_of(parts)
    with all_stays():
        groups = tuple(group for n, grid in enumerate(experiment.grids) for group in _groups(grid, n, versions))
        if len({group.item.key.id for group in groups}) < len(groups):
            groups = _shared(groups)
    settings = tuple(Setting(grid.dataset, grid.limits) for grid in experiment.grids)
    return Plan(experiment.name, settings, groups, codes)


def _shared(groups: Iterable[Repeated]) -> tuple[Repeated, ...]:
    """The same releases, each once, with the trials of all that ask for it."""
    releases: dict[str, ReleaseItem] = {}
    for item in (item for group in groups for item in group.items()):
        first = releases.setdefault(item.key.id, item)
        if first is not item:
            releases[item.key.id] = first.with_trials_of(item)
    return in_groups(releases.values())


def one_repetition(experiment: Experiment) -> Plan:
    """One repetition of the plan, made once for an experiment. It has every setting, as repetitions share theirs."""
    known = vars(experiment)
    if "one_repetition" not in known:
        points = tuple(replace(point, repetitions=1, own_repetitions={}) for point in experiment.points)
        known["one_repetition"] = make_plan(replace(experiment, repetitions=1, own_repetitions={}, points=points))
    plan: Plan = known["one_repetition"]
    return plan


def _groups(experiment: Experiment, setting: int, versions: Versions) -> Iterator[Repeated]:
    """The releases of one grid."""
    domain = experiment.dataset.domain
    _check_labels(experiment, Design(domain, **experiment.design))
    check_shapes(experiment, domain)
    dataset = dataset_key(experiment.dataset)
    sample = experiment.sample
    private: SplitKey = {"train_rows": sample.train_rows, "test_rows": sample.test_rows}
    if not experiment.dataset.public:
        private = {"test_rows": testing_part(sample.test_rows), "coins": COINS[experiment.relation]}
    if sample.protocol != "split":
        private["protocol"] = sample.protocol
    if sample.split == "fixed":
        private["fixed"] = True
    public: SplitKey = {"public_rows": sample.public_rows} if sample.public_rows else {}
    if (other := experiment.dataset.public_data) is not None:
        public = {"public_data": dataset_key(other)}

    def key_of(part: Part) -> PartKey:
        return PartKey(part.name, part.target, part.parameters, versions[part.group, part.name, part.target])

    for mechanism in experiment.mechanisms:
        taken = tuple(inputs_of(experiment.dataset, experiment.delta_power, mechanism))
        design = experiment.design if mechanism.takes("design") else None
        split = {**private, **public} if mechanism.takes("public") else private
        fits = [(key_of(model), draw) for model, draw in _fits(experiment, mechanism)]
        metrics = tuple(key_of(part) for part in _metrics(experiment, mechanism))
        variants = [key_of(part) for part in _variants(mechanism, experiment.calibrations)]
        budgets = [Budget(e, experiment.delta, experiment.relation) for e in _epsilons(mechanism, experiment)]
        for variant, budget in product(variants, budgets):
            key = ReleaseKey(dataset, split, experiment.seed, 0, variant, budget, design)
            trials = tuple(TrialKey(FitKey(key, model, experiment.design, draw), metrics) for model, draw in fits)
            item = ReleaseItem(key, trials, setting, mechanism.offers, taken, mechanism.hide_runtime)
            yield Repeated(item, tuple(range(experiment.repetitions_of(mechanism.name))))


def _fits(experiment: Experiment, mechanism: Part) -> Iterator[tuple[Part, int]]:
    """The models that can read what the mechanism offers, each with the sets of synthetic rows that it is fitted to."""
    sampled = {"distribution", "bins"} & set(mechanism.offers)  # what several sets of rows can be drawn from
    for model in experiment.models:
        if model.reads(mechanism.offers):
            draws = experiment.draws if sampled and "rows" in model.needs else 1
            yield from product([model], range(draws))


def _metrics(experiment: Experiment, mechanism: Part) -> list[Part]:
    """The metrics of what the mechanism offers, sorted by name."""
    return sorted((part for part in experiment.metrics if part.reads(mechanism.offers)), key=lambda part: part.name)


def inputs_of(dataset: Dataset, delta_power: str | None, mechanism: Part) -> Iterator[str]:
    """What the settings themselves took from the private rows without paying for it."""
    if dataset.bounds == "data":
        yield "the bounds of the attributes: the least and greatest value of all rows"
    if (taken := dataset.unpaid) is not None:
        yield str(taken)
    if delta_power is not None:
        yield f"delta: a power of the number of training rows, {delta_power}"
    if mechanism.unpaid:
        files = [source.file for source in dataset.sources]
        yield from dict.fromkeys(mechanism.unpaid[file] for file in files if file in mechanism.unpaid)


def _check_labels(experiment: Experiment, design: Design) -> None:
    parts = (*experiment.mechanisms, *experiment.models, *experiment.metrics)
    if design.several:
        wanting = [part.name for part in parts if not (part.classes or _without_target(part))]
    else:
        wanting = [part.name for part in parts if part.labels and not design.binary]
    if wanting:
        binary = [a.name for a in design.domain.attributes if a.size == 2]
        raise UserError(
            f"{', '.join(wanting)}: for a target of two levels, which {design.target!r} is not; choose dataset.target "
            f"among {', '.join(binary) or 'attributes of two levels (there are none)'}, or leave them out"
        )


def _without_target(part: Part) -> bool:
    """Whether it is a mechanism that knows no target."""
    return part.group == "mechanism" and not part.takes("design")


def _variants(mechanism: Part, calibrations: Sequence[str]) -> list[Part]:
    """The mechanism under each calibration, if its paper publishes constants; one set on it alone prevails."""
    if not mechanism.takes("calibration") or "calibration" in mechanism.parameters:
        return [mechanism]
    ordered = [name for name in mechanism.calibrations if name in calibrations]
    return [replace(mechanism, parameters={**mechanism.parameters, "calibration": name}) for name in ordered]


def _epsilons(mechanism: Part, experiment: Experiment) -> tuple[float, ...]:
    return experiment.epsilons if mechanism.private else (float("inf"),)
