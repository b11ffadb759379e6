"""A SLURM array that runs a frozen plan: one task a shard, each the same command."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.grid.plan import Plan
from dpbench.grid.seeds import digest
from dpbench.grid.store import Store


def write_array(plan: Plan, store: Store, *, shards: int, options: Mapping[str, Any], config_dir: Path | None) -> Path:
    """Write the frozen plan and the sbatch script that runs it in `shards` tasks; the script's path.

    `options` are sbatch's long options; None leaves one out. Raises `UserError` for more shards than releases.
    """
    if shards > len(plan.releases):
        raise UserError(f"shards={shards}, but the plan has only {len(plan.releases)} releases to share out")
    store.prepare()
    folder = store.folder / "slurm" / digest(plan.trial_ids)
    folder.mkdir(parents=True, exist_ok=True)
    store.write_text(folder / "plan.jsonl", plan.lines())
    store.write_text(folder / "array.sh", script(folder, store, shards, options, config_dir))
    return folder / "array.sh"


def script(folder: Path, store: Store, shards: int, options: Mapping[str, Any], config_dir: Path | None) -> str:
    """The text of the array script. Paths in it are absolute: a task may start anywhere."""
    folder = folder.resolve()
    lines = ["#!/bin/bash", f"#SBATCH --job-name=dpbench-{store.name}", f"#SBATCH --array=1-{shards}"]
    lines.append(f"#SBATCH --output={folder}/%A_%a.log")
    lines += [f"#SBATCH --{name}={shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    command = [sys.executable, "-m", "dpbench", "run", "--plan", str(folder / "plan.jsonl")]
    command += [f"results={store.root.resolve()}"]
    if config_dir is not None:
        command += ["--config-dir", str(config_dir.resolve())]
    lines.append(
        f'exec {shlex.join(command)} --shard "$SLURM_ARRAY_TASK_ID/{shards}" jobs="${{SLURM_CPUS_PER_TASK:-1}}"'
    )
    return "\n".join(lines) + "\n"


def submit(path: Path) -> str:
    """Hand the script to sbatch; what sbatch answered."""
    if shutil.which("sbatch") is None:
        raise UserError(f"sbatch is not on the PATH; the script is {path}: submit it on a SLURM login node")
    done = subprocess.run(["sbatch", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"sbatch refused {path}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()
