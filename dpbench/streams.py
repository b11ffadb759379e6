"""Standard streams that a run does not depend on: what nobody can take is not said, and the run goes on."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


class Unheard(io.TextIOWrapper):
    """A stream of text. From its first error on, what is written goes nowhere."""

    def write(self, text: str, /) -> int:
        """Write, or do not."""
        try:
            return super().write(text)
        except OSError:
            self._hush()
            return len(text)

    def flush(self) -> None:
        """Flush, or do not."""
        try:
            super().flush()
        except OSError:
            self._hush()

    def _hush(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        with suppress(OSError):
            super().flush()  # what it still holds


def open_streams() -> None:
    """Have all three standard streams open, so that no file of ours takes the place of one that is closed, and errors
    written to one that is `Unheard`.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_writer(1))
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = Unheard(_writer(2), errors="backslashreplace", line_buffering=True)


def _writer(descriptor: int) -> io.BufferedWriter:
    return io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
