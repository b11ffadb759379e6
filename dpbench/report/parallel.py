"""Calls run in forked processes, which share the memory of this one without a copy."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from dpbench.errors import UserError

Made = TypeVar("Made")

PLACE = 2  # bytes of the index of a call


def in_processes(calls: Sequence[Callable[[], Made]]) -> list[Made]:
    """The results of the calls, in their order; a process for each core takes one remaining call after another.

    Only the results are sent back. Where processes cannot be forked safely, outside Linux or once jax has started its
    threads, the calls run in this process.
    Raises what a call raises, or where that cannot be sent a `RuntimeError` with its traceback, and `UserError` if a
    process was killed.
    """
    return started(calls)()


def started(calls: Sequence[Callable[[], Made]]) -> Callable[[], list[Made]]:
    """Start the calls of `in_processes`; its results, waited for when they are asked for.

    Calls that run in this process start when they are asked for.
    """
    import joblib

    safe = sys.platform == "linux" and "jax" not in sys.modules
    count = min(joblib.cpu_count(), len(calls)) if safe else 1
    if count < 2:
        return lambda: [call() for call in calls]
    context = multiprocessing.get_context("fork")
    left, places = os.pipe()  # a place is read by one process alone
    os.write(places, b"".join(place.to_bytes(PLACE) for place in range(len(calls))))
    os.close(places)
    shares = []
    for _ in range(count):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_make, args=(calls, left, theirs), daemon=True)
        process.start()
        theirs.close()
        shares.append((process, ours))
    os.close(left)
    return lambda: _results(shares, len(calls))


def _results(shares: Sequence[tuple[BaseProcess, Connection]], count: int) -> list[Made]:
    """What the processes made of this many calls."""
    made: dict[int, Made] = {}
    for process, ours in shares:
        try:
            found = ours.recv()
        except EOFError:
            found = UserError("a process was killed before it had finished; is there enough memory?")
        process.join()
        if isinstance(found, BaseException):
            raise found
        made |= found
    return [made[place] for place in range(count)]


def _make(calls: Sequence[Callable[[], Made]], left: int, back: Connection) -> None:
    try:
        made = {}
        while read := os.read(left, PLACE):
            place = int.from_bytes(read)
            made[place] = calls[place]()
        back.send(made)
    except Exception as error:
        back.send(_sendable(error))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
