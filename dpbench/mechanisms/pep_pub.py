"""PEP-Pub, PEP on the rows of public data (Liu, Vietri and Wu 2021, Appendix E)."""

from __future__ import annotations

import numpy as np

from dpbench.data.table import Table
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.pep import FLOOR, Pep, check_projections
from dpbench.mechanisms.supports import PublicRows, reweighed
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release


def pep_pub(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    projections: int = 25,
    increase: int | None = None,
    gamma: float = 0.0,
    repeated: str = "mean",
    clipped: str = "measurement",
    least: float = FLOOR,
    start: str = "public",
    alpha: float = 0.5,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Reweigh the rows of public data: the distribution nearest to the start that answers as measured, but for a
    tolerance.

    **Source** Liu, Vietri and Wu 2021, Appendix E, with Algorithm 2. The last D_t is released. No distribution on the
    public rows has a smaller error than their best-mixture error (E.1).
    **Privacy** That of `pep`. The public rows are not protected: the release holds them.
    **Shapes** A probability for each of the u different public rows, which have all attributes of the private ones.
    **Departures** Those of `pep`; the authors' code starts from the uniform distribution.

    `start`: D_0, the public rows' own frequencies (`public`) or `uniform`. The other parameters are those of `pep`.
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    support = PublicRows.of("pep_pub", queries, public, start)
    family = Pep(support, projections, gamma, increase, repeated, clipped, least)
    check_projections("pep_pub", family)
    return reweighed(
        "pep_pub",
        train,
        budget,
        rng,
        support,
        family,
        rounds=rounds,
        per_round=per_round,
        alpha=alpha,
        rows=rows,
        calibration=calibration,
    )
