"""PrivSyn: the pairs that are worth their noise, joined, and rows that are brought to them (Zhang et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.inference import Measurement
from dpbench.inference.gum import gradual_update
from dpbench.inference.nonnegative import nonnegative
from dpbench.inference.residuals import Residuals
from dpbench.mechanisms.dependence import from_independence, marginals_in_parts, of_independence, real_numbers
from dpbench.mechanisms.fitting import Costs, check_answers, check_settings, check_sigma, noisy_marginal, rows_if_public
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Release, SyntheticRows

SHARES = (0.1, 0.1, 0.8)  # of the budget: for InDif, for single attributes, for the selected marginals (section 6.1)
MOST_CLIQUES = 20_000  # of one size, among which larger marginals are looked for


def privsyn(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    max_cells: int = 5000,
    rounds: int = 50,
    rows: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure all attributes and the pairs whose dependence is larger than their noise, and make rows that fit them.

    **Source** Zhang, Wang, Li, Honorio, Backes, He, Chen and Zhang 2021, "PrivSyn: Differentially private data
    synthesis", USENIX Security (sec21fall-zhang-zhikun.pdf): InDif, DenseMarg (Algorithm 1), the combination of
    marginals (Algorithm 2), weighted Gaussian noise and GUM; settings that are not in the text are those of the
    authors' code (privsyn in KaiChen9909/tab_bench).
    **Privacy** Add/remove, or replace one. InDif of a pair, in counts, changes by 4 at most, or 6 + 4 / n
    (`dependence.of_independence`), so all m of them by sqrt(m) times that in l2. A marginal has l2 sensitivity 1, or
    sqrt 2. InDif has a tenth of the budget, the d single attributes a tenth, and the selected marginals the rest, by
    c^(2/3) of their c cells: which, and so their noise, depends on the noisy InDif, so that a filter holds the total.
    `paper`: of rho (zCDP); `tight`: of mu^2/2 (Gaussian DP), see `Costs`. The rest is post-processing.
    **Shapes** Rows (m, d), m the public or the estimated number of rows, or `rows`.
    **Departures** 1. Consistent and non-negative marginals are those of least squares (`inference.nonnegative`), not of
    repeated averages. 2. Levels with few rows are not merged. 3. An attribute in no pair is independent; the authors'
    code gives it a pair. 4. Replacing a record, and `tight`, are ours. 5. The authors' code adds noise of scale
    8 m / rho to InDif as a share of the rows; here the scale is that of the text.

    `max_cells`: of a marginal that joins several pairs. `rounds`: of GUM.
    """
    domain, sizes, d = train.domain, train.domain.sizes, len(train.domain.names)
    check_settings("privsyn", tolerance=None, rows=rows, rounds=rounds, max_cells=max_cells)
    pairs = list(combinations(domain.names, 2))
    check_answers("privsyn", sizes, sorted(pairs, key=lambda r: math.prod(domain.shape(r)))[-1:])
    n = rows_if_public("privsyn", train, budget, None)
    costs, ledger = Costs.of("privsyn", budget, calibration), Ledger()
    costs.open_filter(ledger)
    noise_rng, rows_rng = rng.spawn(2)
    selection, single, joint = (share * costs.total for share in (SHARES if pairs else (0.0, 1.0, 0.0)))

    def measure(r: Clique, cost: float) -> Measurement:
        sigma = costs.sigma(cost)
        check_sigma("privsyn", sigma)
        return noisy_marginal(noise_rng, ledger, r, train.marginal(r), sigma, l2=costs.l2, noise=noise)

    singles = [measure((name,), single / d) for name in domain.names]
    chosen: list[Clique] = []
    if pairs:
        exact = np.array([from_independence(table) for _, table in marginals_in_parts(train, pairs)])
        sensitivity = of_independence(budget.relation, len(train) if n is None else n) * math.sqrt(len(pairs))
        multiplier = costs.sigma(selection) / costs.l2  # of any Gaussian noise at this cost
        indif = gaussian(
            noise_rng, ledger, real_numbers(exact, noise), sensitivity=sensitivity, multiplier=multiplier, label="InDif"
        )
        chosen = dense_marginals(sizes, pairs, indif, costs.l2 / math.sqrt(math.pi * joint))
    joined = joined_marginals(sizes, chosen, max_cells)
    weights = {r: math.prod(domain.shape(r)) ** (2 / 3) for r in joined}
    measured = [measure(r, joint * weights[r] / sum(weights.values())) for r in joined]

    every = [m.clique for m in (*singles, *measured)]
    residuals = Residuals.of(sizes, [*singles, *measured], n)
    found = nonnegative(residuals, every).residuals
    tables = {r: np.maximum(found.marginal(r), 0.0) for r in every}
    wanted = rows or max(round(residuals.total), 1)
    alone = [tables[name,] for name in domain.names]
    codes = gradual_update(sizes, alone, {r: tables[r] for r in joined}, wanted, rounds, rows_rng)
    choice = {"rho": costs.total, "pairs": [list(r) for r in chosen], "marginals": [list(r) for r in joined]}
    diagnostics = {**choice, "sigma": [m.sigma for m in measured], "total": residuals.total}
    return Release(domain, budget, ledger, (SyntheticRows(Table(domain, codes)),), diagnostics)


def dense_marginals(sizes: Mapping[str, int], pairs: Sequence[Clique], indif: Floats, scale: float) -> list[Clique]:
    """DenseMarg (Algorithm 1): the pairs to measure, each chosen because it lowers the expected l1 error the most.

    A pair that is left out costs its dependence, `indif` (m,) in counts. Those that are measured, of c_i cells, cost
    their noise: at sigma_i^2 in proportion to c_i^(-2/3) the sum over i of c_i E|noise| is `scale` (sum c_i^(2/3))^1.5,
    `scale` being Delta_2 / sqrt(pi rho).

    >>> dense_marginals({"a": 2, "b": 2, "c": 9}, [("a", "b"), ("a", "c"), ("b", "c")], np.array([12.0, 30, 5]), 1.0)
    [('a', 'c'), ('a', 'b')]
    """
    weights = np.array([math.prod(sizes[name] for name in pair) ** (2 / 3) for pair in pairs])
    chosen: list[int] = []
    left = np.ones(len(pairs), dtype=bool)
    while left.any():
        held = float(weights[chosen].sum())
        gain = np.where(left, indif - scale * ((held + weights) ** 1.5 - held**1.5), -math.inf)
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        chosen.append(best)
        left[best] = False
    return [pairs[place] for place in chosen]


def joined_marginals(sizes: Mapping[str, int], pairs: Sequence[Clique], max_cells: int) -> list[Clique]:
    """The combination (Algorithm 2): cliques of the pairs' graph in place of their pairs, the largest first.

    A clique has at most `max_cells` cells, and shares at most two attributes with those before it. Pairs in no clique
    stay.

    >>> joined_marginals({"a": 2, "b": 2, "c": 2, "d": 2}, [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], 8)
    [('a', 'b', 'c'), ('c', 'd')]
    """
    names, edges = list(sizes), set(pairs)
    levels: list[list[Clique]] = [[pair for pair in combinations(names, 2) if pair in edges]]
    while levels[-1] and len(levels[-1]) <= MOST_CLIQUES:
        larger: list[Clique] = [
            (*clique, name)
            for clique in levels[-1]
            for name in names[names.index(clique[-1]) + 1 :]
            if all((other, name) in edges for other in clique)
        ]
        levels.append([r for r in larger if math.prod(sizes[name] for name in r) <= max_cells])
    joined: list[Clique] = []
    covered: set[str] = set()
    for clique in (r for level in reversed(levels[1:]) for r in level):
        if len(covered & set(clique)) <= 2:
            joined.append(clique)
            covered |= set(clique)
    return [*joined, *(pair for pair in pairs if not any(set(pair) <= set(clique) for clique in joined))]
