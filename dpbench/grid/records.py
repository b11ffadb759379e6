"""What identifies a release, a fit and a trial, and what is recorded of a trial: one small class each.

`to_dict` gives what stands in a file, JSON-ready; `from_dict` reads it back. An identity is the digest of a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Required, TypedDict

from dpbench.files import Json
from dpbench.grid.provenance import Provenance
from dpbench.grid.seeds import canonical, digest, digests
from dpbench.metrics.evaluation import Score
from dpbench.privacy.accounting import Spent
from dpbench.privacy.budget import Budget

if TYPE_CHECKING:
    from dpbench.config.schema import Parameters
    from dpbench.config.specs import DesignSettings


def json_number(value: float) -> float | str:
    """The number, or its name ('inf', 'nan') where JSON has none: `float` reads both back.

    >>> json_number(0.5), json_number(float("inf"))
    (0.5, 'inf')
    """
    return float(value) if float("-inf") < value < float("inf") else str(float(value))


# --- keys ----------------------------------------------------------------------------------------------------------


class DatasetKey(TypedDict, total=False):
    """What identifies the rows of a data set (`identity.dataset_key`); `domain` is the digest of its declaration."""

    name: str
    _target_: str
    sources: dict[str, str]
    domain: str
    outside: str
    drop: list[str]
    parameters: Json


class SplitKey(TypedDict, total=False):
    """The rows of each part of a split, what has the coins of private rows, and what is not as it is by default."""

    train_rows: int
    test_rows: float | Sequence[float]
    coins: str
    public_rows: int
    public_data: DatasetKey
    protocol: str
    fixed: bool


@dataclass(frozen=True)
class PartKey:
    """A mechanism, model or metric: its function, the parameters of its config, and its version (`identity`).

    `version` is None where it is left out, so that results of several versions can be compared.
    """

    name: str
    target: str
    parameters: Parameters
    version: str | None = None

    def to_dict(self) -> Json:
        """JSON-ready; without `version` if it is None."""
        found = {"name": self.name, "target": self.target, "parameters": dict(self.parameters)}
        return found if self.version is None else {**found, "version": self.version}

    @classmethod
    def from_dict(cls, data: Json) -> PartKey:
        """What `to_dict` described."""
        return cls(data["name"], data["target"], data.get("parameters") or {}, data.get("version"))

    def unversioned(self) -> PartKey:
        """The same, whatever version it is."""
        return replace(self, version=None)


@dataclass(frozen=True)
class ReleaseKey:
    """One run of a mechanism: on which rows, under which budget, and which repetition it is.

    `design`: of a mechanism that takes one.
    """

    dataset: DatasetKey
    split: SplitKey
    seed: int
    repetition: int
    mechanism: PartKey
    budget: Budget
    design: DesignSettings | None = None

    @cached_property
    def id(self) -> str:
        """The identity of the release."""
        return digest(self.to_dict())

    def to_dict(self) -> Json:
        """JSON-ready; an infinite epsilon is 'inf'."""
        found = {
            "dataset": dict(self.dataset),
            "split": dict(self.split),
            "seed": self.seed,
            "repetition": self.repetition,
            "mechanism": self.mechanism.to_dict(),
            "budget": {**vars(self.budget), "epsilon": json_number(self.budget.epsilon)},
        }
        return found if self.design is None else {**found, "design": dict(self.design)}

    @classmethod
    def from_dict(cls, data: Json) -> ReleaseKey:
        """What `to_dict` described."""
        budget = Budget(**{**data["budget"], "epsilon": float(data["budget"]["epsilon"])})
        mechanism = PartKey.from_dict(data["mechanism"])
        plain = (data["dataset"], data["split"], data["seed"], data["repetition"])
        return cls(*plain, mechanism, budget, data.get("design"))

    def ids(self, repetitions: Iterable[int]) -> Iterator[str]:
        """The identities of these repetitions. What they are digests of is written once."""
        plain, _ = without_repetition(self.to_dict())
        before = canonical({name: value for name, value in plain.items() if name < "repetition"}).removesuffix("}")
        after = canonical({name: value for name, value in plain.items() if name > "repetition"}).removeprefix("{")
        return digests(f'{before},"repetition":', (f"{repetition},{after}" for repetition in repetitions))

    def repeated(self, repetition: int, identity: str) -> ReleaseKey:
        """The key of this repetition, whose identity it is."""
        own = (self.dataset, self.split, self.seed, repetition, self.mechanism, self.budget, self.design)
        key = ReleaseKey(*own)
        vars(key)["id"] = identity
        return key

    def unversioned(self) -> ReleaseKey:
        """The same, whatever version made it."""
        return replace(self, mechanism=self.mechanism.unversioned())

    def noise_seed(self, code: str | None = None) -> Json:
        """What the noise is derived from: on public rows the settings alone, whichever version runs them.

        On other rows also the digest of the mechanism's whole `code`: two releases of the same rows with the same
        noise, at scales that a change of the code made different, would give the rows away.
        """
        mechanism = _seed_of(self.mechanism)
        return {**self.to_dict(), "mechanism": mechanism if code is None else {**mechanism, "code": code}}


@dataclass(frozen=True)
class FitKey:
    """One model on a release, or on the rows of the `draw`-th set that is sampled from it (0: as it was released)."""

    release: ReleaseKey
    model: PartKey
    design: DesignSettings
    draw: int = 0

    @cached_property
    def id(self) -> str:
        """The identity of the fit."""
        return digest({"release": self.release.id, **self.own()})

    def to_dict(self) -> Json:
        """JSON-ready."""
        return {"release": self.release.to_dict(), **self.own()}

    @classmethod
    def from_dict(cls, data: Json) -> FitKey:
        """What `to_dict` described."""
        return cls.of(ReleaseKey.from_dict(data["release"]), data)

    @classmethod
    def of(cls, release: ReleaseKey, own: Json) -> FitKey:
        """What `own` described, on this release."""
        return cls(release, PartKey.from_dict(own["model"]), own["design"], own.get("draw", 0))

    def own(self) -> Json:
        """What is not in the release's key, JSON-ready."""
        found = {"model": self.model.to_dict(), "design": dict(self.design)}
        return {**found, "draw": self.draw} if self.draw else found

    def unversioned(self) -> FitKey:
        """The same, whatever version made it."""
        return replace(self, release=self.release.unversioned(), model=self.model.unversioned())

    def sampler_seed(self) -> Json:
        """What the draws of the model are derived from: the same whatever the metrics are."""
        return {**self.own(), "release": digest(self.release.noise_seed()), "model": _seed_of(self.model)}


@dataclass(frozen=True)
class TrialKey:
    """A fit and the metrics it is scored by, sorted by name."""

    fit: FitKey
    metrics: tuple[PartKey, ...]

    @property
    def release(self) -> ReleaseKey:
        """The key of the release."""
        return self.fit.release

    @cached_property
    def id(self) -> str:
        """The identity of the trial."""
        return digest({**self.own(), "release": self.release.id})

    def ids(self, releases: Iterable[str]) -> Iterator[str]:
        """Its identities on the releases of these ids. What they are digests of is written once."""
        before = canonical(self.own()).removesuffix("}")  # "release" is the last name
        return digests(f'{before},"release":', (f'"{release}"}}' for release in releases))

    def on(self, release: ReleaseKey, identity: str) -> TrialKey:
        """The same fit and metrics on another release, with its identity there."""
        key = TrialKey(FitKey(release, self.fit.model, self.fit.design, self.fit.draw), self.metrics)
        vars(key)["id"] = identity
        return key

    def own(self) -> Json:
        """What is not in the release's key, JSON-ready."""
        metrics = {}
        for metric in self.metrics:
            metrics[metric.name] = {name: value for name, value in metric.to_dict().items() if name != "name"}
        return {**self.fit.own(), "metrics": metrics}

    def to_dict(self) -> Json:
        """JSON-ready."""
        return {"release": self.release.to_dict(), **self.own()}

    @classmethod
    def from_dict(cls, data: Json) -> TrialKey:
        """What `to_dict` described."""
        return cls.of(ReleaseKey.from_dict(data["release"]), data)

    @classmethod
    def of(cls, release: ReleaseKey, own: Json) -> TrialKey:
        """What `own` described, on this release."""
        metrics = ({**metric, "name": name} for name, metric in sorted(own["metrics"].items()))
        return cls(FitKey.of(release, own), tuple(map(PartKey.from_dict, metrics)))

    @property
    def setting(self) -> tuple[int, ...]:
        """Equal for repetitions that share the objects of their settings, as those of a plan do."""
        release, fit = self.release, self.fit
        parts = (release.dataset, release.split, release.mechanism, release.budget, release.design, fit.model)
        return (*map(id, (*parts, fit.design, self.metrics)), release.seed, fit.draw)

    def unversioned(self) -> TrialKey:
        """The same, whatever version made it: what was asked. Results of other versions share its identity."""
        return TrialKey(self.fit.unversioned(), tuple(metric.unversioned() for metric in self.metrics))


def _seed_of(part: PartKey) -> Json:
    """A part whatever its version; "version" is a constant of all seeds."""
    return {**part.unversioned().to_dict(), "version": 1}


# --- trials --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """Why a trial has no scores; `traceback` has one line per frame, without folders of the machine."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True)
class Runtime:
    """Seconds of each phase and peak resident memory, MB; None where it was not measured, or depends on a secret."""

    release_seconds: float | None = None
    release_peak_mb: float | None = None
    model_seconds: float | None = None
    metrics_seconds: float | None = None
    peak_mb: float | None = None


@dataclass(frozen=True)
class Trial:
    """One fit and its scores, or why there are none. It holds no array.

    `id`, `release_id`: identities by the versions that ran. `status`: see `grid.stages`; `phase`: where it ended,
    unless it is done. `notes`: of the fit, and of the release what must be reported with it (`stages.REPORTED`).
    `spent`: what the release cost (None: there is none). `public`: whether the rows are. `provenance`: commit,
    processor, versions; `release_provenance`: those of the release.
    """

    id: str
    release_id: str
    key: TrialKey
    experiment: str
    status: str
    phase: str | None = None
    scores: tuple[Score, ...] = ()
    notes: Json = field(default_factory=dict)
    spent: Spent | None = None
    nonprivate_inputs: tuple[str, ...] = ()
    public: bool = True
    error: Failure | None = None
    provenance: Provenance = field(default_factory=Provenance)
    release_provenance: Provenance | None = None
    runtime: Runtime = field(default_factory=Runtime)

    def to_dict(self) -> Json:
        """JSON-ready."""
        return {**self.own(), "key": self.key.to_dict()}

    def own(self) -> Json:
        """What is not in its key, JSON-ready."""
        plain = ("id", "release_id", "experiment", "status", "phase", "public", "provenance", "release_provenance")
        return {
            **{name: getattr(self, name) for name in plain},
            "scores": [score_to_dict(score) for score in self.scores],
            "notes": dict(self.notes),
            "spent": None if self.spent is None else spent_to_dict(self.spent),
            "nonprivate_inputs": list(self.nonprivate_inputs),
            "error": None if self.error is None else dict(vars(self.error)),
            "runtime": dict(vars(self.runtime)),
        }

    @classmethod
    def from_dict(cls, data: Json, key: TrialKey | None = None) -> Trial:
        """What `to_dict` described; `key`, if it is known, stands for that of `data`."""
        plain = ("id", "release_id", "experiment", "status", "phase", "provenance", "release_provenance")
        return cls(
            **{name: data[name] for name in plain},
            notes=dict(data["notes"]),
            key=key or TrialKey.from_dict(data["key"]),
            scores=tuple(map(score_from_dict, data["scores"])),
            spent=None if data["spent"] is None else spent_from_dict(data["spent"]),
            nonprivate_inputs=tuple(data["nonprivate_inputs"]),
            public=data["public"],
            error=None if data["error"] is None else Failure(**data["error"]),
            runtime=Runtime(**data["runtime"]),
        )


def without_repetition(key: Json) -> tuple[Json, int]:
    """The key of a release, or one on a release, in JSON, without its repetition; and the repetition."""
    if "release" not in key:
        return {name: value for name, value in key.items() if name != "repetition"}, key["repetition"]
    release, repetition = without_repetition(key["release"])
    return {**key, "release": release}, repetition


def with_repetition(key: Json, repetition: int) -> Json:
    """What `without_repetition` took apart."""
    if "release" not in key:
        return {**key, "repetition": repetition}
    return {**key, "release": with_repetition(key["release"], repetition)}


class ScoreData(TypedDict, total=False):
    """A score, JSON-ready: a value that JSON has no number for is a text; `detail` is left out if there is none."""

    name: Required[str]
    value: Required[float | str]
    unit: Required[str]
    direction: Required[str]
    detail: Mapping[str, object]


def score_to_dict(score: Score) -> ScoreData:
    """A score as plain data."""
    found: ScoreData = {
        "name": score.name,
        "value": json_number(score.value),
        "unit": score.unit,
        "direction": score.direction,
    }
    if score.detail is not None:
        found["detail"] = score.detail
    return found


def score_from_dict(data: ScoreData) -> Score:
    """What `score_to_dict` described."""
    return Score(data["name"], float(data["value"]), data["unit"], data["direction"], data.get("detail"))


def spent_to_dict(cost: Spent) -> dict[str, float | str | None]:
    """The cost of a release, JSON-ready."""
    return {name: None if value is None else json_number(value) for name, value in vars(cost).items()}


def spent_from_dict(data: Json) -> Spent:
    """What `spent_to_dict` described."""
    numbers: Json = {name: None if value is None else float(value) for name, value in data.items()}
    return Spent(**numbers)
