"""Modules that are imported when something of them is first used."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

UNUSED = ("numpy.f2py", "numpy.testing")  # scipy's copy of numpy's names imports them, in a fifth of a second


def import_later(name: str) -> None:
    """Have a module of a package there, of which nothing has run yet."""
    if name in sys.modules or (spec := find_spec(name)) is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    package, _, last = name.rpartition(".")
    setattr(sys.modules[package], last, module)
