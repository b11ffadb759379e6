"""FEM, follow the perturbed leader on what the exponential mechanism selects (Vietri et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.inference.query_records import Search
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked, adaptive_measurements, check_rounds, equal_rounds, rho_of
from dpbench.mechanisms.dualquery import Records, weighted_cells
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import release_of_rows
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release


def fem(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    samples: int = 50,
    scale: float = 2.0,
    max_cells: int = 1_000_000,
    seconds: float = 60.0,
    calibration: str = "tight",
) -> Release:
    """Select the query with the largest error, and draw records that are best for all queries so far and for noise.

    **Source** Liu, Vietri and Wu 2021, Appendix B.2 (Vietri, Tian, Bun, Steinke and Wu 2020, Algorithm 2). The records
    of all rounds are released.
    **Privacy** Replace one record, n public; nothing is measured: `equal_rounds` with alpha = 1. `paper`: the rho of
    Theorem 1's conversion; `tight`: that of the tight one, as in the authors' code.
    **Shapes** T s rows, whatever n.
    **Departures** 1. B.2 minimises the sum of the queries: their signs are those of the error, so that it is maximised.
    2. A search that is ended after `seconds` gives its best record so far; `unfinished` in the diagnostics counts
    these. Both are post-processing.

    `workload`: see `cliques_of`; queries are its cells and their negations. `rounds`, `per_round`: T and k. `samples`:
    s. `scale`: sigma, the mean of the exponential noise on each level. `max_cells`, `seconds`: see `Search`.
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    check_rounds("fem", queries, rounds=rounds, per_round=per_round)
    check_settings("fem", tolerance=None, samples=samples, max_cells=max_cells)
    check_positive("fem", scale=scale, seconds=seconds)
    rho, n, ledger = rho_of("fem", train, budget, calibration), len(train), Ledger()
    noise_rng, leader_rng = rng.spawn(2)
    plan = equal_rounds(rho, n, rounds=rounds, per_round=per_round, alpha=1)
    family = Fem(queries, samples, scale, Search(max_cells, seconds), leader_rng)
    found = adaptive_measurements(train, queries, family, plan, noise_rng, ledger)
    rows = Table(train.domain, found.rows[samples:])  # without those of D_0
    return release_of_rows(budget, ledger, rows, n, {"rho": rho, "unfinished": found.unfinished})


@dataclass(frozen=True)
class Fem:
    """s records: each is best for the sum of all queries selected so far, less exponential noise on its levels."""

    signed: ClassVar[bool] = True
    queries: QueryWorkload
    samples: int
    scale: float
    search: Search
    rng: np.random.Generator

    def initial(self) -> Records:
        """Records that follow the noise alone: uniform ones."""
        columns = [self.rng.integers(size, size=self.samples) for size in self.queries.sizes.values()]
        return Records(np.stack(columns, axis=1))

    def answers(self, D: Records) -> Floats:
        """Those of the newest records."""
        return self.queries.of_rows(D.rows[-self.samples :])

    def update(self, D: Records, asked: Asked) -> Records:
        """`samples` records more."""
        cells, weights = weighted_cells(self.queries, asked.queries, asked.signs)
        found, unfinished = self.search.leaders(
            self.queries.sizes, cells, weights, count=self.samples, scale=self.scale, rng=self.rng
        )
        return Records(np.concatenate([D.rows, found]), D.unfinished + unfinished)
