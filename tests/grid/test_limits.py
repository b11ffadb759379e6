"""Memory, as it is seen from inside and from outside."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from dpbench.grid import limits
from dpbench.grid.limits import Memory, kernel_kills, peak_memory_mb, reset_peak_memory
from dpbench.grid.process_tree import Process


def test_the_peak_counts_from_its_last_reset():
    kept = np.ones(200 * 2**20 // 8)
    high = peak_memory_mb()
    assert high > 200
    del kept
    reset_peak_memory()
    assert peak_memory_mb() < high - 150


def test_the_peak_is_in_units_of_2_to_the_20_bytes():
    """Linux counts in KiB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    assert peak_memory_mb() == pytest.approx(int(line.split()[1]) / 2**10, rel=1e-3)


def test_a_process_above_its_limit_is_seen_from_outside():
    assert Memory(os.getpid()).above(1.0)
    memory = Memory(os.getpid())
    assert not memory.above(1e6)
    assert 10 < memory.seen_mb < 1e5


def test_a_process_that_ended_since_the_last_look_uses_no_memory(monkeypatch):
    pid = os.fork()
    if not pid:
        os._exit(0)
    me = Process(parent=0, session=0, dead=False, resident=limits.MB)
    child = Process(parent=os.getpid(), session=0, dead=False, resident=2**40)
    monkeypatch.setattr(limits._LOOK, "table", lambda: {os.getpid(): me, pid: child})
    time.sleep(0.2)
    assert not Memory(os.getpid()).above(1e5)  # it waits to be collected
    os.waitpid(pid, 0)
    assert not Memory(os.getpid()).above(1e5)  # it is gone


def test_the_kills_of_the_kernel_are_a_count():
    assert kernel_kills() >= 0
