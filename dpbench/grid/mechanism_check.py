"""What `dpbench check` tests of a mechanism, and what its code does outside of Python's memory meanwhile.

Files, connections and programs are seen as far as Python itself opens them (PEP 578), not those that a library in
another language opens.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dpbench.audit.neighbours import odd_tables
from dpbench.audit.replay import check_replay, exemption
from dpbench.config import Part
from dpbench.contracts import check_columns
from dpbench.data.table import Table
from dpbench.errors import ContractError, NoEstimateError, UserError
from dpbench.grid.channel import Message, Work
from dpbench.grid.records import PartKey
from dpbench.grid.tiny_tables import SEED, bytes_of, design_of, made, small, tables, tiny_table
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import Tape, record
from dpbench.releases import Release, check_release
from dpbench.resources import PACKAGE
from dpbench.targets import forget_own, is_shipped, own_folder

Check = tuple[str, list[str]]  # what is checked, and what is wrong with it: nothing, if the list is empty

BUDGETS = ((1.0, 1e-5), (0.1, 1e-6))
ROUNDING = 1e-9
UNSEEN = (
    "not seen: Python code is not sandboxed. Code that means to deceive can: it may detect that it is being checked, "
    "act on tables of other sizes or attributes alone, keep rows outside of its own modules, open files through a "
    "library, or change dpbench itself. Run mechanisms of people whom you trust, and read them"
)
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


def check_mechanism(part: Part, given: tuple[str, ...] = ()) -> Iterator[Check]:
    """Under each budget and relation it runs, keeps the ledger's promise, draws its noise from the generator that it is
    given, and reads the rows through its noise only, on tables of several shapes and sizes.

    Own code must not open files, connections or programs meanwhile; its modules are imported anew between the runs on
    two tables. `given`: the settings of the line, which stay as they are.
    """
    part, table = small(part, given), tiny_table(labels=part.labels)
    before = bytes_of(table)
    with watched() as seen:
        forget_own()  # what is done at its import is seen, too
        fine = yield from _runs(part, table)
        same = bytes_of(table) == before
        yield "it leaves its input as it was", [] if same else ["it wrote into the training rows"]
        if fine and part.private:
            yield "its noise is drawn from the generator that it is given", list(_foreign_noise(part, table))
            yield from _reads(part, table)
    if not is_shipped(part.target):
        yield "it opens no file, connection or program", [f"it {what}" for what in seen]


def serve(request: Message, work: Work) -> None:
    """Check the mechanism of a request: the facts `wrong`. For a process that sees no rows."""
    key = PartKey.from_dict(request["mechanism"])
    part = Part(
        *("mechanism", key.name, key.target, key.parameters),
        offers=tuple(request["offers"]),
        relations=tuple(request["relations"]),
        private=request["private"],
        labels=request["labels"],
    )
    work.facts["wrong"] = []
    with work.phase("check", limited=True):
        for what, problems in check_mechanism(part):
            work.facts["wrong"] += [f"{what}: {problem}" for problem in problems]


def _runs(part: Part, table: Table) -> Generator[Check, None, bool]:
    """Each budget and relation; whether what it releases can be checked further."""
    budgets = [Budget(*pair, relation) for relation in part.relations for pair in BUDGETS]
    for budget in budgets if part.private else [Budget(math.inf, 1e-5, part.relations[0])]:
        where = f"epsilon={budget.epsilon:g}, {budget.relation}"
        try:
            release = made(part, table, budget=budget)
        except NoEstimateError as error:
            yield f"it says where there is no estimate ({where}: {error})", []
            continue
        wrong = wrong_with(check_release, release, part.offers, budget, table.domain)
        wrong = wrong or (wrong_with(check_columns, release, design_of(table)) if part.takes("design") else [])
        yield f"a release of what it offers ({where})", wrong
        if wrong:
            return False
        yield f"a ledger within the budget ({where})", list(_overspent(release, budget, part))
        yield f"the release survives being stored ({where})", list(_not_stored(release))
        again = made(part, table, budget=budget)
        same = bytes_of(release) == bytes_of(again)
        yield f"the same generator gives the same release ({where})", [] if same else ["it gives another one"]
    return True


def _overspent(release: Release, budget: Budget, part: Part) -> Iterator[str]:
    events = release.ledger.events
    if not part.private:
        return
    if not events:
        yield "it is empty, as if nothing had been drawn or read"
        return
    exact = [event.label for event in events if getattr(event, "kind", "") == "exact"]
    if exact:
        yield f"{exact[0]!r} is read without noise; a mechanism that is not private says _relations_: []"
        return
    cost = spent(release.ledger, budget.delta).epsilon
    if not cost <= budget.epsilon * (1 + ROUNDING):
        yield f"its noise costs epsilon = {cost:.6g} at delta = {budget.delta:g}, and {budget.epsilon:g} was asked for"


def _not_stored(release: Release) -> Iterator[str]:
    """How the release differs from what is read back of it."""
    data, arrays = release.to_parts()
    back = Release.from_parts(json.loads(json.dumps(data, allow_nan=False)), arrays)
    if bytes_of(back) != bytes_of(release):
        yield "what is read back is another release"


def _foreign_noise(part: Part, table: Table) -> Iterator[str]:
    """Noise of another generator than the one given, or one spawned from it: anybody may be able to draw it again."""
    budget, states = Budget(*BUDGETS[0], part.relations[0]), dict[str, int]()
    for seed in (SEED, SEED + 1, SEED + 2):
        with record() as tape, suppress(NoEstimateError):
            made(part, table, seed, budget=budget)
        for label, state, origin in _drawn(tape):
            if origin != np.random.SeedSequence(seed).entropy:
                yield f"the noise of {label!r} is of another generator than it was given, or one spawned from it"
                return
            if states.setdefault(state, seed) != seed:
                yield f"two generators give the same noise of {label!r}"
                return


def _drawn(tape: Tape) -> Iterator[tuple[str, str, object]]:
    """Label, state of the generator and its origin, of each draw of noise."""
    for entry in tape:
        if entry.state is not None:
            yield entry.label, repr(entry.state), entry.origin


def _reads(part: Part, table: Table) -> Iterator[Check]:
    """What recording its noise and replaying it on other tables finds, each time with its modules as they were read."""
    with suppress(NoEstimateError):
        if exemption(made(part, table, budget=Budget(*BUDGETS[0], part.relations[0]))) is not None:
            return

    def checked(where: str, rows: Table, relation: str) -> Check:
        budget = Budget(*BUDGETS[0], relation)

        def fresh(other: Table, rng: int | np.random.Generator = SEED) -> Release:
            forget_own()
            return made(part, other, rng, budget=budget)

        text = f"rows are read through its noise only ({where})"
        try:
            with suppress(NoEstimateError):
                fresh(rows)
        except UserError as error:
            return f"{text}: it refuses them, {error}", []
        return text, check_replay(fresh, rows, relation=relation)

    for relation in part.relations:
        yield checked(relation, table, relation)
    for shape, rows in (*tables(labels=part.labels), *odd_tables(table).items()):
        yield checked(f"{part.relations[0]}, {shape}", rows, part.relations[0])


def wrong_with(check: Callable[..., Any], *arguments: Any) -> list[str]:
    """What a check of `dpbench.contracts` says."""
    try:
        check(*arguments)
    except ContractError as error:
        return [str(error)]
    return []


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
    return f"reads a file, {Path(name).name}, which is not recorded in the ledger"
