"""Calls shared out over forked processes, which see all that is in memory without a copy of it."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TypeVar

import joblib

from dpbench.errors import UserError

Made = TypeVar("Made")


def forked(calls: Sequence[Callable[[], Made]]) -> list[Made]:
    """What the calls return, in their order; a process for each core makes its share of them.

    Only what they return is sent back. Where processes cannot be forked safely, outside Linux, the calls are made here.
    Raises what a call raises, and `UserError` if a process was killed.
    """
    count = min(joblib.cpu_count(), len(calls)) if sys.platform == "linux" else 1
    if count < 2:
        return [call() for call in calls]
    context = multiprocessing.get_context("fork")
    shares = []
    for place in range(count):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_make, args=(calls[place::count], theirs), daemon=True)
        process.start()
        theirs.close()
        shares.append((process, ours))
    made: list[Made | None] = [None] * len(calls)
    for place, (process, ours) in enumerate(shares):
        try:
            found = ours.recv()
        except EOFError:
            found = UserError("a process was killed before it had made its share; is there memory enough?")
        process.join()
        if isinstance(found, BaseException):
            raise found
        made[place::count] = found
    return made  # type: ignore[return-value]


def _make(calls: Sequence[Callable[[], Made]], back: Connection) -> None:
    try:
        back.send([call() for call in calls])
    except Exception as error:
        back.send(error)
