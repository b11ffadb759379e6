"""A SLURM array that runs a plan: one task a shard, each the same command on its own part of the plan."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dpbench.config.schema import Slurm
from dpbench.errors import UserError
from dpbench.grid.plan import Plan
from dpbench.grid.seeds import digest
from dpbench.grid.slurm_tasks import add_job, job_name, jobs_file, shard_file
from dpbench.grid.store import Store
from dpbench.grid.task import arguments, variables


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
