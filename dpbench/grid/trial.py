"""Running one release and the trials on it, in a worker: the only place where an exception becomes a status."""

from __future__ import annotations

import inspect
import json
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Split, Table, split
from dpbench.errors import NoEstimateError
from dpbench.grid.limits import TimeLimitError, limited, peak_memory_mb, reset_peak_memory
from dpbench.grid.plan import Key, Plan, ReleaseItem, Setting, TrialItem
from dpbench.grid.provenance import threads
from dpbench.grid.seeds import canonical, generator
from dpbench.grid.store import Store, StoreError
from dpbench.mechanisms.release import Release, json_number
from dpbench.metrics.evaluation import Evaluation, Reference, Score
from dpbench.models.fit import Fit
from dpbench.privacy.accounting import Spent, spent
from dpbench.privacy.budget import Budget
from dpbench.resources import PACKAGE
from dpbench.targets import resolve

Result = tuple[str, str, str]  # trial id, status, message
AXES = ("dataset", "split", "seed", "repetition")  # what the split of a release depends on
ROUNDING = 1e-9  # relative slack when the budget spent is held against the budget asked for


@dataclass(frozen=True)
class Context:
    """What all workers of a run share."""

    store: Store
    settings: tuple[Setting, ...]
    provenance: Mapping[str, Any]
    force: bool = False
    retry_failed: bool = False


@dataclass
class Outcome:
    """How a phase ended: its status, and the error if it did not succeed."""

    status: str = "done"
    phase: str | None = None
    error: dict[str, str] | None = None
    seconds: dict[str, float] = field(default_factory=dict)


class OverspentError(Exception):
    """A release cost more than its budget."""


def run_item(item: ReleaseItem, context: Context) -> list[Result]:
    """Make the release (or read it, if it is stored) and run its trials; each is stored as soon as it ends.

    Returns (trial id, status, message) of each trial. Raises `StoreError` if the results cannot be written.
    """
    if not (context.force or context.retry_failed):  # another process may have come first
        found = {trial["id"]: trial for trial in context.store.read_trials(trial.id for trial in item.trials)}
        if len(found) == len(item.trials):
            return [result_of(trial) for trial in found.values()]
    with limited(memory_mb=context.settings[item.setting].limits.memory_mb):
        reset_peak_memory()
        outcome = Outcome()
        release, record = _obtain(item, context, outcome)
        return [_run_trial(trial, item, context, release, record, outcome) for trial in item.trials]


def record_lost(item: ReleaseItem, context: Context) -> list[Result]:
    """Store the trials of an item whose worker process was killed by the system."""
    limit = context.settings[item.setting].limits.memory_mb
    message = f"the worker process was killed, most likely for memory (limits.memory_mb={limit:g})"
    outcome = Outcome("oom", "release", {"type": "WorkerKilled", "message": message, "traceback": ""})
    record = {"runtime": {"seconds": None, "peak_mb": None}}
    return [_run_trial(trial, item, context, None, record, outcome) for trial in item.trials]


def result_of(trial: Mapping[str, Any]) -> Result:
    """What a run reports of a stored trial."""
    return trial["id"], trial["status"], trial["error"]["message"] if trial["error"] else ""


@contextmanager
def _phase(name: str, outcome: Outcome, seconds: float) -> Iterator[None]:
    """Time a phase and turn whatever it raises into a status."""
    start = time.perf_counter()
    try:
        with limited(seconds=seconds):
            yield
    except StoreError:
        raise
    except TimeLimitError as error:
        _failed(outcome, "timeout", name, error)
    except NoEstimateError as error:
        _failed(outcome, "no_estimate", name, error)
    except MemoryError as error:
        _failed(outcome, "oom", name, error)
    except Exception as error:
        _failed(outcome, "failed", name, error)
    finally:
        outcome.seconds[name] = round(time.perf_counter() - start, 4)


def _failed(outcome: Outcome, status: str, phase: str, error: BaseException) -> None:
    outcome.status, outcome.phase = status, phase
    outcome.error = {"type": type(error).__name__, "message": str(error), "traceback": _frames(error)}


def _frames(error: BaseException) -> str:
    """The traceback without the folders of this machine, and without this module's own frames."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return "\n".join(f"{_short(frame.filename)}:{frame.lineno} {frame.name}: {frame.line}" for frame in frames)


def _short(filename: str) -> str:
    for root in ("site-packages/", f"{PACKAGE.parent}/"):
        if root in filename:
            return filename.split(root, 1)[1]
    return filename.rsplit("/", 1)[-1]


# --- stage 1 -------------------------------------------------------------------------------------------------------


def _obtain(item: ReleaseItem, context: Context, outcome: Outcome) -> tuple[Release | None, dict[str, Any]]:
    """The stored release, or a new one that is stored; None with the outcome set if it could not be made."""
    if context.force:
        context.store.discard_release(item.id)
    elif (stored := context.store.read_release(item.id)) is not None:
        return stored
    release: Release | None = None
    setting = context.settings[item.setting]
    with _phase("release", outcome, setting.limits.seconds):
        release = _make_release(item.key, setting.dataset)
    record = {"id": item.id, "key": item.key, "provenance": {**context.provenance, "threads": threads()}}
    record["runtime"] = {"seconds": outcome.seconds["release"], "peak_mb": peak_memory_mb()}
    if release is None:
        return None, record
    with _phase("budget", outcome, setting.limits.seconds):
        cost = spent(release.ledger, release.budget.delta)
        record["spent"] = {name: None if v is None else json_number(v) for name, v in asdict(cost).items()}
        _check_spent(cost, release.budget, item.key["mechanism"]["parameters"])
    if outcome.status != "done":
        return None, record
    context.store.discard_release(item.id)  # files damaged from outside, if any
    context.store.write_release(item.id, release, record)
    return release, record


def _make_release(key: Key, dataset: Mapping[str, Any]) -> Release:
    mechanism = key["mechanism"]
    parameters = dict(mechanism["parameters"])
    axes = {name: key[name] for name in AXES}
    train = _split(canonical(dict(dataset)), canonical(axes)).train
    if "design" in key:
        parameters["design"] = Design(train.domain, **key["design"])
    budget = Budget(**{**key["budget"], "epsilon": float(key["budget"]["epsilon"])})
    release: Release = resolve("mechanism", mechanism["target"])(train, budget, generator("noise", key), **parameters)
    return release


def _check_spent(cost: Spent, budget: Budget, parameters: Mapping[str, Any]) -> None:
    """spent <= asked, unless the printed constants are wanted: then the record shows both numbers."""
    if parameters.get("calibration") != "paper" and cost.epsilon > budget.epsilon * (1 + ROUNDING):
        raise OverspentError(f"the release spent epsilon = {cost.epsilon:.6g}, the budget was {budget.epsilon:.6g}")


# --- stage 2 -------------------------------------------------------------------------------------------------------


def _run_trial(
    trial: TrialItem,
    item: ReleaseItem,
    context: Context,
    release: Release | None,
    record: Mapping[str, Any],
    stage_one: Outcome,
) -> Result:
    outcome = Outcome(stage_one.status, stage_one.phase, stage_one.error)
    setting = context.settings[item.setting]
    fit: Fit | None = None
    scores: list[dict[str, Any]] = []
    if release is not None:
        with _phase("model", outcome, setting.limits.seconds):
            fit = _fit(release, trial.key, item)
        if fit is not None:
            with _phase("metrics", outcome, setting.limits.seconds):
                scores = _score(fit, release, trial.key, item.key, setting.dataset)
    stored = {
        "id": trial.id,
        "release_id": item.id,
        "experiment": context.store.name,
        "key": {"release": item.key, **trial.key},
        "status": outcome.status,
        "phase": outcome.phase,
        "scores": scores,
        "fit": dict(fit.notes) if fit else {},
        "asked": {name: item.key["budget"][name] for name in ("epsilon", "delta")},
        "spent": record.get("spent"),
        "nonprivate_inputs": [*(release.nonprivate_inputs if release else ()), *_taken(setting.dataset)],
        "error": outcome.error,
        "provenance": {**context.provenance, "threads": threads()},
        "release_provenance": record.get("provenance"),
        "runtime": {
            "release_seconds": record["runtime"]["seconds"],
            "release_peak_mb": record["runtime"]["peak_mb"],
            "model_seconds": outcome.seconds.get("model"),
            "metrics_seconds": outcome.seconds.get("metrics"),
            "peak_mb": peak_memory_mb(),
        },
    }
    context.store.write_trial(stored)
    return result_of(stored)


def _taken(dataset: Mapping[str, Any]) -> list[str]:
    """What the declaration of the data itself took from the rows."""
    read_off = dataset.get("bounds") == "data"
    return ["the bounds of the attributes: the least and greatest value of all rows"] if read_off else []


def _fit(release: Release, trial: Key, item: ReleaseItem) -> Fit:
    """What the model makes of the release. One that draws has a generator, the same whatever the metrics are."""
    model = trial["model"]
    function, parameters = resolve("model", model["target"]), dict(model["parameters"])
    if "rng" in inspect.signature(function).parameters:
        key = {"release": item.id, "model": model, "design": trial["design"]}
        parameters["rng"] = generator("sampler", key)
    fit: Fit = function(release, design=Design(release.domain, **trial["design"]), **parameters)
    return fit


def _score(fit: Fit, release: Release, trial: Key, item: Key, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
    evaluation = Evaluation(fit, release, _reference_of(item, trial["design"], dataset))
    scores: list[Score] = [resolve("metric", target)(evaluation) for _, target in sorted(trial["metrics"].items())]
    records = [{**asdict(score), "value": json_number(score.value)} for score in scores]
    return [{name: value for name, value in record.items() if value is not None} for record in records]


# --- the real rows, once a worker ------------------------------------------------------------------------------------


def _reference_of(item: Key, design: Key, dataset: Mapping[str, Any]) -> Reference:
    """The reference of this repetition and design; its split is the same for every mechanism, budget and model."""
    axes = {name: item[name] for name in AXES}
    return _reference(canonical(dict(dataset)), canonical(axes), canonical(design))


def check_data(plan: Plan) -> None:
    """Load and split all data once, so that what the user must mend is said before any trial runs.

    Raises `UserError` if data cannot be had, do not fit their declaration, or leave a part of the split empty.
    """
    firsts = {item.setting: item for item in reversed(plan.releases)}
    for place, item in sorted(firsts.items()):
        _split(canonical(dict(plan.settings[place].dataset)), canonical({name: item.key[name] for name in AXES}))


@lru_cache(maxsize=1)
def _table(dataset: str) -> Table | Simulation:
    return load_dataset(json.loads(dataset))


@lru_cache(maxsize=8)
def _split(dataset: str, axes: str) -> Split:
    key = json.loads(axes)
    source = {part: key["dataset"][part] for part in ("name", "sources")}
    rng = generator("split", [source, key["seed"], key["repetition"]])
    rows = _table(dataset)
    return rows.split(rng, **key["split"]) if isinstance(rows, Simulation) else split(rows, rng, **key["split"])


@lru_cache(maxsize=8)
def _reference(dataset: str, axes: str, design: str) -> Reference:
    part = _split(dataset, axes)
    return Reference(part, Design(part.train.domain, **json.loads(design)))
