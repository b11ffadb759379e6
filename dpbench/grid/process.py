"""Processes in which plug-ins run, in pairs that serve a supervisor, and the limits that are held on them from
outside.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dpbench.config import Limits
from dpbench.grid import fork_server, limits, process_tree
from dpbench.grid.channel import Answer, Channel, Message, Page, Phase, Printed, memory
from dpbench.grid.limits import POLL_SECONDS, Memory, kernel_kills
from dpbench.grid.records import Failure
from dpbench.grid.store import StoreError

ATTEMPTS = 3  # to hand a request to a process that takes it
EXIT_SECONDS = 1.0  # for a process that is ending to be gone


class StoppedError(Exception):
    """The run was ended while this work was under way; nothing is to be recorded of it."""


@dataclass
class Reply:
    """How a request ended.

    `status`: one of a trial's. `phase` and `error`: where and why, unless it is done. `seconds`: of each phase.
    `answer`: what came of it. `printed`: at this request, by the process and those below it.
    """

    status: str
    phase: str | None = None
    error: Failure | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    peak_mb: float | None = None
    answer: Answer = field(default_factory=Answer)
    printed: str = ""


class Child:
    """A process of its own that serves one request after another, and is replaced when it dies or has to be killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the process that stands for this child, and of whether it is stopped
        self._stopped = False
        self._start()

    def _start(self) -> None:
        here, there = socket.socketpair()
        self._output = Printed(memory())
        with there, Page.file() as file:
            self._page = Page(file.fileno())
            self._process = fork_server.start_worker(there.fileno(), file.fileno(), self._output.fileno())
        GUARD.watch(self._process.pid)
        self._channel = Channel(here)
        self._memory = Memory(self._process.pid)
        with suppress(OSError):  # it has ended: the first request finds that out
            self._channel.send(fork_server.surroundings(), seconds=limits.SETUP_SECONDS)

    def ask(self, message: Message, requests: Sequence[Message], within: Limits) -> list[Reply]:
        """Have requests done one after another, each within the limits: how each of them ended.

        `message`: what they have in common. One that ends the process does not touch the others.
        Raises `StoreError` if the results cannot be written, `StoppedError` if `stop` was called meanwhile.
        """
        replies: list[Reply] = []
        attempts = 0
        while len(replies) < len(requests):
            came = self._ask({**message, "requests": requests[len(replies) :], "memory_mb": within.memory_mb}, within)
            attempts = 0 if came else attempts + 1
            if attempts == ATTEMPTS:
                text = f"no process took the request in {ATTEMPTS} attempts: is the machine out of memory or processes?"
                came, attempts = [_ended("crashed", "setup", "WorkerKilled", text)], 0
                came[0].printed = self._last_words
            replies += came
        return replies

    def _ask(self, message: Message, within: Limits) -> list[Reply]:
        """The replies of one process, until it ends: none if it died before it took a request."""
        kills, process, replies = kernel_kills(), self._process, list[Reply]()
        try:
            self._channel.send(message, seconds=limits.SETUP_SECONDS)
        except OSError:
            self._replace()
        while self._process is process and len(replies) < len(message["requests"]):
            reply = self._watch(within, kills)
            if reply is None:  # the request is not to blame
                self._replace()
            else:
                reply.printed = reply.printed if self._process is process else self._last_words
                replies.append(reply)
        return replies

    def _watch(self, within: Limits, kills: int) -> Reply | None:
        """The reply, or what came in its place; None if the process died before its first phase."""
        nothing = Phase("setup", False, time.monotonic())
        self._memory.seen_mb, wait = 0.0, POLL_SECONDS
        while True:
            try:
                message = self._next(wait)
            except EOFError:
                at = self._page.read()
                return self._died(at.name, within, kills) if at else None
            except ValueError:
                at = self._page.read() or nothing
                self._replace()
                return _ended("crashed", at.name, "WorkerKilled", "the process wrote into the channel of its results")
            if message is not None:
                return self._reply(message)
            at = self._page.read() or nothing
            clock = within.seconds if at.limited else limits.SETUP_SECONDS
            left = at.since + clock - time.monotonic()
            if left <= 0:
                self._replace()
                setting = " (limits.seconds)" if at.limited else ""
                return _ended("timeout", at.name, "TimeLimit", f"stopped after the limit of {clock:g} s{setting}")
            self._output.cut()
            if self._memory.above(within.memory_mb):
                return self._too_large(at.name, within)
            wait = min(POLL_SECONDS, left)

    def _next(self, seconds: float) -> Message | None:
        """The next message of the process. Raises `EOFError` once it is dead, also if others hold its channel open."""
        found = self._channel.receive(seconds)
        if found is None and self._process.poll() is not None:
            found = self._channel.receive(0.0)  # sent just before
            if found is None:
                raise EOFError
        return found

    def _reply(self, message: Message) -> Reply:
        if "store_error" in message:
            raise StoreError(message["store_error"])
        reply = Reply(**message["reply"])
        if "error" in message["reply"]:
            reply.error = Failure(**message["reply"]["error"])
        reply.peak_mb = round(max(reply.peak_mb or 0.0, self._memory.seen_mb), 1)
        return reply

    # --- the end of a process -----------------------------------------------------------------------------------------

    def _died(self, phase: str, within: Limits, kills: int) -> Reply:
        code = fork_server.wait(self._process, EXIT_SECONDS)
        seen = self._memory.seen_mb
        self._replace()
        if code is None:
            return _ended("crashed", phase, "WorkerKilled", "the process closed the channel of its results")
        if code >= 0:
            return _ended("crashed", phase, "WorkerKilled", f"the process ended itself, with exit code {code}", seen)
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        text = f"the process was ended by {name} (exit code {code})"
        by_kernel = -code == signal.SIGKILL and kernel_kills() > kills
        if by_kernel or seen > limits.NEAR * within.memory_mb:
            why = "the kernel ran out of memory" if by_kernel else f"it used {seen:.0f} MB of memory"
            text += f": {why} (limits.memory_mb={within.memory_mb:g})"
            return _ended("oom", phase, "WorkerKilled", text, seen)
        return _ended("crashed", phase, "WorkerKilled", text, seen)

    def _too_large(self, phase: str, within: Limits) -> Reply:
        seen = self._memory.seen_mb
        self._replace()
        text = f"stopped at {seen:.0f} MB of resident memory, the limit is {within.memory_mb:g} MB (limits.memory_mb)"
        return _ended("oom", phase, "MemoryLimit", text, seen)

    def _replace(self) -> None:
        """A new process in place of this one. Raises `StoppedError` if the run is ending."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            self._end()
            self._last_words = self._output.take()
            self.close()
            self._start()

    def _end(self) -> None:
        process_tree.end([self._process.pid])
        fork_server.wait(self._process)
        GUARD.forget(self._process.pid)

    def leave(self) -> None:
        """Have no further request: an idle process then ends by itself."""
        with self._lock:
            self._stopped = True
            self._channel.hang_up()

    def stop(self, seconds: float = 0.0) -> None:
        """End the process, if it has not left within these seconds, and all below it, whatever it does.

        A request that is under way in another thread raises `StoppedError`.
        """
        fork_server.wait(self._process, seconds)
        with self._lock:
            self._stopped = True
            self._end()

    def close(self) -> None:
        """Let go of its files, once it has ended."""
        for one in (self._channel, self._page, self._output):
            one.close()


def _ended(status: str, phase: str, kind: str, message: str, peak_mb: float | None = None) -> Reply:
    return Reply(status, phase, Failure(kind, message), peak_mb=peak_mb)


class Guard:
    """A small process that outlives this one by an instant: when this one is gone, it ends those that it watches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: set[int] = set()
        self._process: subprocess.Popen[str] | None = None

    def watch(self, pid: int) -> None:
        """Have the session that this process leads, and all below it, ended with this process."""
        with self._lock:
            self._watched.add(pid)
            self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """Watch it no longer."""
        with self._lock:
            self._watched.discard(pid)
            self._tell(f"-{pid}\n")

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", process_tree.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                text=True,
                bufsize=1,
            )
            line = "".join(f"+{pid}\n" for pid in sorted(self._watched))
        assert self._process.stdin is not None
        self._process.stdin.write(line)


GUARD = Guard()


class Pair:
    """A process that sees the rows (mechanisms and metrics) and one that never does (models)."""

    def __init__(self) -> None:
        self.rows, self.model = Child(), Child()

    def stop(self) -> None:
        """End both at once, whatever they do."""
        self.rows.stop()
        self.model.stop()

    def close(self) -> None:
        """Let go of the files of both, of which nobody asks anything more."""
        self.rows.close()
        self.model.close()


class Pool:
    """Pairs that are kept between items, so that imports and data stay; as many as there are supervisors at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Pair] = []
        self._busy: list[Pair] = []
        self._closed = False

    @contextmanager
    def pair(self) -> Iterator[Pair]:
        """A pair for oneself. Raises `StoppedError` once the pool is closed."""
        with self._lock:
            if self._closed:
                raise StoppedError
            pair = self._idle.pop() if self._idle else Pair()
            self._busy.append(pair)
        failed = True
        try:
            yield pair
            failed = False
        finally:
            with self._lock:
                self._busy.remove(pair)
                closed = self._closed  # and the pair stopped
                if not (failed or closed):
                    self._idle.append(pair)
            if failed and not closed:  # it may still be at work
                pair.stop()
            if failed or closed:
                pair.close()

    def close(self) -> None:
        """Let the idle processes end by themselves, and end the others at once, whatever they do."""
        with self._lock:
            self._closed = True
            idle, busy = self._idle, [*self._busy]
        for pair in busy:
            pair.stop()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.leave()
        for child in (child for pair in idle for child in (pair.rows, pair.model)):
            child.stop(EXIT_SECONDS)
            child.close()
