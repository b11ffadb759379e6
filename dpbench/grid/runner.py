"""Running a plan with joblib: what is stored stays, and what is missing runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dpbench.grid.plan import Plan, ReleaseItem
from dpbench.grid.pool import pool_of
from dpbench.grid.provenance import provenance
from dpbench.grid.store import Store
from dpbench.grid.trial import Context, Result, check_data, run_item

FINISHED = ("done", "no_estimate")  # statuses that another run would give again


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
    stored = store.trial_ids()
    if retry_failed:
        kept = (store.read_trial(identity) for identity in plan.trial_ids if identity in stored)
        stored = {trial["id"] for trial in kept if trial is not None and trial["status"] in FINISHED}
    return list(plan.without(stored).releases)


def run(plan: Plan, store: Store, options: Options, progress: Callable[[Summary], None]) -> Summary:
    """Run what is missing of the plan; `progress` is called after each release.

    Raises `StoreError` if the results cannot be written, `UserError` if the data cannot be used.
    """
    items = missing(plan, store, force=options.force, retry_failed=options.retry_failed)
    context = Context(store, plan.settings, provenance(), options.force, options.retry_failed)
    waiting = sum(len(item.trials) for item in items)
    summary = Summary(planned=len(plan.trial_ids), stored=len(plan.trial_ids) - waiting)
    try:
        if items:
            check_data(plan, context)
        progress(summary)
        for results in _execute(_longest_first(items), context, options.jobs):
            summary.ran += len(results)
            summary.failures += [result for result in results if result[1] not in FINISHED]
            progress(summary)
            if options.fail_fast and summary.failures:
                break
    finally:
        pool_of(context.run).close()
    return summary


def _longest_first(items: Sequence[ReleaseItem]) -> list[ReleaseItem]:
    """Larger budgets first: adaptive mechanisms run longer with them, and a long job at the end leaves workers idle."""
    return sorted(items, key=lambda item: -float(item.key["budget"]["epsilon"]))


def _execute(items: Sequence[ReleaseItem], context: Context, jobs: int) -> Iterator[list[Result]]:
    """The results of each item as they come, with a thread for each job that supervises the processes of its items."""
    if jobs == 1 or len(items) <= 1:
        yield from (run_item(item, context) for item in items)
        return
    from joblib import Parallel, delayed

    work = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", backend="threading")
    yield from work(delayed(run_item)(item, context) for item in items)


def default_jobs() -> int:
    """One worker a core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
