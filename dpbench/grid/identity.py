"""What identifies a result besides its settings: the code that made it and the rows it was made from."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpbench.data.load import fingerprint, is_public, load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.grid.records import PartKey
from dpbench.grid.seeds import digest, keyed
from dpbench.resources import PACKAGE
from dpbench.targets import own_folder

# --- code ----------------------------------------------------------------------------------------------------------


def code_of(target: str) -> str:
    """A digest of the code behind `target`: its module and whatever that imports from the project or the user's folder.

    It is taken of the syntax trees, without comments and docstrings, and of the files as they are now. Modules that
    are named in a string, to be imported later, count as imported, and so do the packages that hold a user's modules.
    """
    module = target.rpartition(".")[0]
    known, stamps = _KNOWN.get((module, own_folder()), ("", {}))
    if known and all(_stamp(path) == stamp for path, stamp in stamps.items()):
        return known
    found: dict[str, str] = {}
    stamps, waiting = {}, [module]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name in found or path is None:
            continue
        stamps[path] = _stamp(path)
        found[name], imports = _read(path, name, *stamps[path])
        waiting += imports
        if not name.startswith(f"{PACKAGE.name}."):  # the project's packages hold names for what is imported from them
            waiting.append(name.rpartition(".")[0])  # an import runs the package's own file first
    _KNOWN[module, own_folder()] = digest(found), stamps
    return digest(found)


Stamp = tuple[int, int]  # time of the last change and size of a file
_KNOWN: dict[tuple[str, Path | None], tuple[str, dict[Path, Stamp]]] = {}  # digests, and the files that they rest on


def _stamp(path: Path) -> Stamp:
    found = path.stat() if path.exists() else None
    return (found.st_mtime_ns, found.st_size) if found else (0, 0)


def verify_code(part: PartKey) -> None:
    """`UserError` unless the code of a part of a plan is that which the plan was made with."""
    if part.code != code_of(part.target):
        raise UserError(
            f"the code of {part.name} ({part.target}, or what it imports) is not that of the plan; run the line "
            "again from the start, or submit it again, so that a new plan is made"
        )


def _file_of(module: str) -> Path | None:
    """The file of a module of the project or of the user's folder; None for any other."""
    if module == PACKAGE.name:  # this file holds the version and nothing that computes
        return None
    root = PACKAGE.parent if module.startswith(f"{PACKAGE.name}.") else own_folder()
    if root is None or not module:
        return None
    below = root.joinpath(*module.split("."))
    return next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)


@lru_cache(maxsize=1024)
def _read(path: Path, module: str, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
    """The digest of a module's code, and the names of the modules that it may import."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path.name} cannot be read as Python: {error}") from error
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    imports = tuple(dict.fromkeys(_imports(tree, package)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest(), imports


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"dpbench(\.\w+)+", node.value)
        ):
            yield node.value
            yield node.value.rpartition(".")[0]


# --- rows ----------------------------------------------------------------------------------------------------------


def dataset_key(config: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset as it stands in a key. The checksums of private rows are keyed (HMAC) with the secret salt.

    The loaders of the project declare the files that they read. What a user's own reads nobody else knows: its rows
    are loaded for a checksum of themselves, so that others never share their noise; one that draws rows has its code.

    Raises `UserError` if the data cannot be read or their declaration is wrong.
    """
    found = fingerprint(config)
    found["domain"] = digest(found.pop("attributes"))
    if not found["_target_"].startswith(f"{PACKAGE.name}."):
        rows = load_dataset(config)
        if isinstance(rows, Simulation):
            found["sources"] |= {"code": code_of(found["_target_"])}
        else:
            found["sources"] |= {"rows": _sha256(rows)}
    if not is_public(config):
        found["sources"] = {name: keyed(sha256) for name, sha256 in found["sources"].items()}
    return found


def _sha256(table: Table) -> str:
    found = hashlib.sha256(table.codes.tobytes())
    for name, column in sorted(table.numbers.items()):
        found.update(name.encode() + column.tobytes())
    return found.hexdigest()


def verify_data(config: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    """`UserError` unless the data of a plan's dataset are those which the plan was made with."""
    now = dataset_key(config)
    changed = [name for name in key if now.get(name) != key[name]]
    if changed:
        raise UserError(
            f"dataset={key['name']}: its {' and '.join(changed)} changed after the plan was made; restore the data, or "
            "run the line again from the start, so that a new plan is made (with the salt of the machine that made the "
            "plan, if the data are private)"
        )
