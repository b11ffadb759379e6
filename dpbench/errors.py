"""Exceptions with a meaning of their own: what the user can mend, and what cannot be estimated."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """What was given cannot be used; the message says what is allowed and what to do (exit code 2)."""


class NoEstimateError(Exception):
    """The noise left nothing to estimate from; the trial is stored with the status `no_estimate`."""


def unknown(kind: str, given: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not among the `known` ones: all of them are listed, nearest match first.

    >>> print(unknown("mechanism", "adasp", ["aim", "adassp"]))
    unknown mechanism 'adasp'; did you mean 'adassp'? Known: adassp, aim
    """
    names = sorted(known)
    near = get_close_matches(given, names, n=len(names) or 1, cutoff=0.6)
    rest = [name for name in names if name not in near]
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return UserError(f"unknown {kind} {given!r}{hint} Known: {', '.join(near + rest) or 'none'}")
