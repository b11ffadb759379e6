"""What own code does outside of Python's memory while it is watched: files, connections and programs.

It sees what Python itself opens (PEP 578), not what a library in another language does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from dpbench.resources import PACKAGE
from dpbench.targets import own_folder

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CODE = (".py", ".pyc", ".pyi", ".so", ".pth")  # a file of this kind may be read: it is imported
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib")  # what libraries look at
_OTHERS = {
    "socket.connect": "connects to another process or machine",
    "socket.sendto": "sends something to another process or machine",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.exec": "starts a program",
    "os.posix_spawn": "starts a program",
    "sqlite3.connect": "opens a database",
}
_seen: list[dict[str, None]] = []  # what is seen, by those who watch
_installed: list[bool] = []  # a hook stays for as long as the process


@contextmanager
def watched() -> Iterator[dict[str, None]]:
    """What is seen within the block, each once, as sentences without a subject."""
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    found: dict[str, None] = {}
    _seen.append(found)
    try:
        yield found
    finally:
        _seen.remove(found)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _seen:
        return
    text = _OTHERS.get(event) or (_of_file(*arguments) if event == "open" else None)
    if text is not None and not _importing():
        for found in _seen:
            found[text] = None


def _importing() -> bool:
    """Whether a library is being imported, which may look for files of its own, and no own code runs below that."""
    folder = own_folder()
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if folder is not None and name.startswith(f"{folder}{os.sep}"):
            return False
        if name.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _of_file(path: Any, mode: Any, flags: Any) -> str | None:
    """What is said of a file that is opened; None if anybody may open it so."""
    if not isinstance(path, str | bytes | os.PathLike):  # a descriptor that is open
        return None
    name = os.path.abspath(os.fsdecode(path))
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITES)
    if writes:
        quiet = name == os.devnull or "__pycache__" in name
        return None if quiet else f"writes to a file, {Path(name).name}"
    roots = (f"{PACKAGE}{os.sep}", f"{sys.prefix}{os.sep}", f"{sys.base_prefix}{os.sep}", *_SYSTEM)
    if name.endswith(_CODE) or name.startswith(roots) or os.path.isdir(name):
        return None
    return f"reads a file, {Path(name).name}, of which no ledger tells"
