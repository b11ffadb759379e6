"""MWEM, multiplicative weights and the exponential mechanism (Hardt, Ligett and McSherry 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import check_known, check_positive
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.query_release import HISTOGRAM_MB, check_histogram
from dpbench.mechanisms.supports import Support, WholeDomain, reweighed
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release

REPEATED = ("mean", "newest")


def mwem(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    past: bool = False,
    rate: float = 1.0,
    repeated: str = "mean",
    alpha: float = 0.5,
    max_model_mb: float = HISTOGRAM_MB,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Keep a histogram over the whole domain, and multiply its cells towards what was measured.

    **Source** Liu, Vietri and Wu 2021, Appendices B.1 to B.3 (Hardt et al. 2012); with past queries Appendix F.1 and
    Figure 7 (Liu, Vietri, Steinke, Ullman and Wu 2021). The last D_t is released.
    **Privacy** Replace one record, n public; rho-zCDP in all, see `equal_rounds`. `paper`: the rho of Theorem 1's
    conversion; `tight`: that of the tight one, as in the authors' code.
    **Shapes** A table of the shape of the domain, float64; `max_model_mb` is its limit.
    **Departures** 1. B.3's sign would increase the error: cells of a query with too small an answer grow. 2.
    Measurements are clipped to [0, 1], and averaged where a query was measured more than once (`repeated`). Both are
    post-processing.

    `workload`: see `cliques_of`. `rounds`, `per_round`: T and K. `past`: in each round go back to the measured queries
    whose error is at least half the largest of the newest, too, each step with the answers of the round's start; the
    newest count twice (`Mwem`). `rate`: 1 in B.3, 1/2 in Hardt et al. and in the authors' code. `repeated`: what counts
    of a query that was measured more than once, the `mean` of its answers or the `newest` (the authors' code). `rows`:
    the number of synthetic rows (None: n).
    """
    check_histogram("mwem", train.domain, max_model_mb)
    support = WholeDomain(QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload)))
    family = Mwem(support, past, rate, repeated)
    check_weights("mwem", family)
    return reweighed(
        "mwem",
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


@dataclass(frozen=True)
class Mwem:
    """All distributions on the support, and the relative entropy to the last one with a linear term (equation 3).

    D_t(x) is in proportion to D_t-1(x) exp(rate sum_i (a_i - q_i(D_t-1)) q_i(x)): i are the queries of the round, and
    with `past` these twice and once each of the others measured so far whose error is at least half of theirs.
    """

    signed: ClassVar[bool] = False
    support: Support
    past: bool
    rate: float
    repeated: str = "mean"

    def initial(self) -> Floats:
        """That of the support."""
        return self.support.initial()

    def answers(self, D: Floats) -> Floats:
        """That of the support."""
        return self.support.answers(D)

    def update(self, D: Floats, asked: Asked) -> Floats:
        """See the class."""
        queries, noisy = asked.distinct(self.repeated)
        times = np.isin(queries, asked.queries[-asked.newest :]).astype(int)
        if not self.past:
            queries, noisy, times = queries[times > 0], noisy[times > 0], times[times > 0]
        slabs = [self.support.overlap(query, query) for query in queries.tolist()]
        gaps = np.clip(noisy, 0, 1) - [0.0 if slab is None else D[slab].sum() for slab in slabs]
        if self.past:
            times += np.abs(gaps) >= np.abs(gaps[times > 0]).max() / 2
        D = D.copy()
        for slab, factor in zip(slabs, np.exp(self.rate * times * gaps), strict=True):
            if slab is not None:
                D[slab] *= factor
        D /= D.sum()
        return D


def check_weights(mechanism: str, family: Mwem) -> None:
    """Raises `UserError` for a parameter out of range."""
    check_positive(mechanism, rate=family.rate)
    check_known("repeated", family.repeated, REPEATED)
