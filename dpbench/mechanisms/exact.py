"""The non-private references: exact sufficient statistics, marginals with the rows themselves, and the mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.mechanisms.fitting import check_answers
from dpbench.mechanisms.mean_target import check_settings, sums_at_ends, without_features
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import unperturbed
from dpbench.releases import Coefficients, Marginals, Release, SufficientStatistics, SyntheticRows


def exact(train: Table, budget: Budget, rng: np.random.Generator, *, design: Design) -> Release:
    """X'X, X'y and y'y without noise: the 'public' line of DD-SSP, Figure 3.

    **Source** DD-SSP, section 3.2.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be.
    **Shapes** X (n, p), y (n,) as `design` encodes them; X'X (p, p), X'y (p,).
    """
    ledger = Ledger()
    X, y = design.encode(train)
    xtx, xty = second_moments(X, y)
    xtx = unperturbed(ledger, xtx, label="X'X")
    xty = unperturbed(ledger, xty, label="X'y")
    yty = unperturbed(ledger, y @ y, label="y'y")
    return Release(train.domain, budget, ledger, (SufficientStatistics(xtx, xty, 0.0, 0.0, yty=float(yty)),))


def exact_table(
    train: Table, budget: Budget, rng: np.random.Generator, *, workload: int | Sequence[Sequence[str]] = 2
) -> Release:
    """Marginals without noise and the training rows themselves: the 'public' line of DD-SSP, Figure 3b.

    **Source** DD-SSP, sections 3.3 and 4.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be. A stored release is a copy of
    the training rows: it is for this machine only.
    **Shapes** A marginal on r has the shape `domain.shape(r)`; the rows are those of `train`, in its order.

    `workload`: k for all k-way marginals, or a list of cliques. Raises `UserError` for more tables than memory holds.
    """
    cliques = cliques_of(train.domain, workload)
    check_answers("exact_table", train.domain.sizes, cliques)
    ledger = Ledger()
    tables = train.marginals(cliques)
    marginals = {r: unperturbed(ledger, h, label=f"marginal {','.join(r)}") for r, h in tables.items()}
    rows = Table(train.domain, unperturbed(ledger, train.codes, label="rows").astype(np.int64), train.numbers)
    return Release(train.domain, budget, ledger, (Marginals(marginals), SyntheticRows(rows)))


def exact_mean(
    train: Table, budget: Budget, rng: np.random.Generator, *, design: Design, loss: str | None = None
) -> Release:
    """The mean of the training target without noise: what a fit without features can reach.

    **Source** The baseline that R^2 compares with.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be.
    **Shapes** y (n,) as `design` encodes it; theta (p,), 0 but for the intercept.

    `loss` and errors as in `mean_target`.
    """
    loss = check_settings("exact_mean", design, loss)
    ledger = Ledger()
    upper, lower = unperturbed(ledger, sums_at_ends(train, design), label="sums at the target's ends")
    theta = without_features(design, upper, lower, loss)
    return Release(train.domain, budget, ledger, (Coefficients(theta),))
