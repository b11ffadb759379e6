"""Files that are written aside, then renamed, so that a reader never meets half a file."""

from __future__ import annotations

import os
from pathlib import Path

from dpbench.errors import UserError


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
