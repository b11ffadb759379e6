"""What a process and its descendants use of memory, read from /proc, and signs that the kernel ran out of it."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from threading import Lock

from dpbench.grid.process_tree import Process, below, processes

MB = 2**20
POLL_SECONDS = 0.1  # between two looks at memory
SETUP_SECONDS = 600.0  # for what is not the work of a plug-in's function: imports, loading data, files
NEAR = 0.95  # of the limit: a process that used so much and was killed was killed for memory


class Memory:
    """The memory of one process and all below it, looked at from outside, not more often than it is worth.

    `seen_mb`: the most that was seen of all of them together.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self._due = pid, 0.0
        self.seen_mb = 0.0

    def above(self, limit_mb: float) -> bool:
        """Whether they use more than the limit: resident memory, a page that several share counted once."""
        start = time.monotonic()
        if start < self._due:
            return False
        table = _LOOK.table()
        tree = below([self._pid], table)
        used = sum(table[pid].resident for pid in tree) / MB
        if used > limit_mb:
            used = sum(_proportional(pid, table[pid].resident) for pid in tree) / MB
        self.seen_mb = max(self.seen_mb, used)
        now = time.monotonic()
        self._due = now + max(0.9 * POLL_SECONDS, 10 * (now - start))
        return used > limit_mb


class _Look:
    """All processes, as they were at most half a poll ago: the threads of a run share one look."""

    def __init__(self) -> None:
        self._lock, self._taken = Lock(), -float("inf")
        self._table: Mapping[int, Process] = {}

    def table(self) -> Mapping[int, Process]:
        with self._lock:
            if time.monotonic() - self._taken > POLL_SECONDS / 2:
                self._table, self._taken = processes(), time.monotonic()
            return self._table


_LOOK = _Look()


def _proportional(pid: int, resident: int) -> int:
    """Resident bytes of a process, a page shared by k processes counted as 1/k.

    `resident` where the system does not tell, nothing if the process has ended since.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            line = next(line for line in file if line.startswith(b"Pss:"))
        return int(line.split()[1]) * 1024
    except ProcessLookupError:
        return 0
    except (OSError, StopIteration):
        return resident if os.path.exists(f"/proc/{pid}") else 0


def kernel_kills() -> int:
    """How many processes the kernel has killed for memory so far: in this control group if it counts, else in all."""
    for path in (*_group_files(), "/proc/vmstat"):
        try:
            with open(path) as file:
                return next(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        except (OSError, StopIteration):
            continue
    return 0


@lru_cache(maxsize=1)
def _group_files() -> tuple[str, ...]:
    """Where the control group of this process counts its kills, under version 2 and version 1."""
    try:
        with open("/proc/self/cgroup") as file:
            groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    except OSError:
        return ()
    files = [f"/sys/fs/cgroup{groups['']}/memory.events"] if "" in groups else []
    return (*files, *([f"/sys/fs/cgroup/memory{groups['memory']}/memory.oom_control"] if "memory" in groups else []))


def reset_peak_memory() -> None:
    """Start a new peak, where the system can (Linux)."""
    with suppress(OSError):
        os.pwrite(_opened("/proc/self/clear_refs", os.O_WRONLY), b"5", 0)


def peak_memory_mb() -> float:
    """The largest resident memory of this process since `reset_peak_memory`, in MB."""
    try:
        status = os.pread(_opened("/proc/self/status", os.O_RDONLY), 2**14, 0)
        return int(status.partition(b"VmHWM:")[2].split(maxsplit=1)[0]) / 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@lru_cache(maxsize=2)
def _opened(path: str, flags: int) -> int:
    """A file that is used at every request."""
    return os.open(path, flags)
