"""One release and the trials on it, as their supervisor sees them: who does what, and what is stored of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpbench.data.load import is_public
from dpbench.errors import UserError
from dpbench.grid.channel import Message
from dpbench.grid.plan import Plan, ReleaseItem, Setting, TrialItem
from dpbench.grid.pool import Pair, pool_of
from dpbench.grid.process import Reply
from dpbench.grid.provenance import threads
from dpbench.grid.store import Store

Result = tuple[str, str, str]  # trial id, status, message


@dataclass(frozen=True)
class Context:
    """What all supervisors of a run share; `run` names it."""

    store: Store
    settings: tuple[Setting, ...]
    provenance: Mapping[str, Any]
    force: bool = False
    retry_failed: bool = False
    run: str = field(default_factory=lambda: uuid.uuid4().hex)


def check_data(plan: Plan, context: Context) -> None:
    """Load and split all data once, so that what the user must mend is said before any trial runs.

    Raises `UserError` if data cannot be had, do not fit their declaration, or leave a part of the split empty.
    """
    firsts = {item.setting: item for item in reversed(plan.releases)}
    with pool_of(context.run).pair() as pair:
        for place, item in sorted(firsts.items()):
            setting = plan.settings[place]
            request = {"do": "check", "key": item.key, "dataset": dict(setting.dataset)}
            reply = pair.rows.ask(request, setting.limits)
            if "user_error" in (reply.answer or {}):
                raise UserError(reply.answer["user_error"])
            if reply.error is not None:
                raise UserError(f"dataset={setting.dataset['name']} cannot be loaded: {reply.error['message']}")


def run_item(item: ReleaseItem, context: Context) -> list[Result]:
    """Have the release made (or found, if it is stored) and its trials run; each is stored as soon as it ends.

    Any thread of any process may call it: the work is done in processes of its own.
    Returns (trial id, status, message) of each trial. Raises `StoreError` if the results cannot be written.
    """
    if not (context.force or context.retry_failed):  # another process may have come first
        found = {trial["id"]: trial for trial in context.store.read_trials(trial.id for trial in item.trials)}
        if len(found) == len(item.trials):
            return [result_of(trial) for trial in found.values()]
    with pool_of(context.run).pair() as pair:
        made = _release(item, context, pair)
        return [_trial(trial, item, context, pair, made) for trial in item.trials]


def result_of(trial: Mapping[str, Any]) -> Result:
    """What a run reports of a stored trial."""
    return trial["id"], trial["status"], trial["error"]["message"] if trial["error"] else ""


def _release(item: ReleaseItem, context: Context, pair: Pair) -> Reply:
    setting = context.settings[item.setting]
    request = {
        **_request("release", item, context),
        "dataset": dict(setting.dataset),
        "force": context.force,
        "offers": list(item.offers),
        "nonprivate_inputs": list(item.nonprivate_inputs),
        "hidden": item.hide_runtime,
        "provenance": {**context.provenance, "threads": threads()},
    }
    return pair.rows.ask(request, setting.limits)


def _trial(trial: TrialItem, item: ReleaseItem, context: Context, pair: Pair, made: Reply) -> Result:
    setting = context.settings[item.setting]
    end, fit, score = made, None, None
    if made.status == "done":
        end = fit = pair.model.ask({**_request("model", item, context), "trial": trial.key}, setting.limits)
        if fit.status == "done":
            request = {**_request("metrics", item, context), "trial": trial.key, "dataset": dict(setting.dataset)}
            end = score = pair.rows.ask(request, setting.limits, fit.payload)
    facts = made.answer or {}
    stored = {
        "id": trial.id,
        "release_id": item.id,
        "experiment": context.store.name,
        "key": {"release": item.key, **trial.key},
        "status": end.status,
        "phase": end.phase,
        "scores": _of(score, "scores", []),
        "fit": _of(fit, "notes", {}),
        "asked": {name: item.key["budget"][name] for name in ("epsilon", "delta")},
        "spent": facts.get("spent"),
        "nonprivate_inputs": facts.get("nonprivate_inputs", list(item.nonprivate_inputs)),
        "public": is_public(setting.dataset),
        "error": end.error,
        "provenance": {**context.provenance, "threads": threads()},
        "release_provenance": facts.get("provenance"),
        "runtime": _runtime(item, made, fit, score),
    }
    context.store.write_trial(stored)
    return result_of(stored)


def _request(do: str, item: ReleaseItem, context: Context) -> Message:
    return {"do": do, "store": [str(context.store.root), context.store.name], "id": item.id, "key": item.key}


def _of(reply: Reply | None, fact: str, default: Any) -> Any:
    """A fact of a request that was done."""
    return reply.answer[fact] if reply is not None and reply.status == "done" else default


def _runtime(item: ReleaseItem, made: Reply, fit: Reply | None, score: Reply | None) -> dict[str, float | None]:
    """Seconds of each phase and peak memory; what a release took is left out where it depends on a secret.

    The process that scores has made the release before: where that is secret, its memory is left out as well.
    """
    hidden = item.hide_runtime
    release = {"seconds": made.seconds.get("release"), "peak_mb": made.peak_mb}
    if "release" not in made.seconds and made.answer:  # it was stored
        release = made.answer.get("runtime", release)
    peaks = [reply.peak_mb for reply in (fit, None if hidden else score) if reply and reply.peak_mb is not None]
    return {
        "release_seconds": None if hidden else release["seconds"],
        "release_peak_mb": None if hidden else release["peak_mb"],
        "model_seconds": fit.seconds.get("model") if fit else None,
        "metrics_seconds": score.seconds.get("metrics") if score else None,
        "peak_mb": max(peaks, default=None),
    }
