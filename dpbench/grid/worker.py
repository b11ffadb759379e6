"""The process in which plug-ins run: it takes one request after another, and replies how each ended."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict

from dpbench.grid import stages
from dpbench.grid.channel import Channel, Message, Page, Printed, Work
from dpbench.grid.failures import described, status_of
from dpbench.grid.limits import peak_memory_mb, reset_peak_memory
from dpbench.grid.store import StoreError
from dpbench.resources import MEMORY

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
OOM_SCORE = 500  # of 1000: when memory runs out, the kernel ends this process before the one that records it
LIBC = ctypes.CDLL(None)


def _check_mechanism(request: Message, work: Work) -> None:
    from dpbench.grid.mechanism_check import serve  # which needs much that no trial does

    serve(request, work)


DO: dict[str, Callable[[Message, Work], None]] = {
    "check": stages.check_data,
    "release": stages.make_release,
    "model": stages.fit_model,
    "metrics": stages.score_fit,
    "mechanism": _check_mechanism,
}


def main() -> None:
    """Serve requests on the socket, and with the page, whose numbers are arguments, until the other end hangs up."""
    end, page = socket.socket(fileno=int(sys.argv[1])), Page(int(sys.argv[2]))
    end.set_inheritable(False)
    os.close(int(sys.argv[2]))
    sys.argv = sys.argv[:1]
    _prepare()
    channel, folder, printed = Channel(end), os.getcwd(), Printed(os.fdopen(os.dup(1), "r+b", buffering=0))
    while True:
        try:
            found = channel.receive()
        except EOFError:
            return
        assert found is not None
        for request in found.pop("requests"):
            os.chdir(folder)
            reply = _serve({**found, **request}, page)
            LIBC.fflush(None)  # of libraries in C
            if "reply" in reply:
                reply["reply"]["printed"] = printed.take()
            page.write()
            channel.send(reply)


def _prepare() -> None:
    """Be the first to go when memory runs out, keep what is started below this process, and leave no core dump."""
    with suppress(OSError):
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(OOM_SCORE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, AttributeError):
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _serve(request: Message, page: Page) -> Message:
    """The reply to one request: the only place where an exception becomes a status."""
    work = Work(page)
    os.environ[MEMORY] = str(request["memory_mb"])
    reset_peak_memory()
    end: Message = {"status": "done"}
    try:
        DO[request["do"]](request, work)
    except StoreError as error:
        return {"store_error": str(error)}
    except BaseException as error:  # also SystemExit and the like: a plug-in ends its trial, not the run
        end = {"status": status_of(error), "phase": work.current, "error": asdict(described(error))}
    end |= {"seconds": work.seconds, "peak_mb": peak_memory_mb(), "answer": work.facts}
    return {"reply": end}
