"""Record a mechanism's queries of the private rows and the noisy answers, and replay the answers.

A mechanism that is run again with the recorded answers, on other rows, must give the same release: everything it reads
from the rows passes through noise. On a neighbouring table a query may change by the declared sensitivity at most. The
states of the generators are recorded too: for noise always, for other draws where they are `Watched`.
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
State = Mapping[str, object]  # of a bit generator
Responder = Callable[["Entry"], Any]  # an answer to a query, an entry without its answer
T = TypeVar("T")


class ReplayError(Exception):
    """A mechanism requested a different answer from the recorded one."""


@dataclass(frozen=True)
class Entry:
    """One answer. The steps of a sampled Gaussian, or of a tree, are entries of one event.

    `event`: None for a value that was read without noise, as a non-private input. `asked`: the exact value; for a
    perturbed objective the gradient, a function of theta; None for a number of runs. `answer`: the noisy value. `rows`:
    the sample of `n` rows from which the value was computed, if any. `start`, `state`: of the generator before and
    after the draw; `origin`: the entropy of its seed, shared with generators spawned from it. `replacement`: for
    several indices, whether one may be drawn again; None otherwise.
    """

    label: str
    event: Event | None
    asked: Any
    answer: Any
    rows: Rows | None
    n: int
    start: State | None
    state: State | None
    origin: object = None
    replacement: bool | None = None


class Tape(list[Entry]):
    """All answers of a run; and `draws`, those of its `Watched` generators that are neither noise nor a secret sample
    of rows, such as synthetic rows. Each with the name of the method and the state before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[tuple[str, State]] = []


@dataclass
class _Running:
    """The tape that is being recorded, and the one that is being replayed, if any. `busy`: a draw is under way.

    `astray`: replayed answers leave the generators in other states than the recorded draws did. `responder`: the
    function that answers in place of the noise, if any.
    """

    written: Tape
    played: Tape | None = None
    astray: bool = False
    responder: Responder | None = None
    busy: bool = False

    def drawn(self, draw: Callable[[], T]) -> T:
        """The result of `draw`, without recording the draws inside it."""
        before, self.busy = self.busy, True
        try:
            return draw()
        finally:
            self.busy = before

    def next(self) -> Entry | None:
        """The entry whose answer comes next; None while recording."""
        if self.played is None:
            return None
        if len(self.written) == len(self.played):
            raise ReplayError(f"more than the {len(self.played)} recorded answers were requested")
        return self.played[len(self.written)]


_running: ContextVar[_Running | None] = ContextVar("tape", default=None)


@contextmanager
def record() -> Iterator[Tape]:
    """Record all queries and answers within the block."""
    with _run(_Running(Tape())) as tape:
        yield tape


@contextmanager
def replay(tape: Tape, *, astray: bool = False) -> Iterator[Tape]:
    """Answer from the tape within the block, and record the queries.

    The generators end in the states of the recorded draws, or in other streams of numbers if `astray`. Raises
    `ReplayError` if answers other than the recorded ones are requested.
    """
    with _run(_Running(Tape(), tape, astray)) as asked:
        yield asked


@contextmanager
def answered_by(responder: Responder) -> Iterator[Tape]:
    """Answer by the responder within the block, and record the answers. No noise is drawn, and no sample of rows:
    `ReplayError` if one is requested.
    """
    with _run(_Running(Tape(), responder=responder)) as tape:
        yield tape


@contextmanager
def _run(running: _Running) -> Iterator[Tape]:
    token = _running.set(running)
    try:
        yield running.written
    finally:
        _running.reset(token)


def sample(n: int, draw: Callable[[], Rows]) -> Rows:
    """The rows of a sample of n.

    Replayed: the recorded ones that still exist, and all rows after the recorded table.
    """
    running = _running.get()
    if running is None:
        return draw()
    if running.responder is not None:
        raise ReplayError("a sample of the rows was requested, but such a run has answers on all rows only")
    entry = running.next()
    if entry is None:
        return running.drawn(draw)
    if not isinstance(entry.rows, np.ndarray):
        raise ReplayError(f"a sample was requested where {entry.label!r} was recorded")
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
    replacement: bool | None = None,
) -> T:
    """The answer of `draw` for the value asked, or the recorded answer while a tape is replayed."""
    running = _running.get()
    if running is None:
        return draw()
    entry = running.next()
    start = None if rng is None else rng.bit_generator.state
    exact = asked if callable(asked) else deepcopy(asked)
    given: T
    if running.responder is not None:
        given = running.responder(Entry(label, event, exact, None, rows, n, start, start, _origin(rng), replacement))
    elif entry is None:
        given = running.drawn(draw)
    else:
        _check_same(entry, label, event, asked)
        given = entry.answer
        if rng is not None and entry.state is not None:
            other = type(rng.bit_generator)(len(running.written))
            rng.bit_generator.state = other.state if running.astray else entry.state
    state = None if rng is None else rng.bit_generator.state
    done = Entry(label, event, exact, deepcopy(given), rows, n, start, state, _origin(rng), replacement)
    running.written.append(done)
    return deepcopy(given)


def _origin(rng: np.random.Generator | None) -> object:
    seed = None if rng is None else rng.bit_generator.seed_seq
    return getattr(seed, "entropy", None)


def _check_same(entry: Entry, label: str, event: Event | None, asked: Any) -> None:
    if (label, event) != (entry.label, entry.event):
        raise ReplayError(f"{entry.event or entry.label!r} was recorded, but now it is {event or label!r}")
    if not callable(asked) and np.shape(asked) != np.shape(entry.asked):
        raise ReplayError(f"{label!r} had the shape {np.shape(entry.asked)}, but now it has {np.shape(asked)}")


class Watched(np.random.Generator):
    """A generator, with those it spawns and its copies, whose draws are noted on the tape that is being recorded."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Watched:
        return Watched(deepcopy(self.bit_generator, memo))

    def __copy__(self) -> Watched:
        return Watched(self.bit_generator)


def _noted(name: str) -> Callable[..., Any]:
    """This method of a generator; the state before is noted, if it changes."""
    plain = getattr(np.random.Generator, name)

    def draw(self: Watched, *arguments: Any, **settings: Any) -> Any:
        running = _running.get()
        if running is None or running.busy:
            return plain(self, *arguments, **settings)
        start = self.bit_generator.state
        given = running.drawn(lambda: plain(self, *arguments, **settings))
        if self.bit_generator.state != start:
            running.written.draws.append((name, start))
        return given

    return draw


for _name, _method in vars(np.random.Generator).items():
    if callable(_method) and not _name.startswith("_") and _name != "spawn":
        setattr(Watched, _name, _noted(_name))
