"""The pairs of processes that serve the supervisors of a run."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from dpbench.grid.process import EXIT_SECONDS, Child, StoppedError


class Pair:
    """A process that sees the rows (mechanisms and metrics) and one that never does (models)."""

    def __init__(self) -> None:
        self.rows, self.model = Child(), Child()


class Pool:
    """Pairs that are kept between items, so that imports and data stay; as many as there are supervisors at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Pair] = []
        self._busy: list[Pair] = []
        self._closed = False

    @contextmanager
    def pair(self) -> Iterator[Pair]:
        """A pair for oneself. Raises `StoppedError` once the pool is closed."""
        with self._lock:
            if self._closed:
                raise StoppedError
            pair = self._idle.pop() if self._idle else Pair()
            self._busy.append(pair)
        yield pair
        with self._lock:  # after an error the pair may still be at work: it is not given out again
            self._busy.remove(pair)
            self._idle.append(pair)

    def close(self) -> None:
        """Let the idle processes end by themselves, and end the others at once, whatever they do."""
        with self._lock:
            self._closed = True
            idle, busy = self._idle, self._busy
        for pair in busy:
            pair.rows.stop()
            pair.model.stop()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.leave()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.stop(EXIT_SECONDS)


_pools: defaultdict[str, Pool] = defaultdict(Pool)


def pool_of(run: str) -> Pool:
    """The pool of a run in this process; other processes that work for the same run have their own."""
    return _pools[run]
