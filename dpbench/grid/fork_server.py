"""The fork server, called the template: a process that has imported what most workers need, and from which they are
forked: each is there at once.

A fresh interpreter takes more than a second of CPU time until it can read rows. The template reads no rows, runs no
plug-in and imports nothing whose threads a fork would cut off (jax, torch), so a worker that is forked of it is what a
fresh one with the same imports is. Where processes cannot be forked safely, outside Linux, each worker is a fresh one.

The template is a fresh interpreter, which works in any process, or, for a command line, a fork of that (`fork_here`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import weakref
from contextlib import suppress
from functools import lru_cache
from typing import NoReturn, Protocol

from dpbench.grid.channel import Message, Printed, memory
from dpbench.grid.limits import SETUP_SECONDS
from dpbench.resources import PACKAGE, THREADS, with_threads

PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop())"
IMPORTED = (
    *("pandas", "scipy.linalg", "scipy.optimize", "scipy.special", "yaml"),
    *("dpbench.grid.worker", "dpbench.mechanisms.fitting"),
)
ATTEMPTS = 2  # to have a worker forked, each by a template of its own
LOOK_SECONDS = 0.002  # between two looks at whether a process has ended
CLOSE_SECONDS = 5.0
FORK, RUNS = b"fork", b"runs"
Key = tuple[tuple[str, ...], int]


class Process(Protocol):
    """A process: its id, and its exit code once it has ended (the number of a signal as a negative one)."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, None while it runs."""


def fork_here() -> None:
    """Have the first template be a fork of this process, so that what both import is imported once.

    For a process that has read no rows, run no plug-in, and does nothing else. Where another thread runs, which a fork
    would cut off, the template is a fresh interpreter.
    """
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1:
        _import_all()
        _FORKED.append(_Template(forked=True))


def wait(process: Process, seconds: float = float("inf")) -> int | None:
    """The exit code of a process; None if it has not ended within these seconds."""
    end = time.monotonic() + seconds
    while (code := process.poll()) is None and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return code


def start_worker(channel: int, page: int, output: int) -> Process:
    """A worker with the files of these numbers, in a session of its own. Raises `OSError` if the system gives none."""
    if sys.platform != "linux":
        return _interpreter("dpbench.grid.worker", channel, page, output=output)
    said = ""
    with _LOCK:
        for _ in range(ATTEMPTS):
            template = _template(_key())
            pid = template.ask(FORK, channel, page, output)
            if pid is not None:
                return _Forked(template, int(pid))
            said = template.printed.take().strip().rpartition("\n")[2]
            _template.cache_clear()
    raise OSError(f"no process can be started: {said or 'is the machine out of memory or processes?'}")


def surroundings() -> Message:
    """What a worker is to find as it is here and now, whatever its template was started with: its first message."""
    return {"path": sys.path, "environment": with_threads(), "folder": os.getcwd(), "umask": _umask()}


def _umask() -> int | None:
    """The umask, where it can be read without changing it (Linux); a fresh process has it anyway."""
    with suppress(OSError, StopIteration), open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("Umask:")).split()[1], 8)
    return None


def _interpreter(module: str, *descriptors: int, output: int) -> subprocess.Popen[bytes]:
    """A fresh Python that runs `main` of the module, with the files of these numbers."""
    code = f"{PATH}; from {module} import main; main(*map(int, sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-u", "-P", "-c", code, *map(str, descriptors), json.dumps(sys.path)],
        pass_fds=descriptors,
        start_new_session=True,  # what it starts can be found, and Ctrl-C does not reach it
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=with_threads(),
    )


class _Template:
    """A template, which ends with this process, or once nobody has it any more."""

    def __init__(self, *, forked: bool = False) -> None:
        self._lock = threading.Lock()
        self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(SETUP_SECONDS)
        self.printed = Printed(memory())
        with there:
            process = self._fork(there) if forked else self._start(there)
        weakref.finalize(self, _end, self._socket, process)

    def _start(self, there: socket.socket) -> Process:
        return _interpreter(__name__, there.fileno(), output=self.printed.fileno())

    def _fork(self, there: socket.socket) -> Process:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if pid := os.fork():
            return _Child(pid)
        try:
            self._socket.close()
            _part(self.printed.fileno(), there.fileno())
            main(there.detach())
        except BaseException:
            traceback.print_exc()
            _exit(1)

    def ask(self, text: bytes, *descriptors: int) -> bytes | None:
        """Its answer; None if it is gone, or does not answer and is given up."""
        with self._lock:
            try:
                socket.send_fds(self._socket, [text], descriptors)
                return self._socket.recv(64) or None
            except OSError:
                self._socket.close()  # else a late answer would be taken for that to the next question
                return None


class _Child:
    """A fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs; 0 if it is not known, where SIGCHLD is ignored, as `subprocess` has it."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._code = 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def _part(output: int, kept: int) -> None:
    """Have a process that was just forked be as a fresh one is: in a session of its own, with no file of its parent's.

    `kept`: the number of the one file that it has besides its standard streams.
    """
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, file in enumerate((nothing, output, output)):
        os.dup2(file, descriptor)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number != kept:
            with suppress(OSError):  # that of the list itself
                os.close(number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), errors="backslashreplace", write_through=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _exit(code: int) -> NoReturn:
    """End a fork: what was registered is done, and nothing that it shares is taken down, which takes a tenth of a
    second of CPU time, or is its parent's.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


def _end(end: socket.socket, process: Process) -> None:
    """Have a template end, so that the CPU time of its workers counts as that of this process's children."""
    end.close()
    wait(process, CLOSE_SECONDS)  # it ends by itself, if later


_LOCK = threading.Lock()
_FORKED: list[_Template] = []  # the template of `fork_here`, until it is asked for


def _key() -> Key:
    """What a template and its workers have in common: the threads of numerical libraries, and the package's code."""
    environment = with_threads()
    found = ((folder, name) for folder, _, names in os.walk(PACKAGE) for name in names if name.endswith(".py"))
    changed = max(os.stat(f"{folder}/{name}").st_mtime_ns for folder, name in found)
    return tuple(environment[name] for name in THREADS), changed


@lru_cache(maxsize=1)
def _template(key: Key) -> _Template:
    """The template of this process, another one for another key."""
    return _FORKED.pop() if _FORKED else _Template()


class _Forked:
    """A worker, whose exit code its template knows; SIGKILL's is given if both are gone."""

    def __init__(self, template: _Template, pid: int) -> None:
        self.pid = pid
        self._template = template
        self._lock = threading.Lock()  # an exit code is given once
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        with self._lock:
            if self._code is None and (answer := self._template.ask(str(self.pid).encode())) != RUNS:
                if answer is not None:
                    self._code = int(answer)
                elif not os.path.exists(f"/proc/{self.pid}"):
                    self._code = -signal.SIGKILL
            return self._code


def main(control: int) -> NoReturn:
    """Fork a worker, or give the exit code of one, at each message on this socket, until the other end hangs up."""
    end = socket.socket(fileno=control)
    _import_all()
    gc.collect()
    gc.freeze()  # what was imported stays shared
    while True:
        text, descriptors, *_ = socket.recv_fds(end, 64, 3)
        if not text:
            os._exit(0)  # there is nothing to clean up
        if text != FORK:
            pid, status = os.waitpid(int(text), os.WNOHANG)
            end.send(str(os.waitstatus_to_exitcode(status)).encode() if pid else RUNS)
        elif pid := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            end.send(str(pid).encode())
        else:
            end.close()
            _work(*descriptors)
            _exit(0)


def _import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)


def _work(channel: int, page: int, output: int) -> None:
    """Be a worker."""
    import numpy as np

    from dpbench.grid import worker

    os.setsid()
    for standard in (sys.stdout, sys.stderr):
        os.dup2(output, standard.fileno())
    os.close(output)
    np.random.seed()  # noqa: NPY002  # else what a plug-in draws of it would be the same in every worker
    worker.main(channel, page)
