"""The process in which plug-ins run: it takes one request after another, and says how each ended."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dpbench.grid import stages
from dpbench.grid.channel import Channel, Message
from dpbench.grid.failures import described, status_of
from dpbench.grid.limits import peak_memory_mb, reset_peak_memory
from dpbench.grid.stages import Work
from dpbench.grid.store import StoreError
from dpbench.resources import MEMORY

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
OOM_SCORE = 500  # of 1000: when memory runs out, the kernel ends this process before the one that records it

DO: dict[str, Callable[[Message, bytes, Work], bytes]] = {
    "check": stages.check_data,
    "release": stages.make_release,
    "model": stages.fit_model,
    "metrics": stages.score_fit,
}


def main() -> None:
    """Serve requests on the socket whose number is the first argument, until the other end hangs up."""
    end = socket.socket(fileno=int(sys.argv[1]))
    end.set_inheritable(False)
    sys.argv = sys.argv[:1]
    _prepare()
    channel, folder = Channel(end), os.getcwd()
    while True:
        try:
            found = channel.receive()
        except EOFError:
            return
        assert found is not None
        os.chdir(folder)
        channel.send(*_serve(*found, channel))


def _prepare() -> None:
    """Be the first to go when memory runs out, keep what is started below this process, and leave no core dump."""
    with suppress(OSError):
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(OOM_SCORE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class _Work:
    """A request that is being worked on; the other end is told of each phase as it begins."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.current = "setup"
        self.facts: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, *, limited: bool = False) -> Iterator[None]:
        self._channel.send({"phase": name, "limited": limited})
        self.current, start = name, time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)


def _serve(request: Message, payload: bytes, channel: Channel) -> tuple[Message, bytes]:
    """The reply to one request: the only place where an exception becomes a status."""
    work, reply = _Work(channel), b""
    os.environ[MEMORY] = str(request["memory_mb"])
    reset_peak_memory()
    end: Message = {"status": "done"}
    try:
        reply = DO[request["do"]](request, payload, work)
    except StoreError as error:
        return {"store_error": str(error)}, b""
    except BaseException as error:  # also SystemExit and the like: a plug-in ends its trial, not the run
        end = {"status": status_of(error), "phase": work.current, "error": described(error)}
    end |= {"seconds": work.seconds, "peak_mb": peak_memory_mb(), "answer": work.facts}
    return {"reply": end}, reply
