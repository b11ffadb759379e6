"""`dpbench run` runs what is missing of a grid and prints its table; `dpbench slurm` submits it as an array."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from dpbench.commands.durations import durations
from dpbench.commands.progress import Board, Lines, Standing
from dpbench.commands.run_settings import check_asked, guard, recall, record
from dpbench.config import Experiment, compose, composed
from dpbench.errors import UserError
from dpbench.grid.fork_server import fork_here
from dpbench.grid.own_checks import NOT_CHECKED, unchecked
from dpbench.grid.plan import Plan, ReleaseItem, all_stays, make_plan, read_plan
from dpbench.grid.records import Trial, TrialKey
from dpbench.grid.releases import find_release
from dpbench.grid.runner import Options, Summary, default_jobs, missing
from dpbench.grid.runner import run as run_plan
from dpbench.grid.slurm import last_tasks, submit, write_array
from dpbench.grid.store import Store, of_other_code
from dpbench.grid.trial import FINISHED
from dpbench.targets import is_shipped, own_folder

FORKED_TRIALS = 1000  # at most in a plan of which workers are forked: its memory would count as theirs
BESIDE_PLAN = {"results", "jobs", "executor", "shards", "report"}  # settings that a frozen plan does not hold


@dataclass(frozen=True)
class Ran:
    """What a run left: its plan, where that is stored, and the trials by other versions of the code that it accepted.

    `ran`: how many trials ran now. `table`: what is stored under the first metric, as text.
    """

    plan: Plan
    store: Store
    accepted: Mapping[str, Trial]
    ran: int
    table: str

    @property
    def statuses(self) -> Counter[str]:
        """How many trials are stored with each status."""
        stored = self.store.trials.entries
        own = (str(entry.status) for entry in map(stored.get, self.plan.trial_ids) if entry is not None)
        return Counter([*own, *(trial.status for trial in self.accepted.values())])


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, and show where it stands; then the table.

    0 if every trial of the plan (or shard) is stored and ended well. Else 1, or 2 if there are failures and all of
    them were refused for the user's settings; with --plan, of a task, 2 says that it could not run.
    """
    recall(arguments)
    if arguments.show:
        return show(arguments)
    if arguments.dry_run:
        return dry_run(arguments)
    done = run_missing(arguments)
    plan, store, accepted = done.plan, done.store, done.accepted
    if done.table:
        print(done.table)
    statuses = done.statuses
    count = statuses.total()
    print(f"{count} of {len(plan.trial_ids)} trials are stored in {store.folder}; {done.ran} ran now")
    for note, names in _unchecked(plan, store).items():
        print(f"{', '.join(names)}: {note}")
    if accepted:
        print(f"{len(accepted)} of them are by other versions of the code (--other-code)")
    others = [*store.read_trials(_not_done(plan, store)), *accepted.values()] if statuses.keys() - {"done"} else []
    code = _outcome(others, len(plan.trial_ids) - count, plan)
    return min(code, 1) if arguments.plan else code


def run_missing(arguments: argparse.Namespace) -> Ran:
    """Run what is missing of the plan (or shard) that the settings make, with the progress on the standard error.

    Raises `UserError` for invalid settings or data; it notes how many trials are then missing.
    """
    plan, store, experiment = _plan_and_store(arguments)
    guard(setting.dataset for setting in plan.settings)
    store.prepare()
    with all_stays():
        store.trials.scan()
    if not arguments.plan:
        store.write_text(store.plan_file, plan.lines())
        record(experiment, store, arguments)
    if arguments.shard:
        plan = plan.shard(*_shard(arguments.shard))
    accepted = of_other_code(plan, store) if arguments.other_code else {}
    options = Options(
        jobs=experiment.jobs or default_jobs(),
        force=arguments.force,
        retry_failed=arguments.retry_failed,
        fail_fast=arguments.fail_fast,
    )
    rest, ran = plan.without(accepted) if accepted else plan, 0
    for _ in range(2):
        try:
            ran += _run_rest(rest, store, options, experiment, alone=arguments.alone)
        except BaseException as error:
            stored = store.trials.scan()
            _note_missing(error, sum(identity not in stored for identity in plan.trial_ids) - len(accepted), plan)
            raise
        table = _table(plan, store, accepted, experiment)
        if not store.trials.useless():
            break  # else records that cannot be read counted as stored: once more, for them
    return Ran(plan, store, accepted, ran, table)


def _not_done(plan: Plan, store: Store) -> Iterator[TrialKey]:
    """The keys of the stored trials that are not done."""
    stored = store.trials.entries
    return plan.keys(lambda identity: identity in stored and stored[identity].status != "done")


def _unchecked(plan: Plan, store: Store) -> dict[str, list[str]]:
    """The notes on own mechanisms that were not checked, each with the names of those."""
    found: dict[str, dict[str, None]] = {}
    for group in plan.groups:
        mechanism = group.item.key.mechanism
        if not is_shipped(mechanism.target):
            for shared in store.trials.shared(chain(*group.trial_ids)):
                for note in shared["nonprivate_inputs"]:
                    if note.startswith(NOT_CHECKED):
                        found.setdefault(note, {})[mechanism.name] = None
    return {note: sorted(names) for note, names in sorted(found.items())}


def _run_rest(plan: Plan, store: Store, options: Options, experiment: Experiment, *, alone: bool) -> int:
    """Run what is missing of the plan, here or on Dask, and show the progress; the number of trials that ran.

    `alone`: this process does nothing else. Of a plan that is large a fork would hold too much.
    """
    live, local = sys.stderr.isatty(), experiment.executor == "local"
    asked = {"force": options.force, "retry_failed": options.retry_failed}
    left = missing(plan, store, **asked)
    if left and local and alone and len(plan.trial_ids) <= FORKED_TRIALS and own_folder() is None:
        fork_here()

    def predicted() -> list[float]:
        return durations(experiment, plan, store, experiment.config_dir).predicted(left)

    standing = Standing(plan, left, store, predicted)
    with Board(standing, sys.stderr) if live else Lines(standing, sys.stderr) as progress:
        if local:
            return run_plan(plan, store, options, progress.show, left).ran
        return _on_dask(plan, left, predicted(), store, options, progress.show, experiment).ran


def _outcome(trials: Sequence[Trial], missing: int, plan: Plan) -> int:
    """Print what has no scores and why; the exit code. `trials`: those that are not done, and perhaps others."""
    failed = [trial for trial in trials if trial.status not in FINISHED]
    without = [trial for trial in trials if trial.status == "no_estimate"]
    if without:
        reason = without[0].error.message if without[0].error else ""
        have = "has" if len(without) == 1 else "have"
        print(f"{len(without)} of them {have} no estimate, such as {without[0].id}: {reason}")
    apart = sum(trial.status == "unconverged" for trial in trials)
    if apart:
        print(f"{apart} of them are unconverged: their Markov chains disagree, and no table has their values")
    _print_failures(failed)
    _print_missing(missing, plan)
    if failed and {trial.error.type if trial.error else "" for trial in failed} == {UserError.__name__}:
        return 2
    return 1 if failed or missing else 0


def _on_dask(
    plan: Plan,
    left: Sequence[ReleaseItem],
    seconds: Sequence[float],
    store: Store,
    options: Options,
    progress: Callable[[Summary], None],
    experiment: Experiment,
) -> Summary:
    """Run what is `left` of the plan in tasks that take about the same time."""
    from dpbench.grid import dask

    shards = plan.of(left).balanced(min(experiment.shards, len(left)), seconds)
    stored = len(plan.trial_ids) - sum(len(item.trials) for item in left)
    summary = Summary(len(plan.trial_ids), stored)
    executor, config_dir = experiment.executor, experiment.config_dir
    return dask.run(shards, store, options, summary, progress, executor=executor, config_dir=config_dir)


def _print_missing(count: int, plan: Plan) -> None:
    if count:
        print(f"dpbench: {_missing(count, plan)}", file=sys.stderr)


def _note_missing(error: BaseException, count: int, plan: Plan) -> None:
    """For whoever prints the error: after the reason."""
    if count:
        error.add_note(_missing(count, plan))


def _missing(count: int, plan: Plan) -> str:
    return f"{count} of {len(plan.trial_ids)} trials are missing"


def dry_run(arguments: argparse.Namespace) -> int:
    """Say how many trials and releases there are, how many are stored, and how long the others take."""
    plan, store, experiment = _plan_and_store(arguments)
    if arguments.shard:
        plan = plan.shard(*_shard(arguments.shard))
    with all_stays():
        stored = store.trials.scan()
    store.releases.scan()
    releases = sum(find_release(store, item.key.id) is not None for item in plan.releases)
    print(f"experiment {plan.name}: limits {plan.limits}, results in {store.folder}")
    to_run = missing(plan, store, force=arguments.force, retry_failed=arguments.retry_failed)
    known = durations(experiment, plan, store, arguments.config_dir)
    print(f"trials:   {_counts(plan.trial_ids, stored, known.exported)}")
    print(f"releases: {len(plan.releases):,} planned, {releases:,} stored here")
    for mechanism, count in Counter(item.key.mechanism.name for item in to_run).items():
        print(f"  to run: {mechanism}, {count:,} releases")
    if to_run:
        seconds, unknown = known.total(to_run)
        hours = f"{seconds / 3600:.2f} on one core"
        if known.exported:
            rest, _ = known.total(plan.of(to_run).without(known.exported).releases)
            hours = f"{rest / 3600:.2f} on one core for what the export does not have, {seconds / 3600:.2f} for all"
        print(f"hours:    {hours if seconds else 'not known: no trial like these is stored or exported'}")
        if unknown and seconds:
            print(f"  {unknown:,} releases and fits are not in them: no seconds of theirs are stored")
    return 0


def _counts(planned: Sequence[str], stored: Container[str], exported: Collection[str]) -> str:
    """How many of the planned trials are stored and, if any is, how many are in an export."""
    counts = f"{len(planned):,} planned, {sum(identity in stored for identity in planned):,} stored here"
    return counts + (f", {len(exported):,} in the export" if exported else "")


def show(arguments: argparse.Namespace) -> int:
    """Show the composed configuration."""
    import yaml

    print(yaml.safe_dump(composed(arguments.overrides, arguments.config_dir), sort_keys=False), end="")
    return 0


def _plan_and_store(arguments: argparse.Namespace) -> tuple[Plan, Store, Experiment]:
    if not arguments.plan:
        check_asked(arguments)
    names = (item.lstrip("+~").split("=")[0].split(".")[0] for item in arguments.overrides)
    if arguments.plan and (unused := sorted(set(names) - BESIDE_PLAN)):
        raise UserError(
            f"{arguments.plan} holds the settings of its trials, and {', '.join(unused)} of this line would be left "
            f"out; with --plan give {', '.join(sorted(BESIDE_PLAN))} alone"
        )
    experiment = compose(arguments.overrides, arguments.config_dir)
    plan = read_plan(arguments.plan) if arguments.plan else make_plan(experiment)
    plan = unchecked(plan) if arguments.unchecked else plan
    asked, metrics = {part.name for part in experiment.metrics}, experiment.report["metrics"]
    store = Store(experiment.results, plan.name, next((name for name in metrics if name in asked), metrics[0]))
    return plan, store, experiment


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    i, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= i <= n:
        raise UserError(f"--shard takes I/N with 1 <= I <= N, such as 1/4, not {text!r}")
    return i, n


def _table(plan: Plan, store: Store, accepted: Mapping[str, Trial], experiment: Experiment) -> str:
    """What is stored of the plan, under its first metric that has any score; "" if nothing is.

    Records that cannot be read as trials count as not stored from now on.
    """
    from dpbench.report.frames.by_setting import by_setting, stored_by_setting
    from dpbench.report.frames.frame import joined_frame, rows_of_groups
    from dpbench.report.tables.cells import terminal_table

    report, others, shown = experiment.report, by_setting(accepted.values()), store.metric
    with all_stays():
        groups = [*stored_by_setting(plan, store), *others]
        if not any(shown in group.scored for group in groups):
            trials = chain(store.read_trials(plan.trials), accepted.values())
            scored = {score.name for trial in trials for score in trial.scores}
            known = scored or {metric.name for group in groups for metric in group.key.metrics}
            shown = next((name for name in report["metrics"] if name in known), min(known, default=shown))
            groups = [*stored_by_setting(plan, replace(store, metric=shown)), *others]
        return terminal_table(joined_frame([rows_of_groups(groups)]), report["labels"], shown) if groups else ""


def _print_failures(failed: list[Trial]) -> None:
    """The distinct messages of failed trials, each once with its count."""
    messages = Counter((trial.status, trial.phase, trial.error.message if trial.error else "") for trial in failed)
    for (status, phase, message), count in messages.most_common():
        trials = "1 trial" if count == 1 else f"{count} trials"
        print(f"dpbench: {trials} {status} in {phase}: {message}", file=sys.stderr)
    if failed:
        first = f"dpbench log {failed[0].id} shows what the first one printed"
        print(f"dpbench: --retry-failed runs them again; {first}", file=sys.stderr)


def slurm(arguments: argparse.Namespace) -> int:
    """Share out what is missing of the plan among tasks that take about the same time, and submit them unless --print.

    What tasks that wait or run are to do is not submitted again.
    """
    recall(arguments)
    check_asked(arguments)
    experiment = compose(arguments.overrides, arguments.config_dir)
    plan, store = make_plan(experiment), Store(experiment.results, experiment.name)
    plan = unchecked(plan) if arguments.unchecked else plan
    if experiment.shards > len(plan.releases):
        raise UserError(f"shards={experiment.shards}, but the plan has only {len(plan.releases)} releases to share out")
    guard(setting.dataset for setting in plan.settings)
    store.prepare()
    stored = store.trials.scan()
    tasks = last_tasks(store, [identity for identity in plan.trial_ids if identity not in stored])
    active = {identity: task for identity, task in tasks.items() if task.active}
    store.write_text(store.plan_file, plan.lines())
    record(experiment, store, arguments)
    jobs = ", ".join(sorted({task.job for task in active.values()}))
    others = f"; {len(active)} are left to tasks of job {jobs} that wait or run" if active else ""
    left = plan.without({*stored, *active})
    if not left.releases:
        print(f"nothing is submitted: no trial of {len(plan.trial_ids)} is missing{others}")
        return 0
    seconds = durations(experiment, plan, store, arguments.config_dir).predicted(left.releases)
    shards = left.balanced(min(experiment.shards, len(left.releases)), seconds)
    script = write_array(shards, store, options=experiment.slurm, config_dir=arguments.config_dir)
    if arguments.print_only:
        print(script.read_text(), end="")
        return 0
    job = submit(script, store, len(shards))
    print(f"job {job}: {len(shards)} tasks for {len(left.trial_ids)} trials{others}")
    print(f"the script is {script}; dpbench status results={experiment.results} shows its progress")
    return 0
