"""DualQuery (Gaboardi, Gallego Arias, Hsu, Roth and Wu 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, check_positive
from dpbench.inference.query_records import Cell, Search
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked, Places, Round, adaptive_measurements, rho_of
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import release_of_rows
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import ROUNDING, Ledger
from dpbench.releases import Release

TIES = ("random", "first")
APART = 1e-6  # breaks the ties of whole numbers of queries: the sum of so many attributes' terms is far below 1


def dualquery(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    eta: float = 2.0,
    samples: int = 25,
    rounds: int | None = None,
    max_cells: int = 1_000_000,
    seconds: float = 60.0,
    ties: str = "random",
    calibration: str = "tight",
) -> Release:
    """Draw queries by multiplicative weights on them, and answer each round's with the one record that is best for it.

    **Source** Liu, Vietri and Wu 2021, Appendix B.2 (Gaboardi et al. 2014, Algorithm 1). The rows x_1 .. x_T are
    released.
    **Privacy** Replace one record, n public; nothing is measured. Round t draws s queries with the weights exp(eta (t -
    1) (q(P) - q(D))), D the mean of the records so far: s exponential mechanisms of epsilon = 2 eta (t - 1) / n, of
    which those of the first round are free. T is the largest number of rounds whose zCDP is within rho. `paper`: the
    rho of Theorem 1's conversion; `tight`: that of the tight one, as in the authors' code.
    **Shapes** T rows, whatever n.
    **Departures** 1. B.2 minimises the sum of the queries: their signs are those of the error, so that it is maximised.
    2. Ties between records are broken at random (`ties`). 3. A search that is ended after `seconds` gives its best
    record so far; `unfinished` in the diagnostics counts these. All three are post-processing. 4. Where rho does not
    pay for a second round, eta is lowered until it does: the first looks at no row.

    `workload`: see `cliques_of`; queries are its cells and their negations. `samples`: s. `rounds`: the most rounds
    (None: as many as rho allows), at least 2. `max_cells`, `seconds`: see `Search`. `ties`: of the records that are
    equally good one at `random`, or the `first` that the search finds (the authors' code).
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    check_settings("dualquery", tolerance=None, samples=samples, rounds=rounds, max_cells=max_cells)
    check_positive("dualquery", eta=eta, seconds=seconds)
    check_known("ties", ties, TIES)
    if rounds == 1:
        raise UserError("dualquery: rounds must be at least 2: the first looks at no row")
    rho, n, ledger = rho_of("dualquery", train, budget, calibration), len(train), Ledger()
    noise_rng, ties_rng = rng.spawn(2)
    plan = growing_rounds(rho, n, eta=eta, samples=samples, most=rounds)
    family = DualQuery(queries, Search(max_cells, seconds), ties_rng if ties == "random" else None)
    found = adaptive_measurements(train, queries, family, plan, noise_rng, ledger)
    diagnostics = {"rho": rho, "rounds": len(plan), "unfinished": found.unfinished}
    return release_of_rows(budget, ledger, Table(train.domain, found.rows), n, diagnostics)


def growing_rounds(rho: float, n: int, *, eta: float, samples: int, most: int | None) -> list[Round]:
    """The rounds of DualQuery that rho allows, two at least; the first costs nothing."""
    eta = min(eta, n * math.sqrt(2 * rho / samples))
    rounds, spent = [Round(samples, 0.0, replacement=True)], 0.0
    while most is None or len(rounds) < most:
        epsilon = 2 * eta * len(rounds) / n
        spent += samples * epsilon**2 / 8
        if spent > rho * (1 + ROUNDING):
            break
        rounds.append(Round(samples, epsilon, replacement=True))
    return rounds


@dataclass(frozen=True)
class Records:
    """The rows (t, d) found so far, and how many of their searches were ended before they were known to be best."""

    rows: Codes
    unfinished: int = 0


@dataclass(frozen=True)
class DualQuery:
    """Means of records, each the best for the queries of its round."""

    signed: ClassVar[bool] = True
    queries: QueryWorkload
    search: Search
    rng: np.random.Generator | None  # what breaks ties

    def initial(self) -> Records:
        """No record."""
        return Records(np.zeros((0, len(self.queries.sizes)), dtype=np.int64))

    def answers(self, D: Records) -> Floats:
        """Of the rows; zero before the first, whose queries do not depend on it."""
        return self.queries.of_rows(D.rows) if len(D.rows) else np.zeros(len(self.queries))

    def update(self, D: Records, asked: Asked) -> Records:
        """One record more: the x with the largest sum of the round's queries, or of 1 - q for a negation."""
        cells, weights = weighted_cells(self.queries, asked.queries[-asked.newest :], asked.signs[-asked.newest :])
        ties = {
            name: np.zeros(size) if self.rng is None else APART * self.rng.random(size)
            for name, size in self.queries.sizes.items()
        }
        x, best = self.search.best(self.queries.sizes, cells, weights, ties)
        return Records(np.vstack([D.rows, x]), D.unfinished + (not best))


def weighted_cells(queries: QueryWorkload, selected: Places, signs: Floats) -> tuple[list[Cell], Floats]:
    """The cells of the queries selected, each once with the sum of its signs, without those whose sum is 0."""
    different, place = np.unique(selected, return_inverse=True)
    weights = np.bincount(place, weights=signs)
    kept = weights != 0
    return [queries.cell(int(query)) for query in different[kept]], weights[kept]
