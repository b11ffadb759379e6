"""The process in which plug-ins run: it takes one request after another, and replies how each ended.

Of an error a status is recorded, and a message with what happened and where in the user's code.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dpbench.errors import ContractError, NoEstimateError, UnconvergedError, UserError, missing_extra
from dpbench.grid import stages
from dpbench.grid.channel import Channel, Message, Page, Printed, Work
from dpbench.grid.limits import peak_memory_mb, reset_peak_memory
from dpbench.grid.records import Failure
from dpbench.grid.spending import OverspentError
from dpbench.grid.store import StoreError
from dpbench.resources import MEMORY, PACKAGE

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
OOM_SCORE = 500  # of 1000: when memory runs out, the kernel ends this process before the one that records it
LIBC = ctypes.CDLL(None)
SENTENCES = (UserError, NoEstimateError, UnconvergedError, ContractError, OverspentError)  # their text is complete
LONGEST = 2000  # characters of a message
_HERE = str(Path(__file__).parent)
_LIBRARY = str(Path(os.__file__).parent)
_PATH = re.compile(r"(?<![\w:/.])~?(?:/[^\s/'\":;,()<>]+)+/([^\s/'\":;,()<>]+)")


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


def main(socket_number: int, page_number: int) -> None:
    """Serve requests on the socket, and with the page, of these numbers, until the other end hangs up.

    The first message is of `template.surroundings`.
    """
    end, page = socket.socket(fileno=socket_number), Page(page_number)
    end.set_inheritable(False)
    os.close(page_number)
    sys.argv = sys.argv[:1]
    _prepare()
    channel, printed = Channel(end), Printed(os.fdopen(os.dup(1), "r+b", buffering=0))
    with suppress(EOFError):
        here = channel.receive()
        assert here is not None
        sys.path[:] = here["path"]
        if here["umask"] is not None:
            os.umask(here["umask"])
        os.environ.clear()
        os.environ.update(here["environment"])
        while found := channel.receive():
            for request in found.pop("requests"):
                os.chdir(here["folder"])
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


def status_of(error: BaseException) -> str:
    """The status of a trial that raised this."""
    if isinstance(error, NoEstimateError):
        return "no_estimate"
    if isinstance(error, UnconvergedError):
        return "unconverged"
    return "oom" if isinstance(error, MemoryError) else "failed"


def described(error: BaseException) -> Failure:
    """Type, message and traceback of an error, without the folders of this machine."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_HERE)]
    text = missing_extra(error) or _text(error)
    if not isinstance(error, SENTENCES) and not missing_extra(error):
        place = _place(frames)
        text = f"{type(error).__name__}{': ' if text else ''}{text}" + (f" ({place})" if place else "")
    lines = [f"{_short(frame.filename)}:{frame.lineno} {frame.name}: {frame.line}" for frame in frames]
    return Failure(type(error).__name__, text, "\n".join(lines))


def _text(error: BaseException) -> str:
    """The error's own text, paths cut to what is below the project, or to the file."""
    text = " ".join(map(str, error.args)) if isinstance(error, SystemExit) else str(error)
    text = _PATH.sub(lambda match: _short(match[0]), text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " ... (cut)"


def _place(frames: list[traceback.FrameSummary]) -> str:
    """File and line of the innermost frame in the user's own code, else in the package's, else anywhere."""

    def own(name: str) -> bool:
        return not name.startswith((_LIBRARY, "<")) and "site-packages" not in name

    mine = [frame for frame in frames if own(frame.filename) and not frame.filename.startswith(str(PACKAGE))]
    ours = [frame for frame in frames if frame.filename.startswith(str(PACKAGE))]
    best = (mine or ours or frames)[-1:]
    return f"{_short(best[0].filename)}:{best[0].lineno}" if best else ""


def _short(filename: str) -> str:
    for root in ("site-packages/", f"{PACKAGE.parent}/"):
        if root in filename:
            return filename.split(root, 1)[1]
    return filename.rsplit("/", 1)[-1]
