"""Files that are written in one step, so that a reader never meets half of one; packed files that come from anyone."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpbench.errors import UserError

Json = dict[str, Any]  # an object of JSON, as it stands in a file or a message
Node = Mapping[str, Any]  # of a config: what YAML may hold, by key
ROOM, TIMES = 2**26, 200  # bytes that any packed file may unpack to; times its size that a larger one may (ours: 25)
DECODER_BYTES = 2**28  # of memory, for its dictionary


@contextmanager
def usual_mode() -> Iterator[None]:
    """After this context new files can be read by whom they could be before it."""
    mask = os.umask(0o077)
    os.umask(mask)
    try:
        yield
    finally:
        os.umask(mask)


def for_owner_alone() -> None:
    """From now on nobody else may read the files and folders that this process, and those that it starts, make."""
    os.umask(0o077)


def read_xz(path: Path) -> bytes:
    """What an xz file holds, which may come from anyone.

    Raises `ValueError` if it is damaged, or unpacks to more than `TIMES` its size; `OSError` if it cannot be read.
    """
    packed = path.read_bytes()
    most, decoder = max(ROOM, TIMES * len(packed)), lzma.LZMADecompressor(memlimit=DECODER_BYTES)
    try:
        content = decoder.decompress(packed, most + 1)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    if len(content) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes, {TIMES} times its size")
    if not decoder.eof or decoder.unused_data:
        raise ValueError("it was cut, or something was added to it")
    return content


def write_file(path: Path, content: bytes | str) -> Path:
    """Put `content` (text as UTF-8) at `path` in one step, making its folder if need be.

    Raises `UserError` if the folder cannot be written to or is full; what stood at `path` is then untouched.
    """
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_bytes(data)
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; give a folder that can be written to and has space left"
        ) from error
    return path
