"""Messages between two processes, JSON, which no plug-in can make execute anything; and memory that they share.

What a process is at changes a dozen times a trial, and its supervisor asks now and then: it stands on a page of that.
What it prints stands there too: it is taken when a request ends, by the process, or by its supervisor if it died.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple, TypedDict

from dpbench.files import Json
from dpbench.grid.log_file import Place
from dpbench.grid.provenance import Provenance
from dpbench.grid.records import ScoreData

_LENGTH = struct.Struct("!Q")
_PHASE = struct.Struct("=d?16s")
_AT_ONCE = 2**20
PRINTED = 20_000  # bytes that are kept of what is printed at one request
Message = Json


class Took(TypedDict):
    """What a release or a fit took; None where that is secret or was not measured."""

    seconds: float | None
    peak_mb: float | None


class Answer(TypedDict, total=False):
    """What came of a request, JSON-ready, as far as it came: of a check, a release, a fit, and its scores."""

    user_error: str
    absent: bool
    cautions: list[str]
    wrong: list[str]
    provenance: Provenance
    runtime: Took
    spent: dict[str, float | str | None]
    arrays_sha256: str
    hidden: bool
    nonprivate_inputs: list[str]
    reported: dict[str, int]
    place: Place
    notes: Json
    scores: list[ScoreData]


class Channel:
    """One end of a socket pair. A message is a JSON object."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()

    def send(self, message: Message, *, seconds: float | None = None) -> None:
        """Raises `OSError` if the other end is gone, or does not take the message within `seconds`."""
        text = json.dumps(message, allow_nan=False).encode()
        self._socket.settimeout(seconds)
        self._socket.sendall(_LENGTH.pack(len(text)) + text)

    def receive(self, seconds: float | None = None) -> Message | None:
        """The next message; None if it is not there, whole, within `seconds`.

        Raises `EOFError` if the other end is gone, `ValueError` if what it sent is no message.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while (message := self._whole()) is None:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            self._socket.settimeout(left)
            try:
                came = self._socket.recv(_AT_ONCE)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError as error:
                raise EOFError from error
            if not came:
                raise EOFError
            self._buffer += came
        return message

    def _whole(self) -> Message | None:
        """The first message in the buffer, taken out of it."""
        start = _LENGTH.size
        if len(self._buffer) < start:
            return None
        end = start + _LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) < end:
            return None
        message: Message = json.loads(self._buffer[start:end].decode())
        del self._buffer[:end]
        return message

    def hang_up(self) -> None:
        """Send no more: the other end comes to the end of the messages."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of this end."""
        self._socket.close()


def memory() -> IO[bytes]:
    """A file without a name, which lies on no disk where the system can do without (Linux)."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("dpbench"), "r+b")
    return tempfile.TemporaryFile()


class Phase(NamedTuple):
    """What a process is at, whether `limits.seconds` holds for it, and since when, by `time.monotonic`."""

    name: str
    limited: bool
    since: float


class Page:
    """Memory that holds the `Phase` of one process, and that another one may read at any time."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)

    @staticmethod
    def file() -> IO[bytes]:
        """A file for the memory."""
        file = memory()
        file.truncate(mmap.PAGESIZE)
        return file

    def write(self, name: str = "", *, limited: bool = False) -> None:
        """Begin a phase; none where there is no work."""
        _PHASE.pack_into(self._memory, 0, time.monotonic(), limited, name.encode())

    def read(self) -> Phase | None:
        """The phase that was begun last."""
        since, limited, name = _PHASE.unpack_from(self._memory)
        return Phase(name.rstrip(b"\0").decode(), limited, since) if name[0] else None

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()


class Printed:
    """What a process and those below it print into a file of `memory`; of much, the last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # whoever prints goes on at the end, also after a cut

    def fileno(self) -> int:
        """The number of the file."""
        return self._file.fileno()

    def cut(self) -> None:
        """Drop what will not be kept, if it is much."""
        if os.fstat(self.fileno()).st_size > 100 * PRINTED:
            last = self._last()
            os.ftruncate(self.fileno(), 0)
            os.write(self.fileno(), last)

    def take(self) -> str:
        """What was printed, and empty the file."""
        last = self._last()
        os.ftruncate(self.fileno(), 0)
        said = f"[the last {PRINTED:,} bytes of what was printed]\n" if len(last) > PRINTED else ""
        return said + last[-PRINTED:].decode(errors="replace")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _last(self) -> bytes:
        """What is to be kept, and one byte more if there is more."""
        size = os.fstat(self.fileno()).st_size
        return os.pread(self.fileno(), PRINTED + 1, max(size - PRINTED - 1, 0))


class Work:
    """A request that is being worked on; the page tells each phase as it begins.

    `facts`: the answer, also if an error ends the work. `current`: the phase. `seconds`: of each phase.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self.current = "setup"
        self.facts: Answer = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, *, limited: bool = False) -> Iterator[None]:
        """A part of the work with a clock of its own; `limited` by limits.seconds."""
        self._page.write(name, limited=limited)
        self.current, start = name, time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)
