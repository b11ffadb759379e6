"""How far one record moves what is released, under each neighbouring relation: a function a statistic."""

from __future__ import annotations

import math


def of_marginal(relation: str) -> tuple[float, float]:
    """The l1 and the l2 sensitivity of a marginal's counts.

    A record that is added or removed is one count in one cell; one that is replaced can leave a cell for another.
    """
    return (1.0, 1.0) if relation == "add_remove" else (2.0, math.sqrt(2))
