"""PMW-Pub, MWEM on the rows of public data (Liu, Vietri, Steinke, Ullman and Wu 2021)."""

from __future__ import annotations

import numpy as np

from dpbench.data.table import Table
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.mwem import Mwem, check_weights
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
    repeated: str = "mean",
    start: str = "public",
    alpha: float = 0.5,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Reweigh the rows of public data by multiplicative weights, as MWEM does the cells of the domain.

    **Source** Liu, Vietri and Wu 2021, Appendices E and F.1 (Liu, Vietri, Steinke, Ullman and Wu 2021). The last D_t is
    released. No distribution on the public rows has a smaller error than their best-mixture error (E.1).
    **Privacy** That of `mwem`. The public rows are not protected: the release holds them.
    **Shapes** A probability for each of the u different public rows, which have all attributes of the private ones.
    **Departures** Those of `mwem`.

    `start`: D_0, the public rows' own frequencies (`public`) or `uniform`. The other parameters are those of `mwem`.
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    support = PublicRows.of("pmw_pub", queries, public, start)
    family = Mwem(support, past, rate, repeated)
    check_weights("pmw_pub", family)
    return reweighed(
        "pmw_pub",
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
