"""What the processes of a run do: make a release, fit a model to one that is stored, score a fit that is stored."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.contracts import check_columns
from dpbench.data.coding import Coded
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import cautions, left_out, load_counted
from dpbench.data.public import public_part, shared_rows
from dpbench.data.secret_split import coin_splitter
from dpbench.data.simulate import Simulation
from dpbench.data.table import Split, Table, split
from dpbench.data.tabular import load_csv
from dpbench.errors import AbsentDataError, UserError
from dpbench.files import Json
from dpbench.grid.channel import Answer, Message, Work
from dpbench.grid.code import verify_code
from dpbench.grid.fits import read_fit, write_fit
from dpbench.grid.identity import dataset_key, verify_data
from dpbench.grid.limits import peak_memory_mb
from dpbench.grid.log_file import Place
from dpbench.grid.records import (
    FitKey,
    PartKey,
    ReleaseKey,
    TrialKey,
    score_to_dict,
    spent_from_dict,
    spent_to_dict,
)
from dpbench.grid.releases import StoredRelease, read_release, write_release
from dpbench.grid.seeds import canonical, digest, generator, noise_generator, secret_key
from dpbench.grid.spending import check_cost, cost_of, holds
from dpbench.grid.store import Store
from dpbench.metrics.evaluation import Evaluation, Reference, check_score
from dpbench.models.fit import Fit, check_fit
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Release, check_release
from dpbench.targets import resolve

if TYPE_CHECKING:
    from dpbench.config.specs import DesignSettings

REPORTED = ("unfinished",)  # counts among the diagnostics of a release that stand by its numbers, unless they are 0


Called = tuple[Callable[..., Any], Json]  # a function, and the parameters of its config


class LostError(Exception):
    """A release or a fit was stored a moment ago, and is not any more."""


# --- stage 1, in a process that sees the rows -------------------------------------------------------------------------


def check_data(request: Message, work: Work) -> None:
    """Load and split the rows of one setting. An invalid input is the fact `user_error`, a file that cannot be had
    `absent` too, and what the owner of a table should know of it and of the `budgets` is `cautions`.
    """
    with work.phase("setup"):
        try:
            key, dataset = ReleaseKey.from_dict(request["key"]), _dataset(request["dataset"])
            _public(request["dataset"], _axes(key))
            if dataset.load is load_csv:
                rows = _counted(request["dataset"], canonical(key.dataset))
                assert isinstance(rows, Coded)
                work.facts["cautions"] = cautions(rows.table, dataset.target, request["budgets"])
        except UserError as error:
            work.facts |= {"user_error": str(error), "absent": isinstance(error, AbsentDataError)}


def make_release(request: Message, work: Work) -> None:
    """Have the release of the request in the store: the one that is there, if it holds, or a new one."""
    store, key = _store(request), ReleaseKey.from_dict(request["key"])
    with work.phase("setup"):
        kept = read_release(store, key.id, tuple(request["place"])) if request["place"] else None
        if kept is not None and holds(kept.release, spent_from_dict(kept.record["spent"]), key):
            work.facts |= _facts(kept.record, kept.release, request["place"])
            return
        rows = _splits(request["dataset"])(_axes(key))
        train, (function, parameters) = rows.seen, _function("mechanism", key.mechanism, request)
        if key.design is not None:
            parameters["design"] = Design(train.domain, **key.design)
        open_data = _dataset(request["dataset"]).public
        shared = () if open_data else _left_out(request["dataset"], canonical(key.dataset))
        if _takes(function, "public"):
            parameters["public"] = public = _public(request["dataset"], _axes(key))
            if public is not None and "public_data" in key.split:
                shared += shared_rows(train, public, counted=open_data)
        if _takes(function, "test"):
            parameters["test"] = rows.test
        code = None if open_data else str(request["codes"][key.mechanism.target])
        rng = noise_generator(key.noise_seed(code), public=open_data)
    with work.phase("release", limited=True):
        made = function(train, key.budget, rng, **parameters)
        peak = peak_memory_mb()
    if code is not None:
        verify_code(key.mechanism.name, key.mechanism.target, code)  # again: a module may have been imported just now
    work.facts["provenance"] = request["provenance"]
    with work.phase("budget", limited=True):
        checked = check_release(made, request["offers"], key.budget, train.domain)
        if key.design is not None:
            check_columns(checked, parameters["design"])
        inputs = (*checked.nonprivate_inputs, *request["nonprivate_inputs"], *shared)
        release = _as_read(replace(checked, nonprivate_inputs=inputs))
        cost = cost_of(release, key)
        work.facts["spent"] = spent_to_dict(cost)
        check_cost(cost, key)
    with work.phase("store"):
        seconds = work.seconds["release"]
        secret = request["hidden"] or any(isinstance(event, RandomSearch) for event in release.ledger.events)
        runtime = {"seconds": None, "peak_mb": None} if secret else {"seconds": seconds, "peak_mb": peak}
        place, record = write_release(store, key, release, {"runtime": runtime, **work.facts}, request["turn"])
        work.facts |= _facts(record, release, place)


def _facts(record: Json, release: Release, place: Place) -> Answer:
    counts = {name: release.diagnostics.get(name) for name in REPORTED}
    reported = {name: count for name, count in counts.items() if isinstance(count, int) and count > 0}
    return {
        "provenance": record["provenance"],
        "runtime": record["runtime"],
        "spent": record["spent"],
        "arrays_sha256": record["arrays_sha256"],
        "hidden": record["runtime"]["seconds"] is None,
        "nonprivate_inputs": list(release.nonprivate_inputs),
        "reported": reported,
        "place": place,
    }


def _as_read(release: Release) -> Release:
    """The release as it will be read: what is checked is what is stored."""
    data, arrays = release.to_parts()
    return Release.from_parts(json.loads(json.dumps(data, allow_nan=False)), arrays)


def _read(store: Store, key: ReleaseKey, place: Place) -> StoredRelease:
    stored = read_release(store, key.id, place)
    if stored is None:
        raise LostError(f"the release {key.id} was removed while it was in use")
    return stored


# --- stage 2: a model sees what is stored, in a process that never loads rows -----------------------------------------


def fit_model(request: Message, work: Work) -> None:
    """Store the model's fit of the stored release."""
    store, key = _store(request), FitKey.from_dict(request["key"])
    with work.phase("setup"):
        stored = _drawn(store, key, request["release"])
        model = _function("model", key.model, request)
    with work.phase("model", limited=True):
        fit = _fit(stored.release, model, key.design, key.sampler_seed())
        peak = peak_memory_mb()
    with work.phase("store"):
        runtime = {"seconds": work.seconds["model"], "peak_mb": peak}
        record = {"arrays_sha256": stored.record["arrays_sha256"], "runtime": runtime}
        place = write_fit(store, key, fit, record, request["turn"])
        work.facts |= {"notes": dict(fit.notes), "place": place}


def score_fit(request: Message, work: Work) -> None:
    """The scores of a stored fit."""
    store, key = _store(request), TrialKey.from_dict(request["key"])
    with work.phase("setup"):
        stored = _drawn(store, key.fit, request["release"])
        fit = read_fit(store, key.fit, stored.record["arrays_sha256"], tuple(request["fit"]))
        if fit is None:
            raise LostError(f"the fit {key.fit.id} was removed while it was in use")
        axes, design = _axes(key.release), canonical(key.fit.design)
        reference = _references(request["dataset"])(axes, design)
        metrics = {part.name: _function("metric", part, request) for part in key.metrics}
        code = request["codes"].get(key.fit.model.target)
        model = _nonprivate(canonical(key.fit.model.to_dict()), code, design, axes)
    with work.phase("metrics", limited=True):
        evaluation = Evaluation(fit, stored.release, reference, model)
        scores = [check_score(metric(evaluation, **given), name) for name, (metric, given) in metrics.items()]
        work.facts["scores"] = [score_to_dict(score) for score in scores]


def _drawn(store: Store, key: FitKey, place: list[Any]) -> StoredRelease:
    """The stored release, with the set of synthetic rows that the fit is of: the same for every model."""
    stored = _read(store, key.release, tuple(place))
    if not key.draw:
        return stored
    rng = generator("rows", [digest(key.release.noise_seed()), key.draw])
    return replace(stored, release=stored.release.redrawn(key.draw, rng))


def _fit(release: Release, model: Called, design: DesignSettings, seed: object) -> Fit:
    """The model's fit of a release. One that draws has a generator of its own."""
    function, parameters = model[0], dict(model[1])
    if _takes(function, "rng"):
        parameters["rng"] = generator("sampler", seed)
    found = Design(release.domain, **design)
    return check_fit(function(release, design=found, **parameters), len(found.columns))


@lru_cache(maxsize=64)
def _nonprivate(model: str, code: str | None, design: str, axes: str) -> Callable[[Release], Fit]:
    """A model as a function of the release alone: of one split it draws the same whatever the release."""
    part = PartKey.from_dict(json.loads(model))
    called = _verified("model", part.name, part.target, code), dict(part.parameters)
    seed = ["nonprivate", part.unversioned().to_dict(), json.loads(axes)]
    return lambda release: _fit(release, called, json.loads(design), seed)


# --- what a request names ---------------------------------------------------------------------------------------------


def _store(request: Message) -> Store:
    return _store_in(*request["store"])


@lru_cache(maxsize=8)
def _store_in(root: str, name: str) -> Store:
    return Store(Path(root), name)


def _function(kind: str, part: PartKey, request: Message) -> Called:
    """The function of a part of the plan, and the parameters of its config."""
    return _verified(kind, part.name, part.target, request["codes"].get(part.target)), dict(part.parameters)


def _takes(function: Callable[..., Any], parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters


@lru_cache(maxsize=256)
def _verified(kind: str, name: str, target: str, code: str | None) -> Callable[..., Any]:
    """The function, whose code is the plan's: looked at once in a process, as what it has imported stays."""
    verify_code(name, target, code)
    return resolve(kind, target)


# --- the real rows, kept from one request to the next -----------------------------------------------------------------


def _dataset(config: str) -> Dataset:
    """Made anew each time: it keeps what it has read, such as the file of a domain."""
    return Dataset.of(json.loads(config))


def _axes(key: ReleaseKey) -> str:
    """What the split of a release depends on: a fixed one is that of repetition 0."""
    repetition = 0 if key.split.get("fixed") else key.repetition
    return canonical([key.dataset, key.split, key.seed, repetition])


@lru_cache(maxsize=2)  # the private rows, and public ones of another data set
def _counted(dataset: str, key: str) -> Coded | Simulation:
    """The rows, if they are those of the plan: the files are looked at before and after they are read.

    The columns stand in the alphabetical order of the attributes, as they did when the committed results were made.
    """
    verify_data(_dataset(dataset), json.loads(key))
    found = load_counted(_dataset(canonical(json.loads(dataset))))
    verify_data(_dataset(dataset), json.loads(key))
    return found


def _table(dataset: str, key: str) -> Table | Simulation:
    found = _counted(dataset, key)
    return found if isinstance(found, Simulation) else found.table


def _left_out(dataset: str, key: str) -> tuple[str, ...]:
    """What is to be said of rows of the table that were left out."""
    found = _counted(dataset, key)
    return () if isinstance(found, Simulation) else left_out(found)


@lru_cache(maxsize=1)
def _splits(config: str) -> Callable[[str], Split]:
    """By axes: those of the data set before are forgotten, so that they are in no peak of memory.

    The coins of private rows depend on the name of the data set, not on its checksums, which one row more changes.
    """
    splitters: dict[str, Callable[[str, float, str], Split]] = {}

    @lru_cache(maxsize=8)
    def split_of(axes: str) -> Split:
        dataset, sizes, seed, repetition = json.loads(axes)
        protocol = sizes.pop("protocol", "split")
        for name in ("public_data", "fixed"):  # no sizes
            sizes.pop(name, None)
        key = canonical(dataset)
        rows = _table(config, key)
        if "coins" in sizes:
            if isinstance(rows, Simulation):
                raise UserError(
                    f"dataset={dataset['name']} is simulated, so its rows are no one's data: set dataset.public=true"
                )
            if key not in splitters:
                splitters[key] = coin_splitter(rows, secret_key("split"))
            parts = splitters[key](canonical([dataset["name"], seed, repetition]), sizes["test_rows"], sizes["coins"])
        else:
            source = {part: dataset[part] for part in ("name", "sources")}
            rng = generator("split", [source, seed, repetition])
            parts = rows.split(rng, **sizes) if isinstance(rows, Simulation) else split(rows, rng, **sizes)
        return replace(parts, protocol=protocol)

    return split_of


def _public(config: str, axes: str) -> Table | None:
    """The public rows: those of another data set if the dataset names one, else those of the split."""
    rows, other = _splits(config)(axes), _dataset(config).public_data
    if other is None:
        return rows.public
    planned = json.loads(axes)[1].get("public_data")  # where the mechanism takes them
    table = _table(json.dumps(other.config), canonical(planned or dataset_key(other)))
    if isinstance(table, Simulation):
        raise UserError("dataset.public_data draws its rows anew: it has none that are public")
    return public_part(rows.seen.domain, table)


@lru_cache(maxsize=1)
def _references(config: str) -> Callable[[str, str], Reference]:
    """By axes and design: the same for every mechanism, budget and model of a repetition."""

    @lru_cache(maxsize=8)
    def reference_of(axes: str, design: str) -> Reference:
        part = _splits(config)(axes)
        return Reference(part, Design(part.train.domain, **json.loads(design)))

    return reference_of
