"""The non-private reference: exact sufficient statistics."""

from __future__ import annotations

import numpy as np

from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.privacy.budget import Budget, Ledger
from dpbench.privacy.noise import unperturbed


def exact(train: Table, budget: Budget, rng: np.random.Generator, *, design: Design) -> Release:
    """X'X and X'y without noise: the 'public' line of Paper 0, Figure 3.

    **Source** Paper 0, section 3.2.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be.
    **Shapes** X (n, p), y (n,) as `design` encodes them; X'X (p, p), X'y (p,).
    """
    ledger = Ledger()
    xtx, xty = second_moments(*design.encode(train))
    xtx = unperturbed(ledger, xtx, label="X'X")
    xty = unperturbed(ledger, xty, label="X'y")
    return Release(train.domain, budget, ledger, SufficientStatistics(xtx, xty, 0.0, 0.0))
