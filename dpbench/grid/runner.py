"""Running a plan with joblib: what is stored stays, and what is missing runs."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dpbench.grid.own_checks import check_own
from dpbench.grid.plan import Plan, ReleaseItem
from dpbench.grid.provenance import provenance
from dpbench.grid.release_claims import Claims
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.grid.trial import FINISHED, Context, Outcome, Result, check_data, run_batch

BATCH_SECONDS = 0.25  # of work that is handed over at once, if it is known to take no longer
BATCH = 8  # releases in a batch at most; as many as a process keeps splits of the rows
SYNC_SECONDS = 1.0
LOOK_SECONDS = 0.5  # until what another runner was at work on is looked at again
SAY_SECONDS = 60.0  # of waiting for other runners, until it is said whom for, and said again

log = logging.getLogger(__name__)


@dataclass
class Summary:
    """What a run did: trials planned, stored before, run now, and the failures with their messages."""

    planned: int
    stored: int
    ran: int = 0
    failures: list[Result] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """How a plan is run; nothing here changes a result."""

    jobs: int
    force: bool = False
    retry_failed: bool = False
    fail_fast: bool = False


def missing(plan: Plan, store: Store, *, force: bool = False, retry_failed: bool = False) -> list[ReleaseItem]:
    """The releases with the trials on them that are still to run."""
    if force:
        return list(plan.releases)
    entries = store.trials.scan()
    if retry_failed:
        entries = {identity: entry for identity, entry in entries.items() if entry.status in FINISHED}
    return list(plan.without(entries).releases)


def run(
    plan: Plan,
    store: Store,
    options: Options,
    progress: Callable[[Summary], None],
    left: Sequence[ReleaseItem] | None = None,
) -> Summary:
    """Run what is missing of the plan, together with whoever else runs it; `progress` is called after each batch.
    `left`: what `missing` found, if it was asked.

    Results are on the disk, and claims withdrawn, a second after they are written, and when the run ends.
    Raises `StoreError` if the results cannot be written, `UserError` if the data cannot be used.
    """
    items = missing(plan, store, force=options.force, retry_failed=options.retry_failed) if left is None else left
    waiting = sum(len(item.trials) for item in items)
    summary = Summary(planned=len(plan.trial_ids), stored=len(plan.trial_ids) - waiting)
    if not items:
        if any(store.claims_folder.iterdir()):  # of a runner that was killed when all was stored
            Claims(store).close()
        progress(summary)
        return summary
    claims = Claims(store)
    context = Context(store, plan.settings, provenance(), claims, plan.codes, options.force, options.retry_failed)
    settled, claimed = time.monotonic(), list[str]()
    try:
        absent = check_data(plan, context)
        items = [item for item in items if item.setting not in absent]
        items, refused = check_own(items, plan, store)
        context, batches = replace(context, refused=refused), Batches(items)
        progress(summary)
        for kind, outcome in _execute(batches, context, options.jobs):
            batches.learn(kind, outcome)
            summary.stored += outcome.stored
            summary.ran += len(outcome.ran)
            summary.failures += [result for result in outcome.ran if result[1] not in FINISHED]
            claimed += outcome.claimed
            progress(summary)
            if options.fail_fast and summary.failures:
                break
            if time.monotonic() - settled > SYNC_SECONDS:
                _settle(context, claimed)
                settled = time.monotonic()
        _settle(context, claimed)
    finally:
        context.pool.close()
        claims.close()
    return summary


def _settle(context: Context, claimed: list[str]) -> None:
    with context.store.writing(context.store.folder):
        context.store.releases.sync()
        context.store.trials.sync()
    context.claims.give_back(claimed)
    claimed.clear()


Kind = tuple[int, str, int]


class Batches:
    """The releases to run, in batches of one kind: as many as take little time, once it is known what one takes.

    All that is run on one data set and on as many splits as a process keeps comes together: what is computed of a split
    once serves every mechanism. Among these larger budgets come first: adaptive mechanisms run longer with them, and a
    long job at the end leaves workers idle. Those that another runner is at work on come last, again and again until
    they are stored or it is gone.
    """

    def __init__(self, items: Iterable[ReleaseItem]) -> None:
        places: dict[tuple[int, str], int] = {}

        def turn(item: ReleaseItem) -> tuple[int, int, float]:
            place = places.setdefault((item.setting, canonical(item.key.split)), len(places))
            return place, item.key.repetition // BATCH, -item.key.budget.epsilon

        self._waiting = deque(sorted(items, key=turn))
        self._taken: list[ReleaseItem] = []
        self._seconds: dict[Kind, float] = {}

    def __iter__(self) -> Iterator[tuple[Kind, list[ReleaseItem], bool]]:
        """The kind and the releases of a batch, and whether it is cheap."""
        while self._waiting:
            kind = self._kind(self._waiting[0])
            seconds = self._seconds.get(kind, BATCH_SECONDS)
            most, batch = min(max(int(BATCH_SECONDS / seconds), 1), BATCH), list[ReleaseItem]()
            while self._waiting and len(batch) < most and self._kind(self._waiting[0]) == kind:
                batch.append(self._waiting.popleft())
            yield kind, batch, seconds < BATCH_SECONDS

    def learn(self, kind: Kind, outcome: Outcome) -> None:
        """What became of a batch."""
        if outcome.ran:
            self._seconds[kind] = outcome.seconds
        self._taken += outcome.taken

    def again(self) -> list[str]:
        """Have those come again that were taken: their ids."""
        self._waiting += self._taken
        self._taken = []
        return [item.key.id for item in self._waiting]

    @staticmethod
    def _kind(item: ReleaseItem) -> Kind:
        return item.setting, item.key.mechanism.name, len(item.trials)


def _execute(batches: Batches, context: Context, jobs: int) -> Iterator[tuple[Kind, Outcome]]:
    """The outcome of each batch as it comes, with a thread for each job that supervises the processes at work on it."""

    def run_one(kind: Kind, items: Sequence[ReleaseItem], cheap: bool) -> tuple[Kind, Outcome]:
        return kind, run_batch(items, context, together=cheap)

    if jobs > 1:
        from joblib import Parallel, delayed

        work = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", backend="threading")
    said = time.monotonic()
    while True:
        one_by_one = (run_one(*batch) for batch in batches)
        for kind, outcome in one_by_one if jobs == 1 else work(delayed(run_one)(*batch) for batch in batches):
            said = time.monotonic() if outcome.ran or outcome.stored else said
            yield kind, outcome
        if not (taken := batches.again()):
            return
        if time.monotonic() - said > SAY_SECONDS:
            holders = context.claims.holders(taken)
            log.warning("waiting for %d releases that others are at work on: %s", len(taken), holders)
            said = time.monotonic()
        time.sleep(LOOK_SECONDS)


def default_jobs() -> int:
    """One worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
