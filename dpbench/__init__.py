"""A benchmark of differentially private regression and synthetic data.

`dpbench.api` has the Python interface, whose names are here too. They are imported when they are first used: the
command line imports this package, and has to start at once.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpbench.api import evaluate, figure, fit, mechanisms, read_release, release, results, run
    from dpbench.errors import UserError

__all__ = [
    "UserError",
    "__version__",
    "evaluate",
    "figure",
    "fit",
    "mechanisms",
    "read_release",
    "release",
    "results",
    "run",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpbench import api

    return globals().setdefault(name, getattr(api, name))


def __dir__() -> list[str]:
    return __all__


class _Listed(ModuleType):
    def __call__(self, *given: Any, **named: Any) -> Any:
        from dpbench import api

        return api.mechanisms(*given, **named)


class _Package(ModuleType):
    """The package `dpbench.mechanisms`, whose name its parent gets at import, is the function `mechanisms` as well."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "mechanisms" and isinstance(value, ModuleType):
            value.__class__ = _Listed
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
