"""Private-GSD: rows that a genetic algorithm brings to noisy marginals (Liu, Tang, Vietri and Wu 2023)."""

from __future__ import annotations

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
    rows: int = 5000,
    population: int = 1000,
    generations: int = 10_000,
    tolerance: float = 0.02,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the marginals of a workload once, and evolve rows whose marginals have the least squared error.

    **Source** Liu, Tang, Vietri and Wu 2023, "Generating Private Synthetic Data with Genetic Algorithms", ICML (arXiv
    2306.03257); of the text the abstract was read, and for facts the authors' public code (giusevtr/private_gsd,
    without a licence), of which nothing is copied: candidates differ from the best rows in one cell of one row, half by
    mutation, half by crossover, and are judged by the squared error of all measured answers.
    **Privacy** Add/remove, or replace one. A record is in one cell of each marginal, so that of m marginals one record
    changes counts by sqrt m in l2, or sqrt(2 m). All are measured at one sigma: the whole costs m Delta^2 / (2
    sigma^2), Delta^2 being 1, or 2: rho of zCDP for `paper`, mu^2/2 of Gaussian DP for `tight` (`Costs`). The rest is
    post-processing. n is not used, but that it is public for `replace`.
    **Shapes** Rows (`rows`, d).
    **Departures** 1. Numbers are binned before a mechanism sees them, and the statistics are marginals of bins. So what
    the paper is for is left out: numbers without bins, and threshold, range, prefix and halfspace queries. A mutation
    gives a number a random bin. 2. The authors keep the best candidate of a generation, here all are kept that lower
    the error and share no cell of a marginal with a better one, whose gains add up exactly (`genetic`). 3. Their elites
    are the best rows and others a cell away from it; here a crossover takes its cell from the best rows. 4. They
    start from uniform rows and fit the noisy answers; here rows start independent, and fit the most likely
    marginals that agree and are not negative, with their total held (`inference.nonnegative`): post-processing. 5.
    The paper's adaptive rounds, which select what is measured, are not here. 6. Replacement, and `tight`, are ours.

    `population`: candidates a generation. `generations`: the most; fewer where 200 of them lower the error by less than
    `tolerance` of it.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = distinct_cliques("private_gsd", domain, workload)
    check_settings("private_gsd", tolerance=tolerance, rows=rows, population=population, generations=generations)
    check_answers("private_gsd", sizes, cliques)
    n = rows_if_public("private_gsd", train, budget, None)
    costs, ledger, (noise_rng, rows_rng) = Costs.of("private_gsd", budget, calibration), Ledger(), rng.spawn(2)
    measured, sigma = measured_alike("private_gsd", train, cliques, n, costs, ledger, rng=noise_rng, noise=noise)

    residuals = Residuals.of(sizes, measured, n)
    noisy = [one.clique for one in measured]
    found = nonnegative(residuals, noisy).residuals if noisy else residuals
    targets = {r: np.maximum(found.marginal(r), 0.0) for r in noisy}
    start = independent_rows([found.marginal((name,)) for name in domain.names], rows, rows_rng)
    evolved = genetic(
        sizes, targets, start, rows_rng, population=population, generations=generations, tolerance=tolerance
    )
    diagnostics = {"rho": costs.total, "sigma": sigma, "total": residuals.total}
    diagnostics |= {"loss": evolved.loss, "generations": evolved.generations}
    return Release(domain, budget, ledger, (SyntheticRows(Table(domain, evolved.codes)),), diagnostics)
