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
PREDICT_SECONDS = 2.0  # until lines have seconds predicted: a run that ends before shows no time left
BAR = 24  # characters
UNKNOWN = 1.0  # seconds of every release if none is known (`Durations.predicted`)


class Standing:
    """How far a run is, by the store and the claims in it: the work of all runners counts.

    `waiting`: the releases that are to run; `predicted` gives the seconds of each, perhaps slowly. Until the first of
    them ends their sum is shown, on one core; then the time left is in their proportion to those that are done.
    """

    def __init__(
        self, plan: Plan, waiting: Sequence[ReleaseItem], store: Store, predicted: Callable[[], Sequence[float]]
    ) -> None:
        self._store, self._waiting, self._open, self._predicted = store, waiting, list(waiting), predicted
        self._before = dict(store.trials.scan())
        self._planned = Counter[str]()
        for group in plan.groups:
            self._planned[group.item.key.mechanism.name] += len(group) * len(group.item.trials)
        left = Counter(item.key.mechanism.name for item in waiting for _ in item.trials)
        self._stored = Counter({name: count - left[name] for name, count in self._planned.items()})
        self._done, self._failed, self._running = Counter[str](), Counter[str](), Counter[str]()
        self._start, self._seconds, self._ended = time.monotonic(), dict[str, float](), list[str]()
        self._timer: threading.Timer | None = None

    def predict(self, delay: float = 0.0) -> None:
        """Have the seconds predicted, in a thread of its own, after so many seconds."""
        if not self._waiting:
            return
        self._timer = threading.Timer(delay, self._predict)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Start no prediction any more."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Count what has ended since the last look, and the releases of each mechanism that are at work."""
        entries, kept = self._store.trials.scan(), []
        claimed = {path.stem for path in self._store.claims_folder.glob("*.*")}
        self._running.clear()
        for item in self._open:
            ended = [entries[trial.id] for trial in item.trials if entries.get(trial.id) != self._before.get(trial.id)]
            name = item.key.mechanism.name
            if len(ended) == len(item.trials):
                self._done[name] += len(ended)
                self._failed[name] += sum(entry.status not in FINISHED for entry in ended)
                self._ended.append(item.key.id)
            else:
                kept.append(item)
                self._running[name] += item.key.id in claimed
        self._open = kept

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Of each mechanism the trials that are done, planned and failed, and the releases that are at work."""
        return [
            (name, self._stored[name] + self._done[name], planned, self._failed[name], self._running[name])
            for name, planned in self._planned.items()
        ]

    def times(self) -> str:
        """Such as "1m05s elapsed, about 3m00s left"."""
        elapsed, seconds = time.monotonic() - self._start, self._seconds
        text = f"{_clock(elapsed)} elapsed"
        if not self._open or not seconds:
            return text
        ahead, behind = sum(seconds[item.key.id] for item in self._open), sum(map(seconds.__getitem__, self._ended))
        if behind:
            return f"{text}, about {_clock(elapsed * ahead / behind)} left"
        known = set(seconds.values()) != {UNKNOWN}
        return f"{text}, about {_clock(ahead)} left on one core" if known else text

    def _predict(self) -> None:
        self._seconds = dict(zip((item.key.id for item in self._waiting), self._predicted(), strict=True))


class Lines:
    """A context that writes a line for a `Summary` it is given, at most every ten seconds, and for the last one."""

    def __init__(self, standing: Standing, stream: TextIO) -> None:
        self._standing, self._stream = standing, stream
        self._shown = -float("inf")
        self._last: Summary | None = None

    def __enter__(self) -> Lines:
        self._standing.predict(PREDICT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._standing.close()
        if self._last is not None:
            self._write(self._last)

    def show(self, summary: Summary) -> None:
        """Write where the run stands, unless that was just done."""
        self._last = summary
        if time.monotonic() - self._shown >= LINE_SECONDS:
            self._write(summary)
            self._shown, self._last = time.monotonic(), None

    def _write(self, summary: Summary) -> None:
        """A line: done of planned, stored before, failed, elapsed, left."""
        self._standing.look()
        parts = [f"{summary.stored + summary.ran}/{summary.planned} trials"]
        parts += [f"{summary.stored} stored before"] if summary.stored else []
        parts += [f"{len(summary.failures)} failed", self._standing.times()]
        self._stream.write(f"{', '.join(parts)}\n")
        self._stream.flush()


class Board:
    """A context that shows a table on a terminal: of each mechanism the trials done, failed and at work."""

    def __init__(self, standing: Standing, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._standing = standing
        console = Console(file=stream, highlight=False)
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=1 / TABLE_SECONDS)

    def __enter__(self) -> Board:
        self._standing.predict()
        self._live.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._standing.close()
        self._live.__exit__(*ended)

    def show(self, summary: Summary) -> None:
        """The table looks for itself."""

    def _table(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for heading in ("", "", "trials", "failed", "running"):
            table.add_column(heading, justify="right" if heading else "left")
        self._standing.look()
        rows = self._standing.rows()
        for name, done, planned, failed, running in rows:
            bar = ProgressBar(planned, done, width=BAR)
            table.add_row(name, bar, f"{done:,}/{planned:,}", str(failed or ""), str(running or ""))
        done, planned, failed, running = (sum(int(row[place]) for row in rows) for place in range(1, 5))
        table.add_row("total", "", f"{done:,}/{planned:,}", str(failed), str(running))
        table.caption, table.caption_justify = self._standing.times(), "left"
        return table


def _clock(seconds: float) -> str:
    """Seconds as 5s, 2m05s or 3h07m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
