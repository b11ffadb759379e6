"""What a release cost, compared with the budget of the plan, whatever budget the release claims."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from functools import lru_cache

from dpbench.files import Json
from dpbench.grid.records import ReleaseKey, spent_from_dict
from dpbench.grid.seeds import canonical
from dpbench.privacy.accounting import Spent, spent
from dpbench.privacy.events import Exact
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release
from dpbench.targets import is_shipped

ROUNDING = 1e-9  # relative slack between numbers that are equal
LEAST = 1e-13  # of epsilon: deltas are exact to about 1e-16, which moves a small epsilon by more than `ROUNDING`
PUBLISHED = ("paper", "authors")  # calibrations whose constants may cost more than was asked for


class OverspentError(Exception):
    """A release cost more than the plan allows, or its cost is not known."""


def cost_of(release: Release, key: ReleaseKey) -> Spent:
    """What the noise in the release's ledger amounts to at the delta of the plan.

    Raises `OverspentError` if a private mechanism read something without noise, or has no noise in its ledger.
    """
    return _cost(release.ledger, key)


def cost_of_record(record: Json, key: ReleaseKey) -> Spent:
    """What a release costs by its ledger as it is stored, if that is within the budget of the plan, and what the
    process that made it has recorded.

    That process has run the code of a mechanism, which may have changed whatever computes there: this is for another.

    Raises `OverspentError`.
    """
    try:
        cost, recorded = _cost(Ledger.from_list(record["release"]["ledger"]), key), spent_from_dict(record["spent"])
    except (ValueError, TypeError, KeyError) as error:
        raise OverspentError(f"the ledger of the release cannot be read: {error}") from error
    check_cost(cost, key)
    if not all(map(_same, astuple(cost), astuple(recorded))):
        raise OverspentError(
            f"the release has recorded that it spent epsilon = {recorded.epsilon:.6g}, and by its ledger that is "
            f"{cost.epsilon:.6g}"
        )
    return cost


def _cost(ledger: Ledger, key: ReleaseKey) -> Spent:
    asked = key.budget
    if math.isfinite(asked.epsilon):
        if not ledger.events:
            raise OverspentError("the ledger of the release is empty: noise is drawn through dpbench.privacy.noise")
        for event in ledger.events:
            if isinstance(event, Exact):
                raise OverspentError(f"the release holds {event.label} without noise, and its epsilon is finite")
    return _spent(canonical(ledger.to_list()), asked.delta)


@lru_cache(maxsize=64)
def _spent(ledger: str, delta: float) -> Spent:
    """Computed once for all releases whose noise is of the same size."""
    return spent(Ledger.from_list(json.loads(ledger)), delta)


def check_cost(cost: Spent, key: ReleaseKey) -> None:
    """spent <= asked; where published constants are wanted, only that it is finite: the record shows both numbers.

    Constants are published of the mechanisms of the project alone: any other is held to its budget.
    Raises `OverspentError`.
    """
    asked = key.budget.epsilon
    if math.isinf(asked):
        return
    if not math.isfinite(cost.epsilon):
        raise OverspentError(f"the noise of the release gives no finite epsilon, the budget was {asked:.6g}")
    published = is_shipped(key.mechanism.target) and key.mechanism.parameters.get("calibration") in PUBLISHED
    if not published and cost.epsilon > asked * (1 + ROUNDING) + LEAST:
        raise OverspentError(f"the release spent epsilon = {cost.epsilon:.6g}, the budget was {asked:.6g}")


def holds(release: Release, recorded: Spent, key: ReleaseKey) -> bool:
    """Whether a stored release has the budget of the plan, and a ledger that costs what was recorded and allowed."""
    try:
        cost = cost_of(release, key)
        check_cost(cost, key)
    except (OverspentError, ValueError):
        return False
    return release.budget == key.budget and all(map(_same, astuple(cost), astuple(recorded)))


def _same(one: float | None, two: float | None) -> bool:
    return one == two or (
        one is not None and two is not None and math.isclose(one, two, rel_tol=ROUNDING, abs_tol=LEAST)
    )
