"""Gen, the rows whose marginals are nearest to noisy ones (excess risk, Mechanism 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.domain import Clique, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.files import Json
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_marginal
from dpbench.releases import Release, SyntheticRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FAILS = 0.05  # the probability with which what is promised of the distance may fail


def gen(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    degree: int = 2,
    max_cells: int = 4096,
    gap: float = 0.05,
    nodes: int = 200,
    calibration: str = "tight",
) -> Release:
    """Measure every marginal of up to d attributes, and search for the rows whose marginals are nearest to them.

    **Source** Excess risk, section 3.2, Mechanism 1 (Gen_{d,sigma}): argmin_D max_q ||noisy h_q - M_q(D)||_1, found by
    a mixed-integer linear programme (HiGHS) with a count for each cell of the domain.
    **Privacy** Add/remove, or replace one. The marginals together have the l2 sensitivity sqrt(|Q|), or sqrt(2 |Q|),
    |Q| their number, and are measured once. `paper`: the noise of Lemma 3.3, `gen_sigma`, which is stated for `replace`
    and eps < 1. `tight`: the least for (eps, delta), 1/mu of Gaussian DP times the sensitivity. The number of rows is n
    where it is public (`replace`), else what fits best.
    **Shapes** The domain's cells, of which there may be `max_cells`; no rows are sampled.
    **Departures** 1. The search ends within `gap`, relative, of the least distance, or after `nodes` nodes of the
    branch and bound; `gap` in the diagnostics says how near it came. Post-processing. Lemma 3.4's distance, which
    `promised_distance` is, grows by about the part gap / 2. 2. |Q| is counted, where Lemma 3.3 bounds it by m^d
    (`gen_sigma`).

    Raises `UserError` for a degree outside [1, number of attributes] or a domain above the limit.
    """
    domain, cells = train.domain, math.prod(train.domain.sizes.values())
    if not 1 <= degree <= len(domain.names):
        raise UserError(f"gen: degree must lie between 1 and {len(domain.names)}, not {degree}")
    if cells > max_cells:
        raise UserError(
            f"gen searches over the {cells:,} cells of the domain, and the limit is {max_cells:,}; declare fewer bins, "
            "leave attributes out (dataset.drop) or raise mechanism.gen.max_cells"
        )
    if not (gap >= 0 and nodes >= 1):
        raise UserError(f"gen: gap must be at least 0 and nodes at least 1, not {gap:g} and {nodes}")
    check_calibration(calibration)
    if math.isinf(budget.epsilon):
        raise UserError("gen needs a finite epsilon; use a large one, such as 1e6, to see its limit")
    queries = [q for k in range(1, degree + 1) for q in combinations(domain.names, k)]
    sensitivity = of_marginal(budget.relation)[1] * math.sqrt(len(queries))
    if calibration == "paper":
        features = len(domain.names) - 1
        sigma = gen_sigma(degree=degree, features=features, epsilon=budget.epsilon, delta=budget.delta)
    else:
        sigma = sensitivity / gaussian_mu(budget.epsilon, budget.delta)
    ledger = Ledger()
    true = np.concatenate([table.ravel() for table in train.marginals(queries).values()])
    noisy = gaussian(rng, ledger, true, sensitivity=sensitivity, multiplier=sigma / sensitivity, label="marginals")
    n = len(train) if budget.relation == "replace" else None
    counts, found = _nearest(_answers(domain, queries), noisy, n, gap, nodes)
    codes: Codes = np.stack(np.unravel_index(np.arange(cells), tuple(domain.sizes.values())), axis=1)
    rows = Table(domain, np.repeat(codes, counts, axis=0))
    shape = {"features": len(domain.names) - 1, "levels": max(domain.sizes.values())}
    promised = gen_distance(degree=degree, **shape, sigma=sigma, exponent=-math.log2(FAILS))
    diagnostics = {"sigma": sigma, "marginals": len(queries), "cells": cells, "promised_distance": promised, **found}
    return Release(domain, budget, ledger, (SyntheticRows(rows),), diagnostics)


def count_marginals(degree: int, features: int) -> int:
    """|Q|: the non-empty sets of up to d of the m + 1 attributes.

    >>> count_marginals(2, 3), count_marginals(4, 14)
    (10, 1940)
    """
    return sum(math.comb(features + 1, k) for k in range(1, degree + 1))


def gen_sigma(*, degree: int, features: int, epsilon: float, delta: float) -> float:
    """Lemma 3.3: the noise of Gen, 2 m^(d/2) sqrt(log(1.25 / delta)) / eps, m the attributes without the label.

    It is that of the Gaussian mechanism for eps < 1 (Theorem 2.6) at sensitivity sqrt(2 |Q|) <= sqrt(2 m^d): one record
    replaced by another moves two counts of each marginal by 1.

    **Departures** |Q| <= m^d does not hold for d = 1, nor for d = 2 and m <= 3: there the noise is too small for eps.
    From d = 3 on, |Q| is smaller than m^d by about the factor d!, so that the noise is larger than it need be.
    """
    return float(2 * features ** (degree / 2) * math.sqrt(math.log(1.25 / delta)) / epsilon)


def gen_distance(*, degree: int, features: int, levels: int, sigma: float, exponent: float) -> float:
    """Lemma 3.4: the l1 distance, in rows, of any marginal of Gen's rows but for 2^-lambda, lambda = `exponent`:

        2 l^d sqrt(2 (log 2 (1 + lambda) + d log(m l))) sigma

    with l `levels` of the largest attribute. No marginal of the rows that are nearest to the noisy marginals is farther
    from these than one of D_r, whose (m l)^d cells are all within k sigma but for 2 (m l)^d exp(-k^2 / 2).

    **Departures** The cells of all marginals are sum_{k <= d} C(m + 1, k) l^k, which is above (m l)^d for d = 1, and
    for d = 2 and small m. The sum of l^d normal variables is below l^d k sigma by a wide margin (slack).
    """
    deviations = math.sqrt(2 * (math.log(2) * (1 + exponent) + degree * math.log(features * levels)))
    return float(2 * levels**degree * deviations * sigma)


def _answers(domain: Domain, queries: Sequence[Clique]) -> list[csr_array]:
    """For each marginal the matrix (its cells, cells of the domain) that sums the domain's counts to it."""
    from scipy.sparse import csr_array

    codes = dict(zip(domain.names, np.indices(tuple(domain.sizes.values())), strict=True))
    matrices = []
    for q in queries:
        cell = np.ravel_multi_index([codes[name].ravel() for name in q], domain.shape(q))
        ones = (np.ones(len(cell)), (cell, np.arange(len(cell))))
        matrices.append(csr_array(ones, shape=(math.prod(domain.shape(q)), len(cell))))
    return matrices


def _nearest(answers: Sequence[csr_array], noisy: Floats, n: int | None, gap: float, nodes: int) -> tuple[Codes, Json]:
    """The counts of the domain's cells, n in all if that is given, at the least l1 distance from the noisy marginals.

    The variables are the counts c, a bound t_j >= |noisy_j - (A c)_j| for each cell of a marginal, and z, at least the
    sum of the t of each marginal, which is to be least.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, block_diag, eye_array, vstack

    A = vstack(answers)
    m, cells = A.shape
    sums, one = block_diag([np.ones((1, a.shape[0])) for a in answers]), np.ones((len(answers), 1))
    above = block_array([[A, -eye_array(m), None], [-A, -eye_array(m), None], [None, sums, -one]])
    limits = np.concatenate([noisy, -noisy, np.zeros(len(answers))])
    total = np.concatenate([np.ones(cells), np.zeros(m + 1)])
    least, most = (1, np.inf) if n is None else (n, n)
    solved = milp(
        np.eye(1, cells + m + 1, cells + m)[0],
        integrality=total,
        bounds=Bounds(0, np.inf),
        constraints=[LinearConstraint(above, -np.inf, limits), LinearConstraint(total[None, :], least, most)],
        options={"mip_rel_gap": gap, "node_limit": nodes},
    )
    if solved.x is None:
        raise ArithmeticError(f"gen: the search for rows ended without any: {solved.message}")
    found = {"distance": float(solved.fun), "gap": float(solved.mip_gap), "nodes": int(solved.mip_node_count)}
    return np.round(solved.x[:cells]).astype(np.int64), found
