"""What a release cost, compared with the budget of the plan, whatever budget the release claims."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from functools import lru_cache

from dpbench.grid.records import ReleaseKey
from dpbench.grid.seeds import canonical
from dpbench.privacy.accounting import Spent, spent
from dpbench.privacy.events import Exact
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release

ROUNDING = 1e-9  # relative slack between numbers that are equal
LEAST = 1e-13  # of epsilon: deltas are exact to about 1e-16, which moves a small epsilon by more than `ROUNDING`
OWN_CONSTANTS = ("paper", "authors")  # calibrations whose constants may cost more than was asked for


class OverspentError(Exception):
    """A release cost more than the plan allows, or its cost is not known."""


def cost_of(release: Release, key: ReleaseKey) -> Spent:
    """What the noise in the release's ledger amounts to at the delta of the plan.

    Raises `OverspentError` if a private mechanism read something without noise, or has no noise in its ledger.
    """
    asked = key.budget
    if math.isfinite(asked.epsilon):
        if not release.ledger.events:
            raise OverspentError("the ledger of the release is empty: noise is drawn through dpbench.privacy.noise")
        for event in release.ledger.events:
            if isinstance(event, Exact):
                raise OverspentError(f"the release holds {event.label} without noise, and its epsilon is finite")
    return _spent(canonical(release.ledger.to_list()), asked.delta)


@lru_cache(maxsize=64)
def _spent(ledger: str, delta: float) -> Spent:
    """Computed once for all releases whose noise is of the same size."""
    return spent(Ledger.from_list(json.loads(ledger)), delta)


def check_cost(cost: Spent, key: ReleaseKey) -> None:
    """spent <= asked; where published constants are wanted, only that it is finite: the record shows both numbers.

    Raises `OverspentError`.
    """
    asked = key.budget.epsilon
    if math.isinf(asked):
        return
    if not math.isfinite(cost.epsilon):
        raise OverspentError(f"the noise of the release gives no finite epsilon, the budget was {asked:.6g}")
    own = key.mechanism.parameters.get("calibration") in OWN_CONSTANTS
    if not own and cost.epsilon > asked * (1 + ROUNDING) + LEAST:
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
