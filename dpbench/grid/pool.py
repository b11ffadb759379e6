"""The pairs of processes that serve the supervisors of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpbench.grid.process import EXIT_SECONDS, Child, StoppedError


class Pair:
    """A process that sees the rows (mechanisms and metrics) and one that never does (models)."""

    def __init__(self) -> None:
        self.rows, self.model = Child(), Child()

    def stop(self) -> None:
        """End both at once, whatever they do."""
        self.rows.stop()
        self.model.stop()

    def close(self) -> None:
        """Let go of the files of both, of which nobody asks anything more."""
        self.rows.close()
        self.model.close()


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
        failed = True
        try:
            yield pair
            failed = False
        finally:
            with self._lock:
                self._busy.remove(pair)
                closed = self._closed  # and the pair stopped
                if not (failed or closed):
                    self._idle.append(pair)
            if failed and not closed:  # it may still be at work
                pair.stop()
            if failed or closed:
                pair.close()

    def close(self) -> None:
        """Let the idle processes end by themselves, and end the others at once, whatever they do."""
        with self._lock:
            self._closed = True
            idle, busy = self._idle, [*self._busy]
        for pair in busy:
            pair.stop()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.leave()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.stop(EXIT_SECONDS)
            child.close()
