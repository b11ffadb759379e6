"""Exceptions by cause, and what to install where the package of an extra is missing."""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

NAMES, LINES, CHARACTERS = 60, 18, 3600  # limits of a message: names listed, lines, characters
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


class UserError(Exception):
    """Invalid input; the message says what is allowed and what to do (exit code 2)."""

    exit_code = 2


class AbsentDataError(UserError):
    """A file of a data set is in no folder, and cannot be downloaded; other data sets of a run may be there."""


class WorkersLostError(UserError):
    """Worker processes died, not because of the input; the same command may succeed (exit code 1)."""

    exit_code = 1


class ContractError(Exception):
    """A plug-in returned a value that violates its protocol (see `dpbench.contracts`); the trial is stored as
    failed.
    """


class NoEstimateError(Exception):
    """The noisy statistics allow no estimate; the trial is stored with the status `no_estimate`."""


class UnconvergedError(Exception):
    """Markov chains did not converge to the same distribution; the trial is stored with the status `unconverged`."""


# Errors that may be raised when objects are built from untrusted data.
MALFORMED: tuple[type[Exception], ...] = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
MALFORMED += (RecursionError, UserError, ContractError)


def unknown(kind: str, given: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not among the `known` ones, which it lists, nearest match first.

    >>> print(unknown("mechanism", "adasp", ["aim", "adassp"]))
    unknown mechanism 'adasp'; did you mean 'adassp'? Known: adassp, aim
    """
    names = sorted(set(known))
    near = get_close_matches(given[:200], names, n=len(names) or 1, cutoff=0.6)
    rest = [name for name in names if name not in near]
    hint = f"; did you mean {near[0]!r}? Known" if near else "; known"
    listed = ", ".join((near + rest)[:NAMES]) + (", ..." if len(names) > NAMES else "")
    return UserError(f"unknown {kind} {shown(given)}{hint}: {listed or 'none'}")


def check_known(kind: str, given: object, known: Collection[str]) -> None:
    """Raises `unknown` for a name that is not among the known ones."""
    if given not in tuple(known):
        raise unknown(kind, str(given), known)


def check_part(name: str, value: float) -> None:
    """Raises `UserError` unless the value is more than 0 and less than 1."""
    if not 0 < value < 1:
        raise UserError(f"{name} must lie between 0 and 1, both excluded, not {value}")


def check_positive(where: str, **settings: float) -> None:
    """Raises `UserError` for a setting that is not greater than 0."""
    for name, value in settings.items():
        if not value > 0:
            raise UserError(f"{where}: {name} must be greater than 0, not {value:g}")


def shown(value: object) -> str:
    """The value as a message shows it, never longer than a line.

    >>> shown("adasp"), shown(10**5000)
    ("'adasp'", 'a number of more than 40 digits')
    """
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 80
    return brief.repr(value)


def text_of(error: BaseException) -> str:
    """Type and text of an error, and the line of code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return bounded(f"{type(error).__name__}: {error}"[:CHARACTERS]) + place


def bounded(message: str) -> str:
    """The message, cut to the limits of `LINES` and `CHARACTERS`."""
    lines = message.splitlines()
    cut = "\n".join(lines[:LINES])
    if len(cut) > CHARACTERS:
        return cut[: CHARACTERS - 40] + " ... (cut)"
    return cut + (f"\n... ({len(lines) - LINES} more lines)" if len(lines) > LINES else "")


def missing_extra(error: BaseException) -> str | None:
    """What to install, if the error is that a package of an extra is missing; None for any other error.

    >>> missing_extra(ModuleNotFoundError("No module named 'torch'", name="torch"))
    "torch is not installed: pip install 'dpbench[networks]'"
    """
    name = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f"{name} is not installed: pip install 'dpbench[{EXTRAS[name]}]'" if name in EXTRAS else None
