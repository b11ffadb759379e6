"""The memory of a process, and the folders of files that ship with the package (links; in a wheel, folders)."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
MEMORY = "DPBENCH_MEMORY_MB"  # the environment variable that passes limits.memory_mb to the processes of a run


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
