"""Two runs of a mechanism at once, on two tables, that get the same answers.

An answer may be drawn from any distribution that depends on both queries, such as the one that best distinguishes the
tables. Each run has its own thread, and waits for the other at each answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

from dpbench.privacy.tape import Entry, ReplayError, answered_by

Run = Callable[[], object]


class _Stopped(Exception):
    """The other run has failed."""


def lockstep(one: Run, two: Run, answer_of: Callable[[Entry, Entry], Any]) -> None:
    """Run both to their end; each answer is `answer_of` the query of `one` and that of `two`.

    Raises the error of a run, that of `two` if both fail; `ReplayError` where their queries differ in kind.
    """
    asked: SimpleQueue[Entry | BaseException | None] = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()

    def follow(entry: Entry) -> Any:
        asked.put(entry)
        answer = answers.get()
        if isinstance(answer, _Stopped):
            raise answer
        return answer

    def follower() -> None:
        try:
            with answered_by(follow):
                one()
            asked.put(None)
        except BaseException as error:
            asked.put(error)

    def lead(entry: Entry) -> Any:
        other = asked.get()
        if isinstance(other, BaseException):
            raise other
        if other is None or (other.label, other.event) != (entry.label, entry.event):
            asked.put(other)
            raise ReplayError(f"one run requested {other and other.label!r}, the other one {entry.label!r}")
        answer = answer_of(other, entry)
        answers.put(answer)
        return answer

    thread = Thread(target=copy_context().run, args=(follower,), daemon=True)
    thread.start()
    try:
        with answered_by(lead):
            two()
        last = asked.get()
        if isinstance(last, BaseException):
            raise last
        if last is not None:
            raise ReplayError(f"one run requested {last.label!r}, but the other one had ended")
    finally:
        answers.put(_Stopped())
        thread.join()
