"""The best distribution on the rows of public data, without privacy: what no reweighing of these rows can beat."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, check_positive
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Places
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import release_of_model
from dpbench.mechanisms.supports import PublicRows
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import unperturbed
from dpbench.releases import Release

ADDED = 300  # queries that a round adds to the programme: more make each solution slower, fewer need more of them
PRECISION = 1e-6  # of HiGHS, whose constraints hold up to 1e-7: no error is known better


def best_mixture(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    tolerance: float = 1e-3,
    programmes: int = 10,
    rows: int | None = None,
) -> Release:
    """Reweigh the rows of public data so that the largest error over the workload is least.

    **Source** Liu, Vietri and Wu 2021, Appendix E.1: the best-mixture error (Liu, Vietri, Steinke, Ullman and Wu 2021)
    is the largest error of this release. PMW-Pub and PEP-Pub cannot have a smaller one at any epsilon.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be.
    **Shapes** A probability for each of the u different public rows, which have all attributes of the private ones.

    The linear programme with all queries is large: HiGHS solves it with some, whose least error no distribution is
    below, and those that a distribution answers worst are added, until the largest error of some distribution is within
    `tolerance` of that, or after so many `programmes`. The distribution half way from the best one so far to the
    programme's solution is tried, since a solution is at a corner, where queries that were not asked are answered
    badly. In the diagnostics are `error`, the largest error of the distribution that is released, and `bound`, below
    which that of no distribution is. `rows`: the number of rows drawn from it (None: n).
    """
    check_settings("best_mixture", tolerance=None, programmes=programmes, rows=rows)
    check_positive("best_mixture", tolerance=tolerance)
    queries, ledger = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload)), Ledger()
    support = PublicRows.of("best_mixture", queries, public, "public")
    true = unperturbed(ledger, queries.of_rows(train.codes), label="answers")
    best = best_distribution(support, true, tolerance, programmes)
    model = support.model(best.distribution, float(len(train)), 0)
    diagnostics = {"error": best.error, "bound": best.bound}
    return release_of_model(train.domain, budget, ledger, model, rng, rows, diagnostics, support.unpaid)


@dataclass(frozen=True)
class Best:
    """A distribution (u,), its largest error, and what no distribution's largest error is below."""

    distribution: Floats
    error: float
    bound: float


def best_distribution(support: PublicRows, true: Floats, tolerance: float, programmes: int) -> Best:
    """The one on the support whose largest error from the answers `true` (m,) is least, up to the tolerance."""
    distribution, asked = support.start, np.zeros(0, dtype=np.intp)
    gaps = np.abs(true - support.answers(distribution))
    best = Best(distribution, float(gaps.max()), 0.0)
    for _ in range(programmes):
        if best.error - best.bound <= max(tolerance, PRECISION):
            break
        worst = np.argsort(gaps)[-ADDED:]
        asked = np.union1d(asked, worst[gaps[worst] > best.bound])
        solution, least = _solved(support, true, asked)
        distribution = (best.distribution + solution) / 2
        gaps = np.abs(true - support.answers(distribution))
        better, bound = bool(gaps.max() < best.error), max(best.bound, least)
        best = Best(distribution, float(gaps.max()), bound) if better else replace(best, bound=bound)
    return best


def _solved(support: PublicRows, true: Floats, asked: Places) -> tuple[Floats, float]:
    """The distribution whose largest error over the queries `asked` is least, and that error.

    Variables: the distribution (u,) and the error t; true - t <= q(distribution) <= true + t, and the distribution sums
    to 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, vstack

    held = [support.overlap(query, query) for query in asked.tolist()]
    rows = [np.zeros(0, dtype=np.intp) if one is None else one for one in held]
    u, starts = len(support.codes), np.cumsum([0, *map(len, rows)])
    q = csr_array((np.ones(starts[-1]), np.concatenate(rows), starts), shape=(len(asked), u))
    t = csr_array(np.ones((len(asked), 1)))
    found = linprog(
        np.append(np.zeros(u), 1.0),
        A_ub=vstack([hstack([q, -t]), hstack([-q, -t])]),
        b_ub=np.concatenate([true[asked], -true[asked]]),
        A_eq=np.append(np.ones(u), 0.0)[None],
        b_eq=[1.0],
        method="highs-ipm",  # of many solutions that are as good, where the simplex method takes long
    )
    if found.x is None:
        raise NoEstimateError(f"best_mixture: the linear programme has no solution: {found.message}")
    distribution = np.maximum(found.x[:u], 0.0)
    return distribution / distribution.sum(), float(found.fun)
