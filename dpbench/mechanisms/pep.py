"""PEP, private entropy projection (Liu, Vietri and Wu 2021, section 2.1 and Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import HISTOGRAM_MB, check_histogram
from dpbench.mechanisms.supports import Support, WholeDomain, reweighed
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release

LEAST = 1e-6  # of a measurement and of 1 minus it: the authors' code
LARGEST = 1 - 1e-12  # of D's answers: their odds are numbers, too
REPEATED, CLIPPED = ("mean", "all"), ("measurement", "odds")
FLOOR = 1e-200  # of a cell: measurements that contradict each other drive some to 0, where nothing raises them again
LARGE = 1e100  # a sum of cells is normalised when it is larger than this, or less than 1 over it


def pep(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    projections: int = 25,
    increase: int | None = None,
    gamma: float = 0.0,
    repeated: str = "mean",
    clipped: str = "measurement",
    least: float = FLOOR,
    alpha: float = 0.5,
    max_model_mb: float = HISTOGRAM_MB,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Keep a histogram over the whole domain: the one of most entropy that answers as measured, but for a tolerance.

    **Source** Liu, Vietri and Wu 2021, equation 1, Appendices B.1 and C, Algorithm 2. The last D_t is released.
    **Privacy** Replace one record, n public; rho-zCDP in all, see `equal_rounds`. `paper`: the rho of Theorem 1's
    conversion; `tight`: that of the tight one, as in the authors' code.
    **Shapes** A table of the shape of the domain, float64; `max_model_mb` is its limit.
    **Departures** 1. Algorithm 2 starts anew from the uniform distribution and ends at the tolerance; here a round
    starts from D_t-1, which has the same form, and makes `projections` steps at most (Table 1's T_max = 25). 2.
    Measurements are clipped to [1e-6, 1 - 1e-6] (`clipped`), so that the odds of line 3 are numbers, and averaged where
    a query was measured more than once (`repeated`). All are post-processing.

    `workload`: see `cliques_of`. `rounds`, `per_round`: T and K. `increase`: round t makes this many times t
    projections at most, too (2 in the authors' code; None: no such limit). `gamma`: the tolerance, in standard
    deviations of a measurement's noise. `repeated`: what counts of a query that was measured more than once, the `mean`
    of its answers or `all` of them (the authors' code). `clipped`: the whole `measurement`, or its `odds` alone (the
    authors' code, where a negative one keeps a violation that nothing reduces). `least`: where D answers less than
    this, its odds are those of this answer (1e-6 in the authors' code). `rows`: the number of synthetic rows
    (None: n).
    """
    check_histogram("pep", train.domain, max_model_mb)
    support = WholeDomain(QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload)))
    family = Pep(support, projections, gamma, increase, repeated, clipped, least)
    check_projections("pep", family)
    return reweighed(
        "pep",
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
class Pep:
    """D(x) in proportion to D_0(x) exp(sum_i lambda_i q_i(x)), i the queries measured so far, by Algorithm 2."""

    signed: ClassVar[bool] = False
    support: Support
    projections: int
    gamma: float
    increase: int | None = None
    repeated: str = "mean"
    clipped: str = "measurement"
    least: float = FLOOR
    overlaps: dict[tuple[int, int], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def initial(self) -> Floats:
        """That of the support."""
        return self.support.initial()

    def answers(self, D: Floats) -> Floats:
        """That of the support."""
        return self.support.answers(D)

    def update(self, D: Floats, asked: Asked) -> Floats:
        """Algorithm 2. D is normalised at the end and when its sum leaves double precision; until then the sum is
        `total`, those of its slabs are `masses`.

        A query that counts none or all records of the support has one answer whatever the distribution, and is left
        out.
        """
        measured, noisy = (asked.queries, asked.answers) if self.repeated == "all" else asked.distinct()
        queries: list[int] = measured.tolist()
        a = np.clip(noisy, LEAST, 1 - LEAST)
        target = noisy if self.clipped == "odds" else a
        t = len(asked.queries) // asked.newest
        projections = min(self.projections, self.increase * t) if self.increase else self.projections
        tolerance = self.gamma * (asked.sigma or 0.0)
        slabs = [self._overlap(query, query) for query in queries]
        free = np.array([slab is not None and D[slab].size < D.size for slab in slabs])
        masses, D, total = _masses(D, slabs), D.copy(), 1.0
        for _ in range(projections):
            answers = masses / total
            violations = np.abs(target - answers) * free
            i = int(violations.argmax())  # line 2
            if violations[i] <= tolerance:
                break
            q = np.clip(answers[i], self.least, min(LARGEST, 1 - self.least))
            growth = a[i] * (1 - q) / ((1 - a[i]) * q) - 1  # line 3
            total += growth * masses[i]
            overlaps = [self._overlap(queries[i], query) for query in queries]
            masses += [0.0 if slab is None else growth * D[slab].sum() for slab in overlaps]
            D[slabs[i]] *= 1 + growth
            if not 1 / LARGE < total < LARGE:  # measurements that contradict each other
                D = np.maximum(D, FLOOR)
                D, total = D / D.sum(), 1.0
                masses = _masses(D, slabs)
        D /= D.sum()
        return np.maximum(D, FLOOR, out=D)

    def _overlap(self, query: int, other: int) -> Any:
        """`Support.overlap`, found once."""
        if (query, other) not in self.overlaps:
            self.overlaps[query, other] = self.support.overlap(query, other)
        return self.overlaps[query, other]


def _masses(D: Floats, slabs: Sequence[Any]) -> Floats:
    """The sums of D over the slabs; 0 for none."""
    return np.array([0.0 if slab is None else D[slab].sum() for slab in slabs])


def check_projections(mechanism: str, family: Pep) -> None:
    """Raises `UserError` for a parameter out of range."""
    check_settings(mechanism, tolerance=None, projections=family.projections, increase=family.increase)
    if not family.gamma >= 0:
        raise UserError(f"{mechanism}: gamma must be at least 0, not {family.gamma}")
    check_known("repeated", family.repeated, REPEATED)
    check_known("clipped", family.clipped, CLIPPED)
    if not 0 < family.least < 0.5:
        raise UserError(f"{mechanism}: least must be greater than 0 and less than 1/2, not {family.least}")
