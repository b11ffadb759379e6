"""Where a run stands: a table on a terminal, drawn anew every second; else a line now and then."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from dpbench.grid.plan import Plan, ReleaseItem
from dpbench.grid.runner import Summary
from dpbench.grid.store import Store
from dpbench.grid.trial import FINISHED

if TYPE_CHECKING:
    from rich.table import Table

LINE_SECONDS, TABLE_SECONDS = 10.0, 1.0
BAR = 24  # characters
UNKNOWN = 1.0  # seconds of every release if none is known (`Durations.predicted`)


class Lines:
    """A context that writes a line for a `Summary` it is given, at most every ten seconds, and for the last one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._start = time.monotonic()
        self._shown = -float("inf")
        self._last: str | None = None

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._write(self._last)

    def show(self, summary: Summary) -> None:
        """Write where the run stands, unless that was just done."""
        now = time.monotonic()
        self._last = self.line(summary, now - self._start)
        if now - self._shown >= LINE_SECONDS:
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
        self._stream.write(f"{line}\n")
        self._stream.flush()


class Board:
    """A context that shows a table on a terminal: of each mechanism the trials done, failed and at work.

    It looks at the store and at the claims in it, so that it shows the work of all runners. `waiting`: the releases
    that are to run; `predicted` gives the seconds of each, perhaps slowly. Until the first of them ends their sum is
    shown, on one core; then the time left is in their proportion to those that are done.
    """

    def __init__(
        self,
        plan: Plan,
        waiting: Sequence[ReleaseItem],
        store: Store,
        predicted: Callable[[], Sequence[float]],
        stream: TextIO,
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._store, self._waiting, self._open, self._predicted = store, waiting, list(waiting), predicted
        self._before = dict(store.trials.scan())
        self._planned = Counter(item.key.mechanism.name for item in plan.releases for _ in item.trials)
        left = Counter(item.key.mechanism.name for item in waiting for _ in item.trials)
        self._stored = Counter({name: count - left[name] for name, count in self._planned.items()})
        self._done, self._failed = Counter[str](), Counter[str]()
        self._start, self._seconds, self._ended = time.monotonic(), dict[str, float](), list[str]()
        console = Console(file=stream, highlight=False)
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=1 / TABLE_SECONDS)

    def __enter__(self) -> Board:
        threading.Thread(target=self._predict, daemon=True).start()
        self._live.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._live.__exit__(*ended)

    def show(self, summary: Summary) -> None:
        """The table looks for itself."""

    def _predict(self) -> None:
        self._seconds = dict(zip((item.key.id for item in self._waiting), self._predicted(), strict=True))

    def _table(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for heading in ("", "", "trials", "failed", "running"):
            table.add_column(heading, justify="right" if heading else "left")
        rows = self.rows()
        for name, done, planned, failed, running in rows:
            bar = ProgressBar(planned, done, width=BAR)
            table.add_row(name, bar, f"{done:,}/{planned:,}", str(failed or ""), str(running or ""))
        done, planned, failed, running = (sum(int(row[place]) for row in rows) for place in range(1, 5))
        table.add_row("total", "", f"{done:,}/{planned:,}", str(failed), str(running))
        table.caption, table.caption_justify = self.times(), "left"
        return table

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Of each mechanism the trials that are done, planned and failed, and the releases that are at work."""
        running = self._look()
        return [
            (name, self._stored[name] + self._done[name], planned, self._failed[name], running[name])
            for name, planned in self._planned.items()
        ]

    def times(self) -> str:
        """Such as "1m05s elapsed, about 3m00s left"."""
        elapsed, seconds = time.monotonic() - self._start, self._seconds
        told = f"{_clock(elapsed)} elapsed"
        if not self._open or not seconds:
            return told
        ahead, behind = sum(seconds[item.key.id] for item in self._open), sum(map(seconds.__getitem__, self._ended))
        if behind:
            return f"{told}, about {_clock(elapsed * ahead / behind)} left"
        known = set(seconds.values()) != {UNKNOWN}
        return f"{told}, about {_clock(ahead)} left on one core" if known else told

    def _look(self) -> Counter[str]:
        """Count what has ended since the last look; how many releases of each mechanism are at work."""
        entries, kept = self._store.trials.scan(), []
        claimed = {path.stem for path in self._store.claims_folder.glob("*.*")}
        running = Counter[str]()
        for item in self._open:
            ended = [entries[trial.id] for trial in item.trials if entries.get(trial.id) != self._before.get(trial.id)]
            name = item.key.mechanism.name
            if len(ended) == len(item.trials):
                self._done[name] += len(ended)
                self._failed[name] += sum(entry.status not in FINISHED for entry in ended)
                self._ended.append(item.key.id)
            else:
                kept.append(item)
                running[name] += item.key.id in claimed
        self._open = kept
        return running


def _clock(seconds: float) -> str:
    """Seconds as 5s, 2m05s or 3h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
