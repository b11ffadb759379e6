"""PMW-Pub, MWEM on the rows of public data (Liu, Vietri, Steinke, Ullman and Wu 2021)."""

from __future__ import annotations

import numpy as np

from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.inference.queries import QueryWorkload
from dpbench.mechanisms.mwem import Mwem
from dpbench.mechanisms.supports import PublicRows, reweighed
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release


def pmw_pub(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    past: bool = True,
    rate: float = 1.0,
    start: str = "public",
    alpha: float = 0.5,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Reweigh the rows of public data by multiplicative weights, as MWEM does the cells of the domain.

    **Source** Liu, Vietri and Wu 2021, Appendices E and F.1 (Liu, Vietri, Steinke, Ullman and Wu 2021). The last D_t is
    released. No law on the public rows has a smaller error than their best-mixture error (E.1).
    **Privacy** That of `mwem`. The public rows are not protected: the release holds them.
    **Shapes** A probability for each of the u different public rows, which have all attributes of the private ones.
    **Departures** Those of `mwem`.

    `start`: D_0, the public rows' own frequencies (`public`) or `uniform`. The other parameters are those of `mwem`.
    """
    check_positive("pmw_pub", rate=rate)
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    support = PublicRows.of("pmw_pub", queries, public, start)
    return reweighed(
        "pmw_pub",
        train,
        budget,
        rng,
        support,
        Mwem(support, past, rate),
        rounds=rounds,
        per_round=per_round,
        alpha=alpha,
        rows=rows,
        calibration=calibration,
    )
