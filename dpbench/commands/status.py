"""`dpbench status`: what is stored of each experiment, and where the tasks on SLURM are that run the rest."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from dpbench.commands.run_settings import recall
from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.plan import all_stays, read_plan
from dpbench.grid.slurm import last_tasks
from dpbench.grid.store import Store, of_other_code
from dpbench.report.export_file import count_exported, exports_in


def status(arguments: argparse.Namespace) -> int:
    """Say, for each experiment of the results folder or for the one named, how many trials are stored and failed.

    Trials that are missing, but stored by other versions of the code, are counted apart. Of those that were submitted
    to SLURM and are not stored, it says how their tasks ended.
    """
    recall(arguments, settings=False)  # it needs none of them
    if any(item.startswith("paper=") for item in arguments.overrides):
        raise UserError(
            "a paper's folder holds an export and no run: dpbench figures and dpbench report show what is in it"
        )
    experiment = compose(arguments.overrides, arguments.config_dir)
    root, one = experiment.results, any(item.startswith(("name=", "experiment=")) for item in arguments.overrides)
    folders = sorted(root.glob(experiment.name if one else "*"))
    plans = [folder / "plan.jsonl" for folder in folders if (folder / "plan.jsonl").is_file()]
    exports = {folder: found for folder in folders if (found := exports_in(folder))}
    if not plans and not exports:
        print(f"nothing was run in {root / experiment.name if one else root} yet")
    for path in plans:
        try:
            _print_status(root, path)
        except UserError as error:
            if one:
                raise
            print(
                f"{path.parent.name}: {error}; the same line as before runs what is missing, and writes the plan again"
            )
    for folder, paths in exports.items():
        if folder / "plan.jsonl" not in plans:
            print(f"{folder.name}: {_counted(paths)} in an export; dpbench figures {folder} draws them")
    return 0


def _counted(exports: Iterable[Path]) -> str:
    try:
        return f"{sum(map(count_exported, exports)):,} trials"
    except UserError as error:
        return f"trials that cannot be counted ({error})"


def _print_status(root: Path, path: Path) -> None:
    plan = read_plan(path)
    store = Store(root, path.parent.name)  # as the folder is called now
    with all_stays():
        stored, planned = store.trials.scan(), plan.trial_ids
    counts = Counter(str(stored[identity].status) for identity in planned if identity in stored)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none stored"
    left = [identity for identity in planned if identity not in stored]
    print(f"{store.name}: {len(planned)} trials planned (limits {plan.limits}), {states}, {len(left)} left")
    if other := of_other_code(plan, store):
        print(f"  {len(other)} of those left are stored by other versions of the code; --other-code accepts them")
    _print_tasks(store, left)


def _print_tasks(store: Store, left: Collection[str]) -> None:
    """The tasks of each array that were to run what is left, by state; then how many trials nobody is to run."""
    try:
        tasks = last_tasks(store, left)
    except UserError as error:
        print(f"  {error}")
        return
    counts = Counter(tasks.values())
    for job in dict.fromkeys(task.job for task in counts):
        own = {task: count for task, count in counts.items() if task.job == job}
        states = []
        for state in sorted({task.state for task in own}):
            alike = {task.number: count for task, count in own.items() if task.state == state}
            states.append(f"{sum(alike.values())} {state} ({_listed(alike)})")
        print(f"  SLURM job {job}: of those left, {', '.join(states)}")
    missing = len(left) - sum(count for task, count in counts.items() if task.active)
    if counts and missing:
        print(f"  {missing} are missing: dpbench slurm with the same settings submits them")


def _listed(numbers: Iterable[int]) -> str:
    """Tasks by their numbers.

    >>> _listed([3]), _listed([9, 1, 2, 3])
    ('task 3', 'tasks 1-3,9')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    text = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return f"task {text}" if text.isdigit() else f"tasks {text}"
