"""Record what a mechanism asks of the private rows and what noise makes of it, and play the answers back.

A mechanism that is run again with the recorded answers, on other rows, must give the same release: whatever it reads of
the rows passes through noise. And on a neighbouring table what it asks may change by the declared sensitivity at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbench.privacy.events import Event

Rows = slice | NDArray[np.int64]
T = TypeVar("T")


class ReplayError(Exception):
    """A mechanism asked for another answer than the recorded one."""


@dataclass(frozen=True)
class Entry:
    """One answer. The steps of a sampled Gaussian, or of a tree, are entries of one event.

    `event`: None for a value that was read without noise and is named as unpaid. `asked`: the exact value; of a
    perturbed objective the gradient, a function of theta; None for a number of runs. `told`: the answer. `rows`: the
    sample of `n` rows of which the value was computed, where there was one. `state`: of the generator after the draw.
    """

    label: str
    event: Event | None
    asked: Any
    told: Any
    rows: Rows | None
    n: int
    state: Mapping[str, Any] | None


Tape = list[Entry]


@dataclass
class _Running:
    """The tape that is being written, and the one that is being played, if any."""

    written: Tape
    played: Tape | None = None

    def next(self) -> Entry | None:
        """The entry whose answer comes next; None while recording."""
        if self.played is None:
            return None
        if len(self.written) == len(self.played):
            raise ReplayError(f"more than the {len(self.played)} recorded answers were asked for")
        return self.played[len(self.written)]


_running: ContextVar[_Running | None] = ContextVar("tape", default=None)


@contextmanager
def record() -> Iterator[Tape]:
    """Collect all that is asked and told within the block."""
    with _run(_Running([])) as tape:
        yield tape


@contextmanager
def replay(tape: Tape) -> Iterator[Tape]:
    """Answer from the tape within the block, and collect what is asked.

    The generators end where the recorded draws left them. `ReplayError` if other answers are asked for than recorded.
    """
    with _run(_Running([], tape)) as asked:
        yield asked


@contextmanager
def _run(running: _Running) -> Iterator[Tape]:
    token = _running.set(running)
    try:
        yield running.written
    finally:
        _running.reset(token)


def sample(n: int, draw: Callable[[], Rows]) -> Rows:
    """The rows of a sample of n.

    Replayed: the recorded ones that are still there, and all that have come after them.
    """
    running = _running.get()
    entry = running.next() if running else None
    if entry is None:
        return draw()
    if not isinstance(entry.rows, np.ndarray):
        raise ReplayError(f"a sample was asked for where {entry.label!r} was recorded")
    return np.concatenate([entry.rows[entry.rows < n], np.arange(entry.n, n)])


def answer(
    rng: np.random.Generator | None,
    label: str,
    event: Event | None,
    asked: Any,
    draw: Callable[[], T],
    *,
    rows: Rows | None = None,
    n: int = 0,
) -> T:
    """What `draw` makes of the value asked, or the recorded answer while a tape is replayed."""
    running = _running.get()
    if running is None:
        return draw()
    entry = running.next()
    told: T
    if entry is None:
        told = draw()
    else:
        _check_same(entry, label, event, asked)
        told = entry.told
        if rng is not None and entry.state is not None:
            rng.bit_generator.state = entry.state
    state = None if rng is None else rng.bit_generator.state
    exact = asked if callable(asked) else deepcopy(asked)
    running.written.append(Entry(label, event, exact, deepcopy(told), rows, n, state))
    return deepcopy(told)


def _check_same(entry: Entry, label: str, event: Event | None, asked: Any) -> None:
    if (label, event) != (entry.label, entry.event):
        raise ReplayError(f"{entry.event or entry.label!r} was recorded, and now it is {event or label!r}")
    if not callable(asked) and np.shape(asked) != np.shape(entry.asked):
        raise ReplayError(f"{label!r} had the shape {np.shape(entry.asked)}, and now it has {np.shape(asked)}")
