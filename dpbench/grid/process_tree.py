"""The processes below a process: found, measured and ended; and a guard that ends them once their parent is gone.

The guard runs this file as a script, with nothing of the package imported: it must be small and always there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
KILL_SECONDS = 3.0  # how long processes that go on forking are hunted


class Process(NamedTuple):
    """What /proc gives of a process: its parent, its session, whether it is a zombie, and its resident bytes."""

    parent: int
    session: int
    dead: bool
    resident: int


def processes() -> dict[int, Process]:
    """All processes of the machine that can be seen, by id."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                text = file.read()
        except OSError:  # it has ended
            continue
        rest = text[text.rindex(b")") + 2 :].split()  # proc(5): from the state, the third field, on
        found[int(name)] = Process(int(rest[1]), int(rest[3]), rest[0] in b"ZX", int(rest[21]) * PAGE)
    return found


def below(roots: Collection[int], table: Mapping[int, Process]) -> set[int]:
    """The living ones among `roots`, the processes of their sessions, and all that descend from these."""
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    waiting = [pid for pid, process in table.items() if pid in roots or process.session in roots]
    found: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return {pid for pid in found if not table[pid].dead}


def end(roots: Collection[int]) -> None:
    """Kill the sessions that `roots` lead and all that descends from them, also what they fork meanwhile."""
    give_up = time.monotonic() + KILL_SECONDS
    while roots and time.monotonic() < give_up:
        targets = below(roots, processes())
        if not targets:
            return
        for pid in targets:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has ended, or is not ours
                continue
        time.sleep(0.01)


def guard(lines: Iterable[str]) -> None:
    """Keep a set of process ids by lines such as `+12` and `-12`; when no more can come, end those that are left."""
    watched: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            watched.add(pid)
        else:
            watched.discard(pid)
    end(watched)


if __name__ == "__main__":
    guard(sys.stdin)
