"""Private-GSD: rows that a genetic algorithm brings to noisy marginals (Liu, Tang, Vietri and Wu 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpbench.data.table import Table
from dpbench.inference.genetic import genetic, independent_rows
from dpbench.inference.nonnegative import nonnegative
from dpbench.inference.residuals import Residuals
from dpbench.mechanisms.fitting import (
    Costs,
    check_answers,
    check_settings,
    measured_alike,
    rows_if_public,
)
from dpbench.mechanisms.intervals import Intervals
from dpbench.mechanisms.workload import Workload, distinct_cliques
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows


def private_gsd(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    levels: Sequence[int] = (),
    alone: Sequence[int] = (),
    rows: int = 5000,
    population: int = 1000,
    generations: int = 10_000,
    tolerance: float = 0.02,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the marginals of a workload once, and evolve rows whose marginals have the least squared error.

    Numbers are in their declared bins, or with `levels` they have none: rows have numbers within the declared bounds,
    and marginals count their intervals, a level of a binary tree at a time.

    **Source** Liu, Tang, Vietri and Wu 2023, "Generating Private Synthetic Data with Genetic Algorithms", ICML (arXiv
    2306.03257); of the text the abstract was read, and for facts the authors' public code (giusevtr/private_gsd,
    without a licence), of which nothing is copied: candidates differ from the best rows in one cell of one row, half by
    mutation, half by crossover, and are judged by the squared error of all measured answers. There marginals of
    numbers are those of binary trees: at each level all numbers are cut into twice as many intervals of [0, 1].
    **Privacy** Add/remove, or replace one. The intervals of a level are disjoint and fixed beforehand, and a number is
    in one of them: a record is in one cell of each marginal at each level. So of m marginals, each level of one counted
    as one more, one record changes counts by sqrt m in l2, or sqrt(2 m). All are measured at one sigma: the whole costs
    m Delta^2 / (2 sigma^2), Delta^2 being 1, or 2: rho of zCDP for `paper`, mu^2/2 of Gaussian DP for `tight`
    (`Costs`). The rest is post-processing. n is not used, but that it is public for `replace`.
    **Shapes** Rows (`rows`, d).
    **Departures** 1. Ranges, thresholds and prefixes are sums of intervals; halfspaces are not measured. Numbers can be
    measured `alone` at finer levels, which is ours: a value that many records share, such as 40 hours a week, is found
    there, since its interval has more records than noise. 2. The authors keep the best candidate of a generation, here
    all are kept that lower the error and share no cell of a marginal with a better one, whose gains add up exactly
    (`genetic`). 3. Their elites are the best rows and others a cell away from it, and their crossover adds noise to a
    number; here it takes its cell from the best rows as it is. A mutation draws a number uniformly. 4. They start from
    uniform rows and fit the noisy answers; here rows start independent, and fit the most likely marginals that agree
    and are not negative, with their total held (`inference.nonnegative`): post-processing. Levels of a number agree
    with others of the same level alone; the rows bring them together. 5. The paper's adaptive rounds, which select what
    is measured, are not here. 6. Replacement, and `tight`, are ours.

    `levels`: empty, or such as [1, 2, 3, 4, 5]: each marginal of the workload is measured with its numbers in 2, 4, 8,
    16 and 32 intervals, those without numbers once. `alone`: more levels, at which each number in the workload is
    measured by itself. Listed values and numbers that may be missing stay in their bins (`Intervals`). `population`:
    candidates a generation. `generations`: the most; fewer where 200 of them lower the error by less than `tolerance`
    of it.
    """
    check_settings("private_gsd", tolerance=tolerance, rows=rows, population=population, generations=generations)
    intervals = Intervals(train.domain, tuple(levels), tuple(alone))
    sizes = intervals.domain.sizes
    marginals = intervals.marginals(distinct_cliques("private_gsd", train.domain, workload))
    check_answers("private_gsd", sizes, list(marginals))
    n = rows_if_public("private_gsd", train, budget, None)
    costs, ledger, (noise_rng, rows_rng) = Costs.of("private_gsd", budget, calibration), Ledger(), rng.spawn(2)
    measured, sigma = measured_alike(
        "private_gsd", intervals.counted(train), list(marginals), n, costs, ledger, rng=noise_rng, noise=noise
    )

    residuals = Residuals.of(sizes, measured, n)
    noisy = [one.clique for one in measured]
    found = nonnegative(residuals, noisy).residuals if noisy else residuals
    targets = [(marginals[r], np.maximum(found.marginal(r), 0.0)) for r in noisy]
    start = independent_rows([found.marginal((name,)) for name in intervals.finest], rows, rows_rng)
    evolved = genetic(
        intervals.sizes,
        targets,
        intervals.spread(start, rows_rng),
        rows_rng,
        population=population,
        generations=generations,
        tolerance=tolerance,
    )
    diagnostics = {"rho": costs.total, "sigma": sigma, "total": residuals.total}
    diagnostics |= {"loss": evolved.loss, "generations": evolved.generations}
    return Release(train.domain, budget, ledger, (SyntheticRows(intervals.rows(evolved.codes)),), diagnostics)
