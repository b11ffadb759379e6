"""What a release cost, held against the budget of the plan, whatever the release says of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dpbench.mechanisms.release import Release, json_number
from dpbench.privacy.accounting import Spent, spent
from dpbench.privacy.budget import Budget, Event

ROUNDING = 1e-9  # relative slack between numbers that are equal
OWN_CONSTANTS = ("paper", "authors")  # calibrations whose constants may cost more than was asked for


class OverspentError(Exception):
    """A release cost more than the plan allows, or its cost is not known."""


def asked_of(key: Mapping[str, Any]) -> Budget:
    """The budget in the key of a release."""
    return Budget(**{**key["budget"], "epsilon": float(key["budget"]["epsilon"])})


def cost_of(release: Release, key: Mapping[str, Any]) -> Spent:
    """What the noise in the release's ledger amounts to at the delta of the plan.

    Raises `OverspentError` if a private mechanism read something without noise, or has no noise in its ledger.
    """
    asked = asked_of(key)
    if math.isfinite(asked.epsilon):
        if not release.ledger.events:
            raise OverspentError("the ledger of the release is empty: noise is drawn through dpbench.privacy.noise")
        for event in release.ledger.events:
            if isinstance(event, Event) and event.kind == "exact":
                raise OverspentError(f"the release holds {event.label} without noise, and its epsilon is finite")
    return spent(release.ledger, asked.delta)


def check_cost(cost: Spent, key: Mapping[str, Any]) -> None:
    """spent <= asked; where published constants are wanted, only that it is finite: the record shows both numbers.

    Raises `OverspentError`.
    """
    asked = asked_of(key).epsilon
    if math.isinf(asked):
        return
    if not math.isfinite(cost.epsilon):
        raise OverspentError(f"the noise of the release gives no finite epsilon, the budget was {asked:.6g}")
    own = key["mechanism"]["parameters"].get("calibration") in OWN_CONSTANTS
    if not own and cost.epsilon > asked * (1 + ROUNDING):
        raise OverspentError(f"the release spent epsilon = {cost.epsilon:.6g}, the budget was {asked:.6g}")


def plain(cost: Spent) -> dict[str, float | str | None]:
    """The cost, JSON-ready."""
    return {name: None if value is None else json_number(value) for name, value in asdict(cost).items()}


def holds(release: Release, recorded: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Whether a stored release has the budget of the plan, and a ledger that costs what was recorded and allowed."""
    try:
        cost = cost_of(release, key)
        check_cost(cost, key)
    except (OverspentError, ValueError):
        return False
    return release.budget == asked_of(key) and _same(plain(cost), recorded)


def _same(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        a == b or (a is not None and b is not None and math.isclose(float(a), float(b), rel_tol=ROUNDING))
        for a, b in ((one[name], two[name]) for name in one)
    )
