"""The memory and threads of a process, and the folders that ship with the package (links; in a wheel, folders)."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
MEMORY = "DPBENCH_MEMORY_MB"  # the environment variable that passes limits.memory_mb to the processes of a run
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
XLA_THREADS = "NPROC"  # how many threads jax's programs have on a CPU, in place of one per processor


def conf_dir() -> Path:
    """The folder of Hydra's config groups."""
    return PACKAGE / "_shared" / "conf"


def data_dir() -> Path:
    """The folder of the data sets that ship with the project."""
    return PACKAGE / "_shared" / "data"


def memory_mb() -> float:
    """MB of memory that this process may use: the limit of its run, or the machine's."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    return min(float(os.environ.get(MEMORY, "inf")), physical)


def threads() -> int:
    """Threads that numerical libraries may use in one worker: OMP_NUM_THREADS, else 1."""
    return int(os.environ.get("OMP_NUM_THREADS") or 1)


def with_threads() -> dict[str, str]:
    """This environment, for a process that keeps to `threads`.

    Of variables that are set those of `THREADS` are kept, and `XLA_THREADS` is not: builds use its name, too.
    """
    number = str(threads())
    return {**dict.fromkeys(THREADS, number), **os.environ, XLA_THREADS: number}
