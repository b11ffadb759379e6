"""Releases and the trials on them, as their supervisor sees them: who does what, and what is stored of it."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpbench.errors import UserError, WorkersLostError
from dpbench.grid.channel import Answer, Message, Took
from dpbench.grid.fits import read_header
from dpbench.grid.log_file import warn
from dpbench.grid.plan import Plan, ReleaseItem, Setting
from dpbench.grid.process import Pair, Pool, Reply
from dpbench.grid.provenance import Provenance
from dpbench.grid.records import (
    Failure,
    ReleaseKey,
    Runtime,
    Trial,
    TrialKey,
    score_from_dict,
    spent_from_dict,
    spent_to_dict,
)
from dpbench.grid.release_claims import Claims
from dpbench.grid.releases import find_release
from dpbench.grid.spending import OverspentError, cost_of_record
from dpbench.grid.store import Store
from dpbench.resources import threads

log = logging.getLogger(__name__)

FINISHED = ("done", "no_estimate", "unconverged")  # statuses that another run would give again
CHECKS = 2  # times that data are loaded by processes that are killed
Result = tuple[str, str, str]  # trial id, status, message
Work = tuple[TrialKey, ReleaseItem, Reply]  # a trial to do, and how its release ended


@dataclass(frozen=True)
class Context:
    """What all supervisors of a run share; `refused`: releases that are not made, by id, and why."""

    store: Store
    settings: tuple[Setting, ...]
    provenance: Provenance
    claims: Claims
    codes: Mapping[str, str]
    force: bool = False
    retry_failed: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    pool: Pool = field(default_factory=Pool)

    def stored(self, key: TrialKey) -> bool:
        """Whether the trial need not run, by what was last seen of the store."""
        entry = self.store.trials.entries.get(key.id)
        return entry is not None and not self.force and (not self.retry_failed or entry.status in FINISHED)


@dataclass(frozen=True)
class Outcome:
    """What came of a batch: results of trials that ran, how many others had stored, and what others are at work on.

    `claimed`: the ids of the releases that were claimed. `seconds`: how long a release and its trials took.
    """

    ran: list[Result]
    stored: int
    taken: list[ReleaseItem]
    claimed: list[str]
    seconds: float


def check_data(plan: Plan, context: Context) -> set[int]:
    """Load and split all data once: an invalid input is named before any trial runs, and the owner of a table warned.
    The places of the settings whose data cannot be had, where those of others can.

    Raises `UserError` if no data can be had, or some do not fit their declaration or leave a part of the split empty,
    and `WorkersLostError` if processes died as they loaded them.
    """
    absent: dict[int, str] = {}
    firsts = {group.item.setting: next(group.items()) for group in reversed(plan.groups)}
    with context.pool.pair() as pair:
        for place, item in sorted(firsts.items()):
            setting = plan.settings[place]
            own = (group.item.key.budget for group in plan.groups if group.item.setting == place)
            budgets = [(budget.epsilon, budget.delta) for budget in dict.fromkeys(own) if math.isfinite(budget.epsilon)]
            message = {**_message("check", setting, context), "budgets": budgets}
            for _ in range(CHECKS):
                (reply,) = pair.rows.ask(message, [{"key": item.key.to_dict()}], setting.limits)
                if reply.status != "crashed":
                    break
            if reply.answer.get("absent"):
                absent[place] = reply.answer["user_error"]
                continue
            if "user_error" in reply.answer:
                raise UserError(reply.answer["user_error"])
            for line in reply.answer.get("cautions", []):
                log.warning("dataset=%s: %s", setting.dataset.name, line)
            if reply.error is not None:
                kind = WorkersLostError if reply.status == "crashed" else UserError
                raise kind(f"dataset={setting.dataset.name} cannot be loaded: {reply.error.message}")
    if absent.keys() == firsts.keys():
        raise UserError(absent[min(absent)])
    if absent:
        names = dict.fromkeys(plan.settings[place].dataset.name for place in sorted(absent))
        log.warning(
            "left out, as their files are not here and cannot be downloaded: %s; get them with `dpbench data fetch %s`",
            *(", ".join(names), " ".join(names)),
        )
    return set(absent)


def run_batch(items: Sequence[ReleaseItem], context: Context, *, together: bool = False) -> Outcome:
    """Have releases of one setting made (or found, if they are stored) and their trials run, and store these.

    Each trial is stored as soon as it ends, or, `together`, all at the end: for trials of so little work that to hand
    them over one by one would take longer. Releases that other runners are at work on are left to them.
    Any thread may call it: the work is done in processes of its own.
    Raises `StoreError` if the results cannot be written.
    """
    start, claimed = time.monotonic(), [context.claims.take(item.key.id) for item in items]
    taken = [item for item, mine in zip(items, claimed, strict=True) if not mine]
    mine = [item for item, mine in zip(items, claimed, strict=True) if mine]
    wanted, ran = list(_wanted(mine, context)) if mine else [], list[Result]()
    if wanted:
        with context.pool.pair() as pair:
            made = _releases(wanted, context, pair)
            work = [(key, item, reply) for item, reply in zip(wanted, made, strict=True) for key in item.trials]
            for one in [work] if together else [[one] for one in work]:
                ran += _trials(one, context, pair)
    stored = sum(len(item.trials) for item in mine) - len(ran)
    return Outcome(ran, stored, taken, [item.key.id for item in mine], (time.monotonic() - start) / max(len(wanted), 1))


def _wanted(items: Sequence[ReleaseItem], context: Context) -> Iterator[ReleaseItem]:
    """The releases with the trials that nobody has stored by now."""
    for log in (context.store.trials, context.store.releases, context.store.fits, context.store.printed):
        log.scan()
    for item in items:
        if trials := tuple(key for key in item.trials if not context.stored(key)):
            yield replace(item, trials=trials)


def _releases(items: Sequence[ReleaseItem], context: Context, pair: Pair) -> list[Reply]:
    """How the release of each item ended."""
    reasons = [context.refused.get(item.key.id) for item in items]
    made = iter(_made([item for item, why in zip(items, reasons, strict=True) if not why], context, pair))
    return [Reply("failed", "check", Failure("ContractError", why)) if why else next(made) for why in reasons]


def _made(items: Sequence[ReleaseItem], context: Context, pair: Pair) -> list[Reply]:
    """How those ended that are not refused."""
    if not items:
        return []
    setting, log = context.settings[items[0].setting], context.store.releases
    requests: list[Message] = [
        {
            "key": item.key.to_dict(),
            "place": None if context.force else find_release(context.store, item.key.id),
            "turn": log.next_turn(item.key.id),
            "offers": list(item.offers),
            "nonprivate_inputs": list(item.nonprivate_inputs),
            "hidden": item.hide_runtime,
        }
        for item in items
    ]
    message = {**_message("release", setting, context), "provenance": {**context.provenance, "threads": threads()}}
    replies = pair.rows.ask(message, requests, setting.limits)
    for request, item, reply in zip(requests, items, replies, strict=True):
        if reply.status == "done" and "release" not in reply.seconds:
            continue  # it was stored
        if request["place"] is not None:
            warn(context.store.root / "releases" / request["place"][0], f"holds {item.key.id} damaged or changed")
        context.store.write_printed(item.key.id, reply.printed)
    places = [reply.answer["place"] for reply in replies if reply.status == "done"]
    log.unsynced.update(name for name, _, length in places if length)
    log.scan()
    return [_paid(item.key, reply, context) for item, reply in zip(items, replies, strict=True)]


def _paid(key: ReleaseKey, reply: Reply, context: Context) -> Reply:
    """How a release ended, by what its stored ledger costs: computed here, where no mechanism has run."""
    if reply.status != "done":
        return reply
    record = next(context.store.releases.records([key.id]), None)
    try:
        if record is None:
            raise OverspentError("the release was removed while it was in use")
        spent = spent_to_dict(cost_of_record(record, key))
    except OverspentError as error:
        failure, known = Failure(type(error).__name__, str(error)), reply.answer.copy()
        known.pop("spent", None)  # what the other process says
        return replace(reply, status="failed", phase="budget", error=failure, answer=known)
    return replace(reply, answer={**reply.answer, "spent": spent})


def _trials(work: Sequence[Work], context: Context, pair: Pair) -> list[Result]:
    """Have models fitted and the fits scored; the trials are stored."""
    setting = context.settings[work[0][1].setting]
    fits = _fits(work, context, pair)
    requests: dict[int, Message] = {}
    for i, ((key, _, made), fit) in enumerate(zip(work, fits, strict=True)):
        if fit is not None and fit.status == "done":
            places = {"release": made.answer["place"], "fit": fit.answer["place"]}
            requests[i] = {"key": key.to_dict(), **places}
    replies = pair.rows.ask(_message("metrics", setting, context), [*requests.values()], setting.limits)
    scores = dict(zip(requests, replies, strict=True))
    for i, reply in scores.items():
        context.store.write_printed(work[i][0].id, reply.printed)
    trials = [_trial(*one, fits[i], scores.get(i), context) for i, one in enumerate(work)]
    for trial in trials:
        context.store.write_trial(trial)
    return [(trial.id, trial.status, trial.error.message if trial.error else "") for trial in trials]


def _fits(work: Sequence[Work], context: Context, pair: Pair) -> list[Reply | None]:
    """The fits: one that is stored, as if it had just been made, or a new one; None where there is no release."""
    setting, log = context.settings[work[0][1].setting], context.store.fits
    fits: list[Reply | None] = [None] * len(work)
    requests: dict[int, Message] = {}
    for i, (key, _, made) in enumerate(work):
        if made.status != "done":
            continue
        found = None if context.force else read_header(context.store, key.fit, made.answer["arrays_sha256"])
        if found is None:
            place, turn = made.answer["place"], log.next_turn(key.fit.id)
            requests[i] = {"key": key.fit.to_dict(), "release": place, "turn": turn}
        else:
            runtime, answer = found[0]["runtime"], Answer(notes=found[0]["notes"], place=found[1])
            fits[i] = Reply("done", seconds={"model": runtime["seconds"]}, peak_mb=runtime["peak_mb"], answer=answer)
    replies = pair.model.ask(_message("model", setting, context), [*requests.values()], setting.limits)
    for i, reply in zip(requests, replies, strict=True):
        context.store.write_printed(work[i][0].fit.id, reply.printed)
        fits[i] = reply
    return fits


def _trial(
    key: TrialKey, item: ReleaseItem, made: Reply, fit: Reply | None, score: Reply | None, context: Context
) -> Trial:
    end, facts = score or fit or made, made.answer
    return Trial(
        id=key.id,
        release_id=key.release.id,
        key=key,
        experiment=context.store.name,
        status=end.status,
        phase=end.phase,
        scores=tuple(map(score_from_dict, end.answer["scores"])) if end.status == "done" else (),
        notes=facts.get("reported", {}) | (fit.answer["notes"] if fit is not None and fit.status == "done" else {}),
        spent=spent_from_dict(facts["spent"]) if "spent" in facts else None,
        nonprivate_inputs=tuple(dict.fromkeys([*facts.get("nonprivate_inputs", ()), *item.nonprivate_inputs])),
        public=context.settings[item.setting].dataset.public,
        error=end.error,
        provenance={**context.provenance, "threads": threads()},
        release_provenance=facts.get("provenance"),
        runtime=_runtime(item, made, fit, score),
    )


def _message(do: str, setting: Setting, context: Context) -> Message:
    """What all requests of a batch have in common. The dataset's config is a text, which is a key of what is kept."""
    place = [str(context.store.root), context.store.name]
    dataset = json.dumps(setting.dataset.config)
    return {"do": do, "store": place, "dataset": dataset, "codes": dict(context.codes)}


def _runtime(item: ReleaseItem, made: Reply, fit: Reply | None, score: Reply | None) -> Runtime:
    """Seconds of each phase and peak memory; what a release took is left out where it depends on a secret.

    The process that scores has made the release before: where that is secret, its memory is left out as well.
    """
    hidden = item.hide_runtime or made.answer.get("hidden", False)
    release: Took = {"seconds": made.seconds.get("release"), "peak_mb": made.peak_mb}
    if "release" not in made.seconds:  # it was stored
        release = made.answer.get("runtime", release)
    peaks = [reply.peak_mb for reply in (fit, None if hidden else score) if reply and reply.peak_mb is not None]
    return Runtime(
        release_seconds=None if hidden else release["seconds"],
        release_peak_mb=None if hidden else release["peak_mb"],
        model_seconds=fit.seconds.get("model") if fit else None,
        metrics_seconds=score.seconds.get("metrics") if score else None,
        peak_mb=max(peaks, default=None),
    )
