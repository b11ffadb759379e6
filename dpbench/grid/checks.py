"""Stands in for `dpbench.contracts`: the least that is asked of what a plug-in returned."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from dpbench.data.domain import Domain
from dpbench.mechanisms.release import Release
from dpbench.metrics.evaluation import Score
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget

MOST_PLAIN = 2**20


class ContractError(Exception):
    """A plug-in returned what its protocol does not allow."""


def check_release(
    release: object, offers: Sequence[str] = (), budget: Budget | None = None, domain: Domain | None = None
) -> Release:
    """The release, if it is one. Raises `ContractError`."""
    if type(release) is not Release:
        raise ContractError(f"a mechanism must return a Release, not {type(release).__name__}")
    if budget is not None and release.budget != budget:
        raise ContractError(f"the budget of the release must be the one asked for, {budget}, not {release.budget}")
    check_plain("the diagnostics of the release", dict(release.diagnostics))
    return release


def check_fit(fit: object, columns: int | None = None) -> Fit:
    """The fit, if it is one. Raises `ContractError`."""
    if type(fit) is not Fit:
        raise ContractError(f"a model must return a Fit, not {type(fit).__name__}")
    check_plain("the notes of the fit", dict(fit.notes))
    return fit


def check_score(score: object, name: str) -> Score:
    """The score, if it is one. Raises `ContractError`."""
    if type(score) is not Score:
        raise ContractError(f"metric {name} must return a Score, not {type(score).__name__}")
    check_plain(f"the detail of {name}", score.detail)
    return score


def check_plain(what: str, value: Any) -> None:
    """Raises `ContractError` unless this is plain, finite and small."""
    if isinstance(value, dict):
        for name, item in value.items():
            check_plain(f"{what}: {name}", item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_plain(what, item)
    elif not (
        value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))
    ):
        raise ContractError(f"{what} must be plain data, not {type(value).__name__} {value!r:.80}")
    if isinstance(value, dict) and len(json.dumps(value)) > MOST_PLAIN:
        raise ContractError(f"{what} must be small")
