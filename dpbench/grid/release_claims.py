"""Claims: any number of runners share a plan, on one machine or on many, and each release is computed once.

A runner has one file, <root>/claims/<runner>, that says which process it is, and renews its time of change. A claim on
a release is a further link to that file, <release>.<n>: to link is atomic, on NFS too. The claim of a runner that is
gone is not touched; another runner makes claim n + 1, which only one can. Where there are no links a claim is a file of
its own, which only one can make, and is renewed as the runner's file is. Whoever holds a claim looks once more whether
the release is still wanted, so that a claim that is lost costs time, never a result.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from dpbench.files import Json
from dpbench.grid.store import Store

RENEW_SECONDS = 15.0
EXPIRE_SECONDS = 150.0  # a file server's clients may see a time of change a minute late

log = logging.getLogger(__name__)


class Claims:
    """The claims of one runner; several threads may share them."""

    def __init__(self, store: Store) -> None:
        self._folder = store.claims_folder
        self._file = self._folder / f"runner-{uuid.uuid4().hex}"
        self._text = json.dumps({**_process(os.getpid()), "host": os.uname().nodename})
        store.write_text(self._file, self._text)
        self._held: dict[str, int] = {}
        self._linked = True
        self._ended = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def take(self, identity: str) -> bool:
        """Claim a release; False if another runner, not known to be gone, has it."""
        for n in count():
            claim = self._folder / f"{identity}.{n}"
            try:
                self._make(claim)
            except FileExistsError:
                if self._gone(claim):
                    continue
                return False
            except OSError as error:
                log.warning("%s cannot be made (%s): another runner may do the same work", claim, error.strerror)
                return True
            self._held[identity] = n
            return True
        raise AssertionError

    def _make(self, claim: Path) -> None:
        if self._linked:
            try:
                os.link(self._file, claim)
                return
            except FileExistsError:
                raise
            except OSError:
                self._linked = False
        with claim.open("x") as file:
            file.write(self._text)

    def holders(self, identities: Iterable[str]) -> str:
        """Who has claimed these releases, in words, and how many each."""
        found = Counter[str]()
        last = {path.stem: path for path in sorted(self._folder.glob("*.*"), key=_turn)}
        for path in (last[identity] for identity in identities if identity in last):
            with suppress(FileNotFoundError):
                found[_described(path)] += 1
        return "; ".join(f"{count} by {holder}" for holder, count in found.items())

    def give_back(self, identities: Iterable[str]) -> None:
        """Withdraw claims, and those of runners that are gone before them: what was claimed is stored.

        One that cannot be removed counts for no more once this runner has ended.
        """
        for identity in identities:
            for n in range(self._held.pop(identity, -1), -1, -1):
                with suppress(OSError):
                    (self._folder / f"{identity}.{n}").unlink(missing_ok=True)

    def close(self) -> None:
        """Withdraw all claims, and tidy up after runners that are gone."""
        self._ended.set()
        with suppress(OSError):
            self.give_back(tuple(self._held))
            self._file.unlink(missing_ok=True)
            held = set()  # the last claim on a release counts, those before it stay as long
            for path in sorted(self._folder.iterdir(), key=_turn, reverse=True):
                if path.stem not in held and self._gone(path):
                    path.unlink(missing_ok=True)
                else:
                    held.add(path.stem)

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            own = () if self._linked else tuple(self._held.items())
            for path in (self._file, *(self._folder / f"{identity}.{n}" for identity, n in own)):
                with suppress(OSError):
                    os.utime(path)

    def _gone(self, claim: Path) -> bool:
        """Whether the runner of a claim is gone: known of one on this machine, else if it has not been renewed."""
        try:
            changed = claim.stat().st_mtime
            with suppress(PermissionError, IsADirectoryError, ValueError, LookupError, TypeError):  # whoever wrote it
                with claim.open() as file:  # on a file server, to open a file is to see its time of now
                    changed, holder = os.fstat(file.fileno()).st_mtime, json.load(file)
                if holder["machine"] == _process(os.getpid())["machine"]:
                    return bool(_process(holder["pid"])["started"] != holder["started"])
            os.utime(self._file)
            return self._file.stat().st_mtime - changed > EXPIRE_SECONDS  # both by the clock of the file server
        except OSError:
            return False  # withdrawn just now


def _turn(claim: Path) -> tuple[int, str]:
    return len(claim.suffix), claim.suffix


def _described(claim: Path) -> str:
    """The holder of a claim. Raises `FileNotFoundError` if it was withdrawn."""
    try:
        holder = json.loads(claim.read_text())
        pid, here = int(holder["pid"]), holder["machine"] == _process(os.getpid())["machine"]
        place = "this machine" if here else str(holder.get("host", "another machine"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, LookupError, TypeError):
        return f"a claim that cannot be read, such as {claim}: it expires {EXPIRE_SECONDS:.0f} s after its last change"
    if here and _state(pid) in ("T", "t"):
        return (
            f"process {pid} of this machine, which is stopped: kill -CONT {pid} has it go on, kill -KILL {pid} ends it"
        )
    return f"process {pid} of {place}"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _process(pid: int) -> Json:
    """A process, distinguished from all others: the machine with its namespace of ids, the id and when it was started.

    `started` is None if there is no such process, or it has ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # proc(5): from the state on
        started = None if stat[0] in "ZX" else stat[19]
    except OSError:
        started = None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        machine = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        machine = uuid.uuid4().hex  # unknown: claims expire
    return {"machine": machine, "pid": pid, "started": started}
