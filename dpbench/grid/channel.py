"""Messages between two processes: JSON, which no plug-in can make execute anything, with bytes to pass on unread."""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress
from typing import Any

_LENGTHS = struct.Struct("!QQ")
_AT_ONCE = 2**20
Message = dict[str, Any]


class Channel:
    """One end of a socket pair. A message is a JSON object, perhaps with bytes."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()

    def send(self, message: Message, payload: bytes = b"", *, seconds: float | None = None) -> None:
        """Raises `OSError` if the other end is gone, or does not take the message within `seconds`."""
        text = json.dumps(message, allow_nan=False).encode()
        self._socket.settimeout(seconds)
        self._socket.sendall(_LENGTHS.pack(len(text), len(payload)) + text)
        if payload:
            self._socket.sendall(payload)

    def receive(self, seconds: float | None = None) -> tuple[Message, bytes] | None:
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

    def _whole(self) -> tuple[Message, bytes] | None:
        """The first message in the buffer, taken out of it."""
        start = _LENGTHS.size
        if len(self._buffer) < start:
            return None
        text, payload = _LENGTHS.unpack_from(self._buffer)
        if len(self._buffer) < start + text + payload:
            return None
        message: Message = json.loads(self._buffer[start : start + text])
        body = bytes(self._buffer[start + text : start + text + payload])
        del self._buffer[: start + text + payload]
        return message, body

    def hang_up(self) -> None:
        """Send no more: the other end comes to the end of the messages."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of this end."""
        self._socket.close()
