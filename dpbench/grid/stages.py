"""What the processes of a run do: make a release, fit a model to one that is stored, score the fit."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from dpbench.contracts import check_fit, check_release, check_score
from dpbench.data.encode import Design
from dpbench.data.load import is_public, load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Split, Table, split
from dpbench.errors import ContractError, UserError
from dpbench.grid.channel import Message
from dpbench.grid.identity import Key, sampler_key, seed_key, verify_code, verify_data
from dpbench.grid.limits import peak_memory_mb
from dpbench.grid.seeds import canonical, generator, noise_generator
from dpbench.grid.spending import asked_of, check_cost, cost_of, holds, plain
from dpbench.grid.store import Store
from dpbench.mechanisms.release import Release, json_number
from dpbench.metrics.evaluation import Evaluation, Reference, Score
from dpbench.targets import resolve

AXES = ("dataset", "split", "seed", "repetition")  # what the split of a release depends on


class Work(Protocol):
    """A request that is being worked on. `facts`: what the reply says, JSON-ready, also if an error ends the work."""

    facts: dict[str, Any]
    seconds: dict[str, float]

    def phase(self, name: str, *, limited: bool = False) -> AbstractContextManager[None]:
        """A part of the work with a clock of its own; `limited` by limits.seconds."""
        ...


class LostReleaseError(Exception):
    """The release was stored a moment ago, and is not any more."""


# --- stage 1, in a process that sees the rows -------------------------------------------------------------------------


def check_data(request: Message, payload: bytes, work: Work) -> bytes:
    """Load and split the rows of one setting. What the user must mend is the fact `user_error`."""
    with work.phase("setup"):
        try:
            _split(json.dumps(request["dataset"]), _axes(request["key"]))
        except UserError as error:
            work.facts["user_error"] = str(error)
    return b""


def make_release(request: Message, payload: bytes, work: Work) -> bytes:
    """Have the release of the request in the store: the one that is there, if it holds, or a new one."""
    store, identity, key = _store(request), request["id"], request["key"]
    with work.phase("setup"):
        if not request["force"] and (kept := _kept(store, identity, key)) is not None:
            work.facts |= kept
            return b""
        store.discard_release(identity)
        train, budget = _split(json.dumps(request["dataset"]), _axes(key)).train, asked_of(key)
        function, parameters = _function("mechanism", key["mechanism"])
        if "design" in key:
            parameters["design"] = Design(train.domain, **key["design"])
        rng = noise_generator(seed_key(key), public=is_public(request["dataset"]))
    with work.phase("release", limited=True):
        made = function(train, budget, rng, **parameters)
        peak = peak_memory_mb()
    work.facts["provenance"] = request["provenance"]
    with work.phase("budget", limited=True):
        checked = check_release(made, request["offers"], budget, train.domain)
        inputs = (*checked.nonprivate_inputs, *request["nonprivate_inputs"])
        release = _as_read(replace(checked, nonprivate_inputs=inputs))
        cost = cost_of(release, key)
        work.facts["spent"] = plain(cost)
        check_cost(cost, key)
    with work.phase("store"):
        seconds = work.seconds["release"]
        runtime = {"seconds": None, "peak_mb": None} if request["hidden"] else {"seconds": seconds, "peak_mb": peak}
        record = {"id": identity, "key": key, "runtime": runtime, **work.facts}
        stored = (release, record) if store.write_release(identity, release, record) else _read(store, identity)
        work.facts |= _facts(*stored)
    return b""


def _kept(store: Store, identity: str, key: Key) -> dict[str, Any] | None:
    """The facts of the stored release; None if there is none, or it is not what its plan and its record say."""
    stored = store.read_release(identity)
    if stored is None:
        return None
    release, record = stored
    return _facts(release, record) if record["key"] == key and holds(release, record["spent"], key) else None


def _facts(release: Release, record: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: record[name] for name in ("provenance", "runtime", "spent")}
    return {**facts, "nonprivate_inputs": list(release.nonprivate_inputs)}


def _as_read(release: Release) -> Release:
    """The release as it will be read: what is checked is what is stored."""
    data, arrays = release.to_parts()
    return Release.from_parts(json.loads(json.dumps(data, allow_nan=False)), arrays)


def _read(store: Store, identity: str) -> tuple[Release, dict[str, Any]]:
    stored = store.read_release(identity)
    if stored is None:
        raise LostReleaseError(f"the release {identity} was taken away while it was in use")
    return stored


# --- stage 2: a model sees what is stored, in a process that never loads rows -----------------------------------------


def fit_model(request: Message, payload: bytes, work: Work) -> bytes:
    """The model's fit of the stored release, pickled. One that draws has a generator, the same whatever the metrics."""
    trial = request["trial"]
    with work.phase("setup"):
        release, _ = _read(_store(request), request["id"])
        design = Design(release.domain, **trial["design"])
        function, parameters = _function("model", trial["model"])
        if "rng" in inspect.signature(function).parameters:
            parameters["rng"] = generator("sampler", sampler_key(request["key"], trial))
    with work.phase("model", limited=True):
        fit = check_fit(function(release, design=design, **parameters), len(design.columns))
        work.facts["notes"] = dict(fit.notes)
        try:
            return pickle.dumps(fit, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ContractError(
                f"the fit cannot be handed on ({error}): a predictor must be a function or an instance of a class at "
                "the top level of a module, not a function within a function"
            ) from error


def score_fit(request: Message, payload: bytes, work: Work) -> bytes:
    """The scores of a pickled fit."""
    trial, key = request["trial"], request["key"]
    with work.phase("setup"):
        release, _ = _read(_store(request), request["id"])
        reference = _reference(json.dumps(request["dataset"]), _axes(key), canonical(trial["design"]))
        parts = sorted(trial["metrics"].items())
        metrics = {name: _function("metric", {"name": name, **part}) for name, part in parts}
    with work.phase("metrics", limited=True):
        evaluation = Evaluation(pickle.loads(payload), release, reference)
        scores = [check_score(metric(evaluation, **given), name) for name, (metric, given) in metrics.items()]
        work.facts["scores"] = [_plain_score(score) for score in scores]
    return b""


def _plain_score(score: Score) -> dict[str, Any]:
    record = {**asdict(score), "value": json_number(score.value)}
    return {name: value for name, value in record.items() if value is not None}


# --- what a request names ---------------------------------------------------------------------------------------------


def _store(request: Message) -> Store:
    root, name = request["store"]
    return Store(Path(root), name)


def _function(kind: str, part: Key) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a part of the plan, and the parameters of its config."""
    return _verified(kind, part["name"], part["target"], part["code"]), dict(part["parameters"])


@lru_cache(maxsize=256)
def _verified(kind: str, name: str, target: str, code: str) -> Callable[..., Any]:
    """The function, whose code is the plan's: looked at once in a process, as what it has imported stays."""
    verify_code({"name": name, "target": target, "code": code})
    return resolve(kind, target)


# --- the real rows, kept from one request to the next -----------------------------------------------------------------


def _axes(key: Key) -> str:
    return canonical({name: key[name] for name in AXES})


@lru_cache(maxsize=1)
def _table(dataset: str, key: str) -> Table | Simulation:
    """The rows, if they are those of the plan: the files are looked at before and after they are read.

    The columns stand in the alphabetical order of the attributes, as they did when the committed results were made.
    """
    config = json.loads(dataset)
    verify_data(config, json.loads(key))
    table = load_dataset(json.loads(canonical(config)))
    verify_data(config, json.loads(key))
    return table


@lru_cache(maxsize=8)
def _split(dataset: str, axes: str) -> Split:
    key = json.loads(axes)
    source = {part: key["dataset"][part] for part in ("name", "sources")}
    rng = generator("split", [source, key["seed"], key["repetition"]])
    rows = _table(dataset, canonical(key["dataset"]))
    return rows.split(rng, **key["split"]) if isinstance(rows, Simulation) else split(rows, rng, **key["split"])


@lru_cache(maxsize=8)
def _reference(dataset: str, axes: str, design: str) -> Reference:
    """The same for every mechanism, budget and model of a repetition."""
    part = _split(dataset, axes)
    return Reference(part, Design(part.train.domain, **json.loads(design)))
