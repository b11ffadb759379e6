"""A SLURM array that runs a plan, a part of it in each task by the same command, and what SLURM says of its tasks."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpbench.config.schema import Slurm
from dpbench.errors import UserError
from dpbench.grid.plan import Plan, read_plan
from dpbench.grid.seeds import digest
from dpbench.grid.store import Store
from dpbench.grid.task import arguments, variables

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
ENDED = {  # of the states of squeue(1); a job in any other state has a node
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "PREEMPTED": "preempted",
    "TIMEOUT": "timed out",
    "DEADLINE": "timed out",
    "OUT_OF_MEMORY": "out of memory",
    "NODE_FAIL": "ended with its node",
    "BOOT_FAIL": "ended with its node",
}
KILLED = re.compile(rb"\*\*\* JOB \S+ ON \S+ CANCELLED AT \S+( DUE TO TIME LIMIT)?")  # slurmstepd in a task's log
TAIL_BYTES = 8192
ANSWER_SECONDS = 60.0
States = dict[tuple[str, int], str]  # (job, task) -> state as SLURM writes it


def write_array(shards: Sequence[Plan], store: Store, *, options: Slurm, config_dir: Path | None) -> Path:
    """Write the shards of a plan, and the sbatch script that runs a task on each; the script's path."""
    folder = jobs_file(store).parent / digest([shard.trial_ids for shard in shards])
    folder.mkdir(parents=True, exist_ok=True)
    for number, shard in enumerate(shards, 1):
        store.write_text(shard_file(folder, number), shard.lines())
    store.write_text(folder / "array.sh", script(folder, store, len(shards), options, config_dir))
    return folder / "array.sh"


def _is_command(line: str) -> bool:
    """Whether a line stands after the options: sbatch reads none after a command."""
    return not line.startswith("#SBATCH")


def script(folder: Path, store: Store, tasks: int, options: Slurm, config_dir: Path | None) -> str:
    """The text of the array script. A task starts in the folder of now, with the variables and the Python of now."""
    folder = folder.resolve()
    own = {
        "job-name": job_name(store),
        "array": f"1-{tasks}" + (f"%{options.throttle}" if options.throttle else ""),
        "output": f"{str(folder).replace('%', '%%')}/%A_%a.log",
    }
    command = [sys.executable, *arguments(store, config_dir)]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{name}={shlex.quote(str(value))}" for name, value in {**own, **options.options}.items()),
            "#SBATCH --requeue",
            *sorted(options.lines, key=_is_command),
            f"cd {shlex.quote(str(Path.cwd()))} || exit",
            *(f"export {name}={shlex.quote(value)}" for name, value in variables().items()),
            f'exec {shlex.join(command)} --plan {shlex.quote(str(folder))}/shard-"$SLURM_ARRAY_TASK_ID".jsonl'
            ' jobs="${SLURM_CPUS_PER_TASK:-1}"',
            "",
        ]
    )


def submit(path: Path, store: Store, tasks: int) -> str:
    """Hand the script to sbatch, and note its job for `last_tasks`; the job.

    Raises `UserError` if there is no sbatch, or it refuses.
    """
    if shutil.which("sbatch") is None:
        raise UserError(f"sbatch is not on the PATH; the script is {path}: submit it on a SLURM login node")
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"sbatch refused {path}: {done.stderr.strip() or done.stdout.strip()}")
    job = done.stdout.strip().split(";")[0]  # a federation's answer has the cluster too
    add_job(store, job, path.parent, tasks)
    return job


@dataclass(frozen=True)
class Task:
    """The task `number` of the array `job`, in the folder of its shards and logs; its state in words."""

    job: str
    number: int
    folder: Path
    state: str = "no longer known to SLURM"

    @property
    def shard(self) -> Path:
        """Its part of the plan."""
        return shard_file(self.folder, self.number)

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("pending", "running")


def shard_file(folder: Path, number: int) -> Path:
    """The part of the plan that the task of this number runs."""
    return folder / f"shard-{number}.jsonl"


def jobs_file(store: Store) -> Path:
    """The arrays of an experiment that were submitted: a line each with the job, its folder and number of tasks."""
    return store.folder / "slurm" / "jobs.jsonl"


def job_name(store: Store) -> str:
    """The name by which SLURM knows the arrays of an experiment."""
    return f"dpbench-{store.name}"


def last_tasks(store: Store, trials: Collection[str]) -> dict[str, Task]:
    """Of these trials, those that were submitted, each with the last task that was to run it.

    Raises `UserError` if they were, and squeue is not there or does not answer.
    """
    left, found = set(trials), dict[str, Task]()
    if not left or not jobs_file(store).exists():
        return found
    for task in _submitted(store):
        if task.shard.exists():
            found |= dict.fromkeys(left.intersection(read_plan(task.shard).trial_ids), task)
    known = _with_states(store, set(found.values()))
    return {identity: known[task] for identity, task in found.items()}


def add_job(store: Store, job: str, folder: Path, tasks: int) -> None:
    """Note that an array was submitted; of several that are noted at once none is lost."""
    path = jobs_file(store)
    with store.writing(path), path.open("a") as file:
        file.write(json.dumps({"job": job, "folder": folder.name, "tasks": tasks}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _submitted(store: Store) -> Iterator[Task]:
    """All tasks, in the order in which they were submitted; a line that is being written is not there yet."""
    path = jobs_file(store)
    try:
        jobs = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        folders = [(str(job["job"]), path.parent / job["folder"], int(job["tasks"])) for job in jobs]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}, which says what was submitted, cannot be read ({error}): remove it") from error
    for job, folder, tasks in folders:
        yield from (Task(job, number, folder) for number in range(1, tasks + 1))


def _with_states(store: Store, tasks: Collection[Task]) -> dict[Task, Task]:
    """Each task with its state: by squeue, by sacct what that has forgotten, and by the log where there is no sacct."""
    states = _squeue(store)
    if forgotten := {task.job for task in tasks if (task.job, task.number) not in states}:
        states = {**_sacct(forgotten), **states}
    return {task: replace(task, state=_words(states.get((task.job, task.number)) or _logged(task))) for task in tasks}


def _squeue(store: Store) -> States:
    if shutil.which("squeue") is None:
        raise UserError("tasks were submitted to SLURM, but squeue is not on the PATH: ask where they were submitted")
    filters = ["--array", "--all", "--states=all", f"--name={job_name(store)}"]
    done = _run(["squeue", "--noheader", *filters, "--format=%F_%K|%T"])
    if done.returncode:
        raise UserError(f"squeue does not say whether tasks run: {done.stderr.strip() or done.stdout.strip()}")
    return _parsed(done.stdout)


def _sacct(jobs: Collection[str]) -> States:
    """How tasks ended; one that squeue has forgotten does not run, whatever the accounts say."""
    if shutil.which("sacct") is None:
        return {}
    which = f"--jobs={','.join(sorted(jobs))}"
    done = _run(["sacct", "--noheader", "--allocations", "--parsable2", which, "--format=JobID,State"])
    return {task: state for task, state in _parsed(done.stdout).items() if state in ENDED}


def _parsed(text: str) -> States:
    """The states of single tasks.

    >>> _parsed("12_1|RUNNING\\n12_2|CANCELLED by 0\\n")
    {('12', 1): 'RUNNING', ('12', 2): 'CANCELLED'}
    """
    found = re.findall(r"^(\d+)_(\d+)\|(\w+)", text, re.MULTILINE)
    return {(job, int(number)): state for job, number, state in found}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{command[0]} did not answer within {ANSWER_SECONDS:.0f} s; try again") from error


def _logged(task: Task) -> str:
    """The state that the end of the log tells: a task that was killed is TIMEOUT or CANCELLED, others are unknown."""
    try:
        with (task.folder / f"{task.job}_{task.number}.log").open("rb") as file:
            file.seek(max(file.seek(0, 2) - TAIL_BYTES, 0))
            killed = KILLED.search(file.read())
    except OSError:
        return ""
    return "" if killed is None else "TIMEOUT" if killed[1] else "CANCELLED"


def _words(state: str) -> str:
    """A state of SLURM in words; that of no task is empty."""
    if not state:
        return Task.state
    return ENDED.get(state) or ("pending" if state in WAITING else "running")
