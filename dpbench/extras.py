"""Packages that only some parts need, and the extra that installs each of them."""

from __future__ import annotations

EXTRAS = {  # by import name
    "torch": "networks",
    "opacus": "networks",
    "jax": "jax",
    "numpyro": "jax",
    "mbi": "jax",
    "sklearn": "learn",
    "xgboost": "learn",
    "folktables": "data",
    "pyarrow": "data",
    "vl_convert": "html",
}


def missing_extra(error: BaseException) -> str | None:
    """What to install, if the error is that a package of an extra is missing; None for any other error.

    >>> missing_extra(ModuleNotFoundError("No module named 'torch'", name="torch"))
    "torch is not installed: pip install 'dpbench[networks]'"
    """
    name = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f"{name} is not installed: pip install 'dpbench[{EXTRAS[name]}]'" if name in EXTRAS else None
