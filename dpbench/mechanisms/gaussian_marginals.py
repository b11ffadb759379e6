"""Independent noise on each marginal of a workload: the simplest mechanism, which any other must beat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpbench.data.domain import Clique
from dpbench.data.table import Countable
from dpbench.errors import UserError, check_known
from dpbench.inference import Measurement
from dpbench.mechanisms.fitting import Costs, check_sigma, noisy_marginal, rows_if_public
from dpbench.mechanisms.reconstruction import Reconstruction
from dpbench.mechanisms.workload import Workload, distinct_cliques, weights_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import is_discrete
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import laplace
from dpbench.privacy.sensitivity import of_marginal
from dpbench.releases import Marginals, Release

DISTRIBUTIONS = ("gaussian", "laplace")


def gaussian_marginals(
    train: Countable,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    weights: Sequence[float] | None = None,
    distribution: str = "gaussian",
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
    """Add noise to every cell of every marginal of the workload, and reconstruct answers from them.

    **Source** Dwork, McSherry, Nissim and Smith 2006 (Laplace); Dwork et al. 2006, "Our data, ourselves" (Gaussian).
    **Privacy** Add/remove, or replace one. A record is in one cell of each marginal: with Gaussian noise of standard
    deviation sigma_r on marginal r, the whole costs sum_r Delta^2 / (2 sigma_r^2), Delta^2 being 1, or 2. The currency
    is rho of zCDP for `paper`, mu^2/2 of Gaussian DP for `tight` (`Costs`). Two records that differ in every attribute
    attain it. With Laplace noise of scale b_r it is sum_r Delta_1 / b_r = epsilon, Delta_1 being 1, or 2: pure
    DP, which makes no use of delta. For `replace` n is public, and a marginal of a single cell is n, without noise.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.
    **Departures** None.

    `workload`: see `cliques_of`. `weights`: one per marginal, in the workload's order; the noise minimises sum_r w_r
    sigma_r^2 (None: all are 1, and so all noise is alike). `distribution` of the noise: `gaussian` or `laplace`.
    `n_public`: see `rows_if_public`. `reconstruction` and the parameters after it: see `Reconstruction`. `noise`:
    `continuous`, or `discrete`, for Gaussian noise. The release holds the workload's marginals; with an
    engine, rows and the distribution too.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = distinct_cliques("gaussian_marginals", domain, workload)
    w = weights_of("gaussian_marginals", cliques, weights)
    n = rows_if_public("gaussian_marginals", train, budget, n_public)
    check_known("distribution", distribution, DISTRIBUTIONS)
    how = Reconstruction(
        "gaussian_marginals", reconstruction, sizes, cliques, max_model_mb, iterations, tolerance, components, rows
    )
    noisy = [r for r in cliques if n is None or math.prod(domain.shape(r)) > 1]
    ledger, (noise_rng, rows_rng), true = Ledger(), rng.spawn(2), train.marginals(noisy)
    l1, l2 = of_marginal(budget.relation)

    def measure(r: Clique) -> Measurement:
        if distribution == "laplace":
            label, multiplier = f"marginal {','.join(r)}", scale[r] / l1
            y = laplace(noise_rng, ledger, true[r], sensitivity=l1, multiplier=multiplier, label=label)
            return Measurement(r, y, math.sqrt(2) * scale[r])
        return noisy_marginal(noise_rng, ledger, r, true[r], scale[r], l2=l2, noise=noise)

    if distribution == "laplace":
        scale = _laplace_scales(noisy, w, l1, budget.epsilon, noise)
    else:
        costs = Costs.of("gaussian_marginals", budget, calibration)
        shared = costs.sigma(costs.total) * math.sqrt(sum(math.sqrt(w[r]) for r in noisy))
        scale = {r: shared / w[r] ** 0.25 for r in noisy}
    check_sigma("gaussian_marginals", *scale.values())

    measured = [measure(r) for r in noisy]
    tables, parts, notes = how.parts(domain, measured, n, rows_rng)
    tables = {r: tables[r] if r in tables else np.full(domain.shape(r), float(len(train))) for r in cliques}
    sds = tuple((m.clique, m.sigma) for m in measured) if distribution == "gaussian" else ()
    return Release(domain, budget, ledger, (Marginals(tables, sds), *parts), {**notes, "distribution": distribution})


def _laplace_scales(
    cliques: Sequence[Clique], w: dict[Clique, float], l1: float, epsilon: float, noise: str
) -> dict[Clique, float]:
    """b_r with sum_r l1 / b_r = epsilon and the least sum_r w_r b_r^2: proportional to w_r^(-1/3)."""
    if is_discrete(noise):
        raise UserError(
            "gaussian_marginals: distribution=laplace has no discrete noise; choose distribution=gaussian or "
            "noise=continuous"
        )
    if not math.isfinite(epsilon):
        raise UserError("gaussian_marginals needs a finite epsilon; use a large one, such as 1e6, to see its limit")
    shared = l1 / epsilon * sum(w[r] ** (1 / 3) for r in cliques)
    return {r: shared / w[r] ** (1 / 3) for r in cliques}
