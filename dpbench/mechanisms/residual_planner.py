"""ResidualPlanner: the Gaussian noise on a workload's residuals that has the least variance (Xiao et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Countable
from dpbench.errors import NoEstimateError, check_known
from dpbench.inference.residuals import Residuals, centred, centring, shares, whole_centred
from dpbench.mechanisms.fitting import Costs, check_sigma, rows_if_public
from dpbench.mechanisms.reconstruction import Reconstruction
from dpbench.mechanisms.workload import Workload, closure, distinct_cliques, weights_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_residuals
from dpbench.releases import Marginals, Release

OBJECTIVES = ("sum_of_variances", "max_variance")
PRECISION = 1e-4  # relative, of the largest variance
STEPS = 100_000
SCALE = 2**30  # of the noise on whole numbers: half of the most that discrete noise may have
MOST_WEIGHT = 2**31  # of a record in them, so that those of 2^32 records fit into 63 bits
LEAST_WEIGHT = 2**5  # by which the residual of the largest noise is multiplied: others are rounded by less than 1/64


def residual_planner(
    train: Countable,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    weights: Sequence[float] | None = None,
    objective: str = "sum_of_variances",
    n_public: bool | None = None,
    reconstruction: str = "simplex",
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    components: int | None = None,
    rows: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the residual of every subset of the workload's marginals, with the noise that suits all of them best.

    **Source** Xiao, He, Zhang and Kifer 2023, "An optimal and scalable matrix mechanism for noisy marginals under
    convex loss functions", section 4: select, measure, reconstruct; appendix B.6 for the sum of variances. C is a
    marginal of the workload, A a subset of one, m the numbers of levels.
    **Privacy** Add/remove, or replace one. The residuals, each times a weight g_A, are noised as one vector of whole
    numbers, whose l2 sensitivity is `of_residuals`: for a record that is added or removed its square is sum_A g_A^2
    p_A, p_A = prod_(i in A) (1 - 1/m_i) being the paper's privacy cost at sigma_A = 1, and for one that is replaced the
    exact maximum over the attributes in which two records differ (a bound, beyond 14 attributes). The whole costs
    1 / (2 multiplier^2) in the currency of `Costs`: rho of zCDP for `paper`, mu^2/2 of Gaussian DP for `tight`. For
    `replace` n is public and not measured.
    **Shapes** A marginal on C has the shape `domain.shape(C)`.
    **Departures** 1. The paper's subtraction matrices give the residuals with correlated noise. Here they are centred
    tables with independent noise that is centred afterwards: the same distribution, up to a basis, at the same cost. 2.
    For `replace` the plan is that for add/remove without n, its noise scaled to the sensitivity, whose variance is not
    quite the least. 3. The ratios of the scales are rounded to whole numbers.

    `workload`: see `cliques_of`. `weights`: w_C, one per marginal, in the workload's order (None: 1). `objective`: the
    least sum over all cells of w_C V_C, V_C being the variance of each cell of the unbiased marginal on C, or the least
    max_C w_C V_C. `n_public`: see `rows_if_public`. `reconstruction` and the parameters after it: see `Reconstruction`.
    The release holds the workload's marginals; with an engine, rows and the distribution too.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = distinct_cliques("residual_planner", domain, workload)
    w = weights_of("residual_planner", cliques, weights)
    n = rows_if_public("residual_planner", train, budget, n_public)
    check_known("objective", objective, OBJECTIVES)
    how = Reconstruction(
        "residual_planner", reconstruction, sizes, cliques, max_model_mb, iterations, tolerance, components, rows
    )
    costs, ledger = Costs.of("residual_planner", budget, calibration), Ledger()
    noise_rng, rows_rng = rng.spawn(2)

    plan = planned(sizes, cliques, w, objective, with_total=n is None)  # select
    values, variances = _measured(train, plan, budget, costs, noise_rng, ledger, noise)
    if n is not None:
        values[()], variances[()] = np.asarray(float(n)), 0.0
    residuals = Residuals(sizes, values, variances)
    tables, parts, notes = how.parts(domain, residuals, n, rows_rng)  # reconstruct
    sds = tuple((r, math.sqrt(variance)) for r, variance in variances.items() if variance)
    largest = max(residuals.variance(r) for r in cliques)
    diagnostics = {**notes, "objective": objective, "largest_sd": math.sqrt(largest), "residuals": len(plan)}
    return Release(domain, budget, ledger, (Marginals(tables, sds, of_residuals=True), *parts), diagnostics)


def planned(
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    weights: Mapping[Clique, float],
    objective: str = "sum_of_variances",
    *,
    with_total: bool = True,
) -> dict[Clique, float]:
    """sigma_A^2 of each residual A that helps the cliques, in units in which sum_A p_A / sigma_A^2 = 1.

    The variance of a cell of C is V_C = sum_(A in C) sigma_A^2 p_A / prod_(j in C \\ A) m_j^2. A weighted sum of them
    is sum_A v_A sigma_A^2, least where sigma_A^2 goes with sqrt(p_A / v_A), by Cauchy and Schwarz (appendix B.6).

    The least maximum is a convex programme, in the sigma_A^2. Its dual is to find the weights lambda_C, summing to 1,
    for which the least weighted sum, (sum_A sqrt(p_A v_A))^2, is largest: the sigma_A^2 of that sum solve both. The
    weights are multiplied by V_C / sum lambda V until no V_C is above that mean, a lower bound, by `PRECISION`.

    >>> plan = planned({"a": 2, "b": 2}, [("a", "b")], {("a", "b"): 1.0})
    >>> {"".join(r): round(variance, 9) for r, variance in plan.items()}
    {'': 4.0, 'a': 2.0, 'b': 2.0, 'ab': 1.0}

    Raises `NoEstimateError` for a programme that is not solved in `STEPS`.
    """
    kept = [r for r in closure(cliques) if centring(sizes, r) > 0]
    kept = [(), *kept] if with_total else kept
    place = {r: i for i, r in enumerate(kept)}
    entries = [
        (c, place[r], share) for c, clique in enumerate(cliques) for r, share in shares(sizes, clique) if r in place
    ]
    if not entries:
        return {}
    at, column, share = (np.array(one) for one in zip(*entries, strict=True))
    w = np.array([weights[r] for r in cliques])
    V = csr_array((w[at] * share, (at, column)), shape=(len(cliques), len(kept)))  # w_C V_C of the sigma_A^2
    p = np.array([centring(sizes, r) for r in kept])

    def least_sum(multipliers: Floats) -> Floats:
        v = multipliers @ V
        variance: Floats = np.sqrt(p / v)
        return variance * float(np.sqrt(p * v).sum())

    if objective == "sum_of_variances":
        return dict(
            zip(kept, least_sum(np.array([math.prod(sizes[i] for i in r) for r in cliques])).tolist(), strict=True)
        )
    multipliers = np.full(len(cliques), 1 / len(cliques))
    for _ in range(STEPS):
        variance = least_sum(multipliers)
        worst = V @ variance
        mean = float(multipliers @ worst)
        if worst.max() <= (1 + PRECISION) * mean:
            return dict(zip(kept, variance.tolist(), strict=True))
        multipliers = multipliers * worst / mean
    raise NoEstimateError(f"residual_planner: no plan with {PRECISION:g} of the least maximum after {STEPS:,} steps")


def _measured(
    train: Countable,
    plan: Mapping[Clique, float],
    budget: Budget,
    costs: Costs,
    rng: np.random.Generator,
    ledger: Ledger,
    noise: str,
) -> tuple[dict[Clique, Floats], dict[Clique, float]]:
    """The noisy residuals and the variances of their noise, in the ratios of the plan."""
    if not plan:
        return {}, {}
    cells = {r: math.prod(train.domain.shape(r)) for r in plan}
    multiplier = costs.sigma(costs.total) / costs.l2
    rough = {r: math.sqrt(one) * multiplier for r, one in plan.items()}  # sum of p_A / plan_A = 1
    scale = max(min(SCALE, MOST_WEIGHT * min(rough.values())), LEAST_WEIGHT * max(cells[r] * rough[r] for r in plan))
    g = {r: max(round(scale / (cells[r] * rough[r])), 1) for r in plan}
    sensitivity = of_residuals(train.domain.sizes, {r: float(g[r] * cells[r]) for r in plan}, budget.relation)
    sigma = {r: sensitivity * multiplier / (g[r] * cells[r]) for r in plan}
    check_sigma("residual_planner", *sigma.values())
    true = train.marginals(list(plan))
    exact = np.concatenate([g[r] * whole_centred(true[r].astype(np.int64)).ravel() for r in plan])
    noisy = gaussian(
        rng,
        ledger,
        whole(exact, noise),
        sensitivity=sensitivity,
        multiplier=multiplier,
        label=f"{len(plan)} residuals in whole numbers",
    )
    ends = np.cumsum([cells[r] for r in plan])[:-1]
    tables = zip(plan, np.split(noisy, ends), strict=True)
    values = {r: centred(x.reshape(train.domain.shape(r)) / (g[r] * cells[r])) for r, x in tables}
    return values, {r: one**2 for r, one in sigma.items()}
