"""`dpbench slurm`: an array of tasks that runs what is missing of a grid."""

from __future__ import annotations

import argparse

from dpbench.commands.durations import durations
from dpbench.commands.run_settings import check_asked, guard, recall, record
from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.own_checks import unchecked
from dpbench.grid.plan import make_plan
from dpbench.grid.slurm import submit, write_array
from dpbench.grid.slurm_tasks import last_tasks
from dpbench.grid.store import Store


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
