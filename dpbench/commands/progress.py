"""The live line of a run: counts, failures and time left; plain lines now and then where there is no terminal."""

from __future__ import annotations

import time
from typing import TextIO

from dpbench.grid.runner import Summary

PLAIN_SECONDS = 10.0
LIVE_SECONDS = 0.1


class Progress:
    """A context that shows each `Summary` it is given, at most every 0.1 s (10 s without a terminal)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._start = time.monotonic()
        self._shown = -float("inf")
        self._last: str | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._write(self._last)
        if self._live and self._shown > -float("inf"):
            self._stream.write("\n")

    def show(self, summary: Summary) -> None:
        """Show where the run stands, unless that was just done."""
        now = time.monotonic()
        self._last = self.line(summary, now - self._start)
        if now - self._shown >= (LIVE_SECONDS if self._live else PLAIN_SECONDS):
            self._write(self._last)
            self._shown, self._last = now, None

    @staticmethod
    def line(summary: Summary, seconds: float) -> str:
        """One line: done of planned, stored before, failed, elapsed, left."""
        done = summary.stored + summary.ran
        parts = [f"{done}/{summary.planned} trials"]
        if summary.stored:
            parts.append(f"{summary.stored} stored before")
        parts.append(f"{len(summary.failures)} failed")
        parts.append(f"{_clock(seconds)} elapsed")
        if summary.ran and done < summary.planned:
            parts.append(f"about {_clock(seconds / summary.ran * (summary.planned - done))} left")
        return ", ".join(parts)

    def _write(self, line: str) -> None:
        self._stream.write(f"\r\x1b[K{line}" if self._live else f"{line}\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    """Seconds as 5s, 2m05s or 3h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
