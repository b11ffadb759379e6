"""Digests of code: of all that a target imports, and of a function of the user's own with the names that it uses.

They are taken of syntax trees, so that comments, docstrings and layout do not count; of a function of the user's own
neither does the text of messages.

A `Memo` keeps what was found once in a file, for other processes; it can be lost without harm.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.files import Json, write_file
from dpbench.grid.seeds import digest, salt_file
from dpbench.resources import PACKAGE
from dpbench.targets import file_below, own_folder, shipped_file

Stamp = tuple[int, int]  # time of the last change and size of a file
_KNOWN: dict[tuple[str, Path | None], tuple[str, dict[Path, Stamp]]] = {}  # digests, and the files that they rest on
LOGGERS = {"log", "logger", "logging", "warnings"}  # names whose calls, like `print`, say what they are given

# --- all that a target imports -------------------------------------------------------------------------------------
MOST = 2_000  # answers that are kept


def code_of(target: str) -> str:
    """A digest of the code behind `target`: its module and whatever that imports from the project or the user's folder.

    It is of the files as they are now. Modules that are named in a string, to be imported later, count as imported, and
    so do the packages that hold a user's modules.
    """
    return codes_of([target])[target]


def codes_of(targets: Iterable[str]) -> dict[str, str]:
    """`code_of` each target, with one look at each file."""
    stamp = cache(_stamp)
    return {target: _code_of(target.rpartition(".")[0], stamp) for target in dict.fromkeys(targets)}


def _code_of(module: str, stamp: Callable[[Path], Stamp]) -> str:
    known, stamps = _KNOWN.get((module, own_folder()), ("", {}))
    if known and all(stamp(path) == before for path, before in stamps.items()):
        return known
    found: dict[str, str] = {}
    stamps, waiting, seen = {}, [module], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = file_of(name)
        if path is None:
            continue
        stamps[path] = stamp(path)
        found[name], imports = _read(path, name, *stamps[path])
        waiting += imports
        if not name.startswith(f"{PACKAGE.name}."):  # the project's packages hold names for what is imported from them
            waiting.append(name.rpartition(".")[0])  # an import runs the package's own file first
    _KNOWN[module, own_folder()] = digest(found), stamps
    with suppress(UserError, OSError):  # where it cannot be written, the next process reads them again
        salt_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _texts(salt_file()).keep()
    return digest(found)


def verify_code(name: str, target: str, code: str | None) -> None:
    """`UserError` unless the code behind a part of a plan, by name and target, is that which the plan was made with."""
    if code != code_of(target):
        raise UserError(
            f"the code of {name} ({target}, or what it imports) is not that of the plan; run the line "
            "again from the start, or submit it again, so that a new plan is made"
        )


def _stamp(path: Path) -> Stamp:
    try:
        found = os.stat(path)  # Path.stat takes twice as long, and every plan asks thousands of times
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def file_of(module: str) -> Path | None:
    """The file of a module of the project or of the user's folder; None for any other."""
    if module == PACKAGE.name:  # this file holds the version and nothing that computes
        return None
    if is_ours(module):
        return shipped_file(module)
    root = own_folder()
    return file_below(root, module) if root and module else None


def is_ours(name: str) -> bool:
    """Whether it names a module or function of the project."""
    return name.startswith(f"{PACKAGE.name}.")


@lru_cache(maxsize=4)
def _texts(salt: Path) -> Memo:
    """The digest and the imports of each text that was read before, by any process: to parse it takes long.

    It stands by the salt, where nobody else may write: noise for private rows depends on these digests.
    """
    return Memo(salt.with_name("code.json"))


@lru_cache(maxsize=1024)
def _read(path: Path, module: str, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
    """The digest of a module's code, and the names of the modules that it may import."""
    package, text, memo = _package(module, path), path.read_bytes(), _texts(salt_file())
    key = hashlib.sha256(f"{sys.version_info[:2]} {package}\0".encode() + text).hexdigest()
    match memo.get(key):
        case [str(known), *names]:
            return known, tuple(map(str, names))
    tree = _tree(text, path.name)
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    _drop_docstrings(tree)
    found = hashlib.sha256(ast.unparse(tree).encode()).hexdigest()
    memo.add(key, [found, *imports])
    return found, imports


def _tree(text: bytes, name: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{name} cannot be read as Python: {error}") from error


def _package(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"dpbench(\.\w+)+", node.value)
        ):
            yield node.value
            yield node.value.rpartition(".")[0]


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module that names are imported from."""
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join(filter(None, [*above, node.module]))


def _drop_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]


def _text(tree: ast.AST) -> str:
    """What a tree does: the source without docstrings, and without the text of messages. The tree is changed."""
    _drop_docstrings(tree)
    for node in ast.walk(tree):
        for message in _messages(node):
            for part in ast.walk(message):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    part.value = ""
    return ast.unparse(tree)


def _messages(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement whose text is a message: what it raises, prints, logs or warns."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield node.exc
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield node.msg
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        owner = called.value if isinstance(called, ast.Attribute) else called
        if isinstance(owner, ast.Name) and owner.id in (LOGGERS if owner is not called else {"print"}):
            yield node.value


# --- a function of the user's own ----------------------------------------------------------------------------------


def function_digest(target: str) -> tuple[str, tuple[str, ...]]:
    """A digest of a function of the user's own and of the names that it uses, and what it uses of the project.

    A name stands for the statements of its module that bind or change it, and for the names that these use in turn. One
    that is imported from the user's folder is followed there; of one from elsewhere its origin alone counts.
    """
    found: dict[str, str] = {}
    waiting = [target]
    while waiting:
        name = waiting.pop()
        if name in found or is_ours(name):
            found[name] = "" if is_ours(name) else found[name]
            continue
        module, _, attribute = name.rpartition(".")
        path = file_of(module)
        if path is None or file_of(name) is not None:  # from elsewhere, or a module as a whole
            path = file_of(name)
            found[name] = "" if path is None else "".join(_file(path, name, *_stamp(path)).whole())
            waiting += [] if path is None else _file(path, name, *_stamp(path)).origins.values()
            continue
        one = _file(path, module, *_stamp(path))
        found[name], used = one.named(attribute)
        waiting += used
    return digest(found), tuple(sorted(name for name in found if is_ours(name)))


@lru_cache(maxsize=256)
def _file(path: Path, module: str, mtime: int, size: int) -> _Names:
    return _Names(_tree(path.read_bytes(), path.name), module, _package(module, path))


class _Names:
    """The names of a module: which statements bind or change each, and where those that it imports come from."""

    def __init__(self, tree: ast.Module, module: str, package: str) -> None:
        self.module = module
        self.origins: dict[str, str] = {}  # a name, or "*" with its module -> what is imported
        self._statements: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for statement in tree.body:
            bound = dict.fromkeys([*_bound(statement)])
            for node in ast.walk(statement):
                if isinstance(node, ast.Import):
                    for alias in node.names:
                        self.origins[alias.asname or alias.name.split(".")[0]] = alias.name
                elif isinstance(node, ast.ImportFrom):
                    base = _base(node, package)
                    for alias in node.names:
                        name = f"* {base}" if alias.name == "*" else alias.asname or alias.name
                        self.origins[name] = base if alias.name == "*" else f"{base}.{alias.name}"
            used = tuple(dict.fromkeys(_used(statement)))
            if not isinstance(statement, (ast.Import, ast.ImportFrom)):
                text = _text(statement)
                for name in bound:
                    self._statements.setdefault(name, []).append((text, used))

    def named(self, attribute: str) -> tuple[str, list[str]]:
        """The text behind a name, and the full names that it uses."""
        stars = [origin for name, origin in self.origins.items() if name.startswith("* ")]
        if attribute in self.origins and attribute not in self._statements:
            return f"= {self.origins[attribute]}", [self.origins[attribute]]
        statements = self._statements.get(attribute, [])
        used = [self._full(name) for _, names in statements for name in names]
        return "\n".join(text for text, _ in statements), [*filter(None, used), *(stars if statements else [])]

    def whole(self) -> Iterator[str]:
        """The texts of all statements."""
        return (text for statements in self._statements.values() for text, _ in statements)

    def _full(self, name: str) -> str:
        """The full name of what a statement uses, empty for one that the module does not have."""
        first, _, rest = name.partition(".")
        if first in self.origins:
            origin = self.origins[first]
            return f"{origin}.{rest}" if rest and file_of(origin) and not file_of(f"{origin}.{first}") else origin
        return f"{self.module}.{first}" if first in self._statements else ""


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds, or may change: those it defines, assigns to or, as an expression,
    calls something with.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    changes = isinstance(statement, ast.Expr)
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and (changes or not isinstance(node.ctx, ast.Load)):
            yield node.id
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield from (part.id for part in ast.walk(node.value) if isinstance(part, ast.Name))


def _used(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement reads, with their first attribute: "helpers.noise"."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name):
            yield node.id


class Memo:
    """Answers (JSON) by key, as they stand in a file, and those that are added; the last `MOST` are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known, self._added = self._stored(), Json()

    def get(self, key: str) -> Any:
        """The answer, None where there is none."""
        return self._added.get(key, self._known.get(key))

    def add(self, key: str, answer: Any) -> None:
        """Hold an answer, until `keep` writes it."""
        self._added[key] = answer

    def keep(self) -> None:
        """Write what was added, if anything, to what others have written meanwhile. Raises `UserError` if it cannot."""
        if self._added:
            self._known, self._added = {**self._stored(), **self._added}, {}
            write_file(self._path, json.dumps(dict(list(self._known.items())[-MOST:])))

    def _stored(self) -> Json:
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads(self._path.read_text())
            return found if isinstance(found, dict) else {}
        return {}
