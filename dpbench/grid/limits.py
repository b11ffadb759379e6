"""Limits of time and memory for a piece of work in this process, and its peak memory."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MB = 2**20


class TimeLimitError(Exception):
    """The work took longer than its limit."""


@contextmanager
def limited(*, seconds: float | None = None, memory_mb: float | None = None) -> Iterator[None]:
    """Raise `TimeLimitError` in the block after `seconds`, and let allocations beyond `memory_mb` fail.

    The clock needs the main thread of the process, where workers run their tasks; elsewhere it is not set.
    """
    with _memory(memory_mb), _clock(seconds):
        yield


@contextmanager
def _clock(seconds: float | None) -> Iterator[None]:
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitError(f"stopped after the limit of {seconds:g} s (limits.seconds)")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _memory(memory_mb: float | None) -> Iterator[None]:
    if memory_mb is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = int(memory_mb * MB)
    hard = before[1]
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def reset_peak_memory() -> None:
    """Start a new peak, where the system can (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory_mb() -> float:
    """The largest resident memory of this process since `reset_peak_memory`, in MB."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return round(int(line.split()[1]) / 1024, 1)
    except (OSError, StopIteration):
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
