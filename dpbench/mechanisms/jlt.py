"""JLT: least squares from a Gaussian random projection of the rows (Sheffet 2017)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_positive
from dpbench.mechanisms.sketches import statistics_of
from dpbench.privacy.accounting import check_calibration
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import laplace, projection
from dpbench.privacy.projections import projection_multiplier
from dpbench.releases import Release


def jlt(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    expected_rows: int,
    ratio: float = 0.05,
) -> Release:
    """R A, or R [A; w I]: r random Gaussian combinations of the rows of A = [X, y], regularised where they must be.

    What is released is its second moments over r, which give the same least squares. w^2 is taken off X'X and y'y, and
    is the `ridge` that the mechanism asks to be added.

    **Source** Sheffet 2017, "Differentially Private Ordinary Least Squares", Algorithm 1. It leaves r to the
    user: here r = ratio * expected_rows, at least p + 2, where `expected_rows` declares about how many rows the table
    has. More projections mean less noise and a larger ridge. 0.05 is near the least error of the coefficients for
    X ~ U[0, 1]^5, beta ~ U[1, 2]^5, sigma = 1, 1-Gaussian DP and n from 1,000 to 100,000.
    **Privacy** Add/remove; ||(x, y)||_2 <= B = sqrt(||X||^2 + ||Y||^2). `tight`: always R [A; w I], with the least w
    that is (eps, delta)-DP (`projections.projection_delta`). `paper`: w^2 = (8 B^2 / eps) (sqrt(2 r log(8/delta)) + 2
    log(8/delta)), as published, and R A if sigma_min(A)^2 > w^2 + Z + 4 B^2 log(1/delta) / eps, with Z ~
    Laplace(4 B^2 / eps). The test costs eps/4 (sigma_min^2 has sensitivity B^2), and lets a sigma_min(A)^2 <= w^2 pass
    with probability at most P(Z < -4 B^2 log(1/delta) / eps) = delta/2. Else a neighbour's is above w^2 - B^2: that is
    the dearer branch, which the ledger charges whichever was taken. It says how far it stays below (eps, delta). A run
    that draws R A of a singular A'A fails, which is within that delta/2.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; R A (r, p + 1), r > p + 1.
    **Departures** 1. R A is drawn from its distribution given A, r rows of N(0, A'A). 2. `xtx_sd` and `xty_sd` are a
    lower bound, w^2 / sqrt r, what an entry off the diagonal has in an empty table: the noise grows with the data. 3.
    The constants of `paper` are quoted from memory, and not yet compared with the publication; the ledger does not rest
    on them.

    Raises `UserError` for a ratio or expected rows that are not positive, and an epsilon too large for `paper`.
    """
    check_calibration(calibration)
    check_positive("jlt", ratio=ratio, expected_rows=expected_rows)
    p = len(design.columns)
    r = max(math.ceil(ratio * expected_rows), p + 2)
    ledger = Ledger()
    squared = design.x_bound**2 + design.y_bound**2  # B^2
    A = np.column_stack(design.encode(train))
    gram = A.T @ A
    if calibration == "paper":
        log = math.log(8 / budget.delta)
        multiplier = math.sqrt(8 / budget.epsilon * (math.sqrt(2 * r * log) + 2 * log))
        if multiplier <= 1:
            raise UserError(
                f"jlt: calibration: paper gives w <= B at epsilon = {budget.epsilon:g}, where its test protects no "
                "record; lower epsilon or use calibration: tight"
            )
        smallest = max(float(np.linalg.eigvalsh(gram)[0]), 0.0)
        noisy = laplace(
            rng, ledger, smallest, sensitivity=squared, multiplier=4 / budget.epsilon, label="sigma_min(A)^2"
        )
        margin = 4 * squared * math.log(1 / budget.delta) / budget.epsilon
        altered = float(noisy) <= multiplier**2 * squared + margin
        paid = math.sqrt(multiplier**2 - 1)  # of R A, in either branch
    else:
        multiplier, altered = projection_multiplier(budget.epsilon, budget.delta, r), True
        paid = multiplier

    ridge = multiplier**2 * squared if altered else 0.0  # w^2
    rows = projection(
        rng,
        ledger,
        gram + ridge * np.eye(p + 1),
        sensitivity=math.sqrt(squared),
        multiplier=paid,
        count=r,
        failure=budget.delta / 2 if calibration == "paper" else 0.0,
        label="R [A; w I] or R A" if calibration == "paper" else "R [A; w I]",
    )
    statistics = statistics_of(rows, ridge, multiplier**2 * squared / math.sqrt(r))
    return Release(train.domain, budget, ledger, (statistics,), {"projections": r, "altered": altered})
