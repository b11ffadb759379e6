"""What a `_target_` may name: a function of the package's own layer for its kind, or one of the user's own folder.

A config is data and may come from anyone. So a `_target_` is read in few places (the top of a part, and of a dataset,
its `attributes` and its `sources`), it is resolved to a module file before anything is imported, and that file lies in
the package or in the folder of --config-dir.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dpbench.errors import UserError, shown, text_of
from dpbench.resources import PACKAGE

FOLDER = "DPBENCH_CONFIG_DIR"  # the environment variable that passes the user's own folder to child processes
GROUP = "dpbench.config_dir"  # of the entry points with which packages bring a folder of configs
LAYERS = {
    "mechanism": "mechanisms",
    "model": "models",
    "metric": "metrics",
    "dataset": "data",
    "figure": "report",
    "table": "report",
}
PAPERS = "papers"  # parts of any kind that one paper alone has


def config_folder(given: str | Path) -> Path:
    """A folder of configs; where there is none, the one that an installed package of the entry point `given` brings.

    The entry point, of the group `GROUP`, names the package whose folder it is; nothing of it is imported yet. Raises
    `UserError` if there is neither.
    """
    folder = Path(given)
    if folder.is_dir():
        return folder
    from importlib.metadata import entry_points

    known = {point.name: point.value for point in entry_points(group=GROUP)}
    if str(given) not in known:
        named = f", and no installed package brings one of that name (there is: {', '.join(known)})" if known else ""
        raise UserError(f"config_dir {given}: no such folder{named}")
    top, *below = known[str(given)].split(".")
    found = find_spec(top)
    places = [Path(place, *below) for place in (found and found.submodule_search_locations) or ()]
    if not (folders := [place for place in places if place.is_dir()]):
        raise UserError(f"config_dir {given}: the package {known[str(given)]}, which is to hold it, is not there")
    return folders[0]


def use_folder(folder: Path | None) -> None:
    """Make `folder` the user's own for this process and its children, in place of any other; None for none.

    Modules that were imported from the one before are forgotten, so that a name means the file that is there now.
    """
    before = own_folder()
    now = folder.resolve() if folder is not None else None
    if before == now:
        return
    path = [item for item in os.environ.get("PYTHONPATH", "").split(os.pathsep) if item and item != str(before)]
    if before is not None:
        sys.path[:] = [item for item in sys.path if item != str(before)]
        forget_own()
        os.environ.pop(FOLDER)
    if now is not None:
        sys.path.insert(0, str(now))
        path.insert(0, str(now))
        os.environ[FOLDER] = str(now)
        importlib.invalidate_caches()
    os.environ["PYTHONPATH"] = os.pathsep.join(path)


def forget_own() -> None:
    """Forget the modules that were imported from the user's own folder: what they hold is gone, and they are imported
    anew when they are next named.
    """
    if (folder := own_folder()) is None:
        return
    start = f"{folder}{os.sep}"
    others = _others(start)  # there are thousands, and a check forgets its own hundreds of times
    for name, module in list(sys.modules.items()):
        if others.get(name) is module:
            continue
        if str(getattr(module, "__dict__", {}).get("__file__")).startswith(start):
            del sys.modules[name]
        else:
            others[name] = module


@lru_cache(maxsize=1)
def _others(start: str) -> dict[str, ModuleType]:
    """The modules that were found not to be in the folder with this name, by their own."""
    return {}


def own_folder() -> Path | None:
    """The user's own folder, if one is in use."""
    return Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None


def is_shipped(target: str) -> bool:
    """Whether it names a function of the package, not of a user's own folder."""
    return target.startswith(f"{PACKAGE.name}.")


def resolve(kind: str, target: object, where: str = "_target_") -> Callable[..., Any]:
    """The function that a `_target_` of this kind (see `LAYERS`) names, such as dpbench.mechanisms.aim.aim.

    Raises `UserError`, which begins with `where`, for anything but a function of the kind's own layer of the package or
    of a paper, or of a module in the user's own folder; nothing outside of them is imported.
    """
    if not isinstance(target, str) or not re.fullmatch(r"[A-Za-z_]\w{0,99}(\.[A-Za-z_]\w{0,99}){1,9}", target):
        raise UserError(f"{where} must name a function, such as my_module.my_function, not {shown(target)}")
    module_name, _, name = target.rpartition(".")
    file = _file_of(module_name, kind)
    if file is None:
        folder = own_folder()
        own = f"in {folder}" if folder is not None else "in a folder that --config-dir names"
        raise UserError(
            f"{where}: {target!r} is not allowed: it must be a function of a module in dpbench.{LAYERS[kind]}, or {own}"
        )
    module = _import(module_name, file, f"{where}: {target!r}")
    function = getattr(module, name, None)
    if function is None:
        raise UserError(f"{where}: {file} has no function {name!r}")
    if not callable(function):
        raise UserError(f"{where}: {name!r} of {file} is {type(function).__name__}, not a function")
    if module_name.startswith(f"{PACKAGE.name}.") and getattr(function, "__module__", None) != module_name:
        raise UserError(f"{where}: {name!r} is not defined in {file}; name the module that defines it")
    function_of: Callable[..., Any] = function
    return function_of


def _file_of(module: str, kind: str) -> Path | None:
    """The file of a module that a `_target_` of this kind may name, found without importing anything."""
    words = module.split(".")
    if words[0] == PACKAGE.name:
        return shipped_file(module) if words[1:2] in ([LAYERS[kind]], [PAPERS]) else None
    folder = own_folder()
    return None if folder is None else file_below(folder, module)


@cache
def shipped_file(module: str) -> Path | None:
    """The file of a module of the project: which modules it has does not change while it runs."""
    return file_below(PACKAGE.parent, module)


def file_below(root: Path, module: str) -> Path | None:
    """The file of a module whose packages are folders of `root`; None if it is not there."""
    below = root.joinpath(*module.split("."))
    return next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)


def _import(name: str, file: Path, where: str) -> Any:
    """The module, which must be the one of this file."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a module of the user's own may raise anything
        raise UserError(f"{where} cannot be imported: {text_of(error)}") from error
    found = getattr(module, "__file__", None)
    if found is None or (found != str(file) and Path(found).resolve() != file.resolve()):
        raise UserError(f"{where}: {file} is hidden by another module of that name, {found}; give it another name")
    return module
