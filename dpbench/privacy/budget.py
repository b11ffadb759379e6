"""`Budget`: the privacy loss that a release may spend."""

from __future__ import annotations

from dataclasses import dataclass

from dpbench.errors import UserError, check_known, check_part

CALIBRATIONS = ("tight", "paper", "authors")  # the least noise, the published one, that of the public code
NOISES = ("continuous", "discrete")
RELATIONS = ("add_remove", "replace")


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta)-DP between neighbouring tables; epsilon = inf is no privacy.

    `relation`: `add_remove` one record (n is private) or `replace` one (n is public).
    """

    epsilon: float
    delta: float = 1e-5
    relation: str = "add_remove"

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise UserError(f"epsilon must be greater than 0, not {self.epsilon}")
        check_part("delta", self.delta)
        check_known("relation", self.relation, RELATIONS)
