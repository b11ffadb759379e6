"""NAPSU-MQ: synthetic tables of draws from a posterior that takes account of the noise (Räisä et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dpbench.data.domain import Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UnconvergedError, UserError, check_positive
from dpbench.inference.hamiltonian import Chain, hamiltonian
from dpbench.inference.max_entropy import MaxEntropy
from dpbench.inference.noisy_posterior import NoisyPosterior
from dpbench.inference.points import HistogramModel, histogram_mb
from dpbench.inference.residuals import Residuals
from dpbench.mechanisms.fitting import Costs, check_settings, measured_alike, rows_if_public
from dpbench.mechanisms.workload import Workload, distinct_cliques
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows, SyntheticTables

EVERY = 2  # trajectories a table
WIDEST = 1.0  # standard deviation of a direction in the sampler's units: walls are nearer than the prior is wide
LEAST_ACCEPTANCE = 0.2  # below it the chain has hardly moved


def napsu_mq(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    tables: int = 50,
    rows: int | None = None,
    scale: float = 3.0,
    warmup: int = 150,
    leapfrogs: int = 24,
    max_model_mb: float = 80,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the marginals of a workload, and draw tables from the posterior of the distribution given their noise.

    The distribution is that of most entropy, p(x) in proportion to exp(theta' b(x)), b the marginals' canonical queries
    (`MaxEntropy`). The sum s of b over n rows, with noise, is N(n E b, n Cov b + V) by the central limit theorem, so
    that the posterior of theta knows the error of sampling and of the noise V. Each of m tables has rows of one draw of
    theta; models that combine estimates over the tables (`linear_tables`) have intervals that know both.

    **Source** Räisä, Jälkö, Kaski and Honkela 2023, "Noise-Aware Statistical Inference with Differentially Private
    Synthetic Data", AISTATS (arXiv 2205.14485); of the text only the abstract and the introduction were read, and the
    authors' code NAPSU-MQ-experiments (Apache-2.0), from which the model, the queries, the prior, the samplers, the
    sensitivity and the rules are. That mixing over tables is consistent for Bayesian analyses: Räisä, Jälkö and Honkela
    2025, JMLR 26 (abstract); no such rule is here.
    **Privacy** Add/remove, or replace one. A record is in one cell of each marginal, so that of w marginals one record
    changes counts by sqrt w in l2, or sqrt(2 w). All are measured at one sigma: the whole costs w Delta^2 / (2
    sigma^2), Delta^2 being 1, or 2: rho of zCDP for `paper`, mu^2/2 of Gaussian DP for `tight` (`Costs`). The rest is
    post-processing. For `replace` n is public; else it is estimated.
    **Shapes** A table over the whole domain, and k x k matrices, k the parameters: each within `max_model_mb`. Tables
    (m n', d), n' the public or estimated number of rows, or `rows`.
    **Departures** 1. The paper's canonical queries are indicators of cells without an attribute's first level, each
    with noise of its own. Here whole marginals are measured, at the same sensitivity, and reduced to orthonormal
    contrasts, whose noise stays independent: the same distributions, more information, and no level comes first. 2.
    theta ~ N(0, `scale`^2 I) in these contrasts; theirs is N(0, 10^2 I). At 1 the prior is strong enough to bias
    regressions on numbers, at 10 the chain mixes slowly where many cells are empty. 3. The covariance of s is that at
    the mode, not at theta. 4. Hamiltonian Monte Carlo in NumPy (`leapfrogs` steps a draw) in place of NUTS, with two
    trajectories for each table. Laplace's approximation, which the paper uses for small tables, only gives its start
    and units: where cells are empty, its draws put most rows in them. 5. All cells of the domain are enumerated, as in
    the paper for small tables; for large ones it uses a junction tree. 6. An unknown n adds its variance to that of s.
    The paper has replacement only.

    `tables`: m. `rows`: n'. `warmup`: trajectories before the first table. The release also has the mean of the drawn
    distributions, rows of it, and its answers to the workload.

    Raises `UnconvergedError` where the chain hardly moves, and `UserError` for a domain that is too large.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = distinct_cliques("napsu_mq", domain, workload)
    check_settings("napsu_mq", tolerance=None, rows=rows, warmup=warmup, leapfrogs=leapfrogs)
    check_positive("napsu_mq", scale=scale)
    if tables < 2:
        raise UserError(f"napsu_mq: tables must be at least 2, to combine estimates over them, not {tables}")
    family = MaxEntropy(sizes, cliques)
    check_size(domain, family, max_model_mb)
    n = rows_if_public("napsu_mq", train, budget, None)
    costs, ledger, (noise_rng, chain_rng, rows_rng) = Costs.of("napsu_mq", budget, calibration), Ledger(), rng.spawn(3)
    measured, sigma = measured_alike("napsu_mq", train, cliques, n, costs, ledger, rng=noise_rng, noise=noise)

    residuals = Residuals.of(sizes, measured, n)
    total = max(round(residuals.total), 1)
    chain, information = posterior_draws(
        family, residuals, chain_rng, scale=scale, warmup=warmup, count=EVERY * tables, steps=leapfrogs
    )
    distributions = [family.distribution(theta) for theta in chain.draws[EVERY - 1 :: EVERY]]
    drawn = drawn_tables(domain, distributions, rows or total, rows_rng)
    mean = np.mean(distributions, axis=0).reshape(domain.shape(domain.names))
    model = HistogramModel(sizes, float(total), len(chain.draws), -float(chain.values.max()), mean)
    distribution = Distribution(model)
    parts = (
        Marginals(distribution.answer(cliques), tuple((m.clique, m.sigma) for m in measured)),
        SyntheticRows(distribution.sample(domain, rows or total, rows_rng)),
        distribution,
        SyntheticTables(drawn, tables),
    )
    return Release(
        domain, budget, ledger, parts, {"rho": costs.total, "total": float(total), "sigma": sigma, **information}
    )


def posterior_draws(
    family: MaxEntropy,
    residuals: Residuals,
    rng: np.random.Generator,
    *,
    scale: float,
    warmup: int,
    count: int,
    steps: int,
) -> tuple[Chain, dict[str, float]]:
    """Draws of theta given noisy residuals, and diagnostics. Raises `UnconvergedError`."""
    s, variances = family.statistics(residuals)
    uniform = family.distribution(np.zeros(family.parameters))
    of_n = residuals.variances.get((), 0.0)
    mode, density = NoisyPosterior(family, s, variances, residuals.total, of_n, scale, uniform).mode()
    precision = density.information + np.eye(len(mode)) / min(scale, WIDEST) ** 2
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    chain = hamiltonian(density, mode, root, rng, warmup=warmup, count=count, steps=steps)
    if not chain.acceptance >= LEAST_ACCEPTANCE:
        raise UnconvergedError(
            f"napsu_mq: the chain hardly moves: {chain.acceptance:.0%} of {count} trajectories were accepted, and "
            f"{chain.divergences} diverged; raise warmup, or lower scale"
        )
    numbers = {"parameters": family.parameters, "acceptance": chain.acceptance, "divergences": chain.divergences}
    return chain, numbers


def drawn_tables(domain: Domain, distributions: Sequence[Floats], rows: int, rng: np.random.Generator) -> Table:
    """Independent rows of each distribution (cells in any shape), so many of each, one table after the other."""
    every = np.arange(math.prod(domain.shape(domain.names)))
    cells = np.concatenate([np.repeat(every, rng.multinomial(rows, p.ravel())) for p in distributions])
    codes = np.stack(np.unravel_index(cells, domain.shape(domain.names)), axis=1)
    return Table(domain, codes.astype(np.int64, copy=False))


def check_size(domain: Domain, family: MaxEntropy, max_model_mb: float) -> None:
    """Raises `UserError` for a table over the domain, or a matrix of the parameters, over the limit, and what fits."""
    cells, k, mb = math.prod(domain.sizes.values()), family.parameters, histogram_mb(domain.sizes)
    matrix = k**2 * 8 / 2**20
    if mb > max_model_mb:
        fit = sum(
            one * 8 / 2**20 <= max_model_mb for one in accumulate(sorted(domain.sizes.values()), lambda a, b: a * b)
        )
        raise UserError(
            f"napsu_mq keeps a probability for each of the {cells:,} cells of the domain, {mb:,.3g} MB, and the limit "
            f"is {max_model_mb:g} MB: the {fit} attributes of fewest levels would fit, of {len(domain.names)}; leave "
            "others out (dataset.drop), declare fewer bins, or raise max_model_mb"
        )
    if matrix > max_model_mb:
        raise UserError(
            f"napsu_mq keeps matrices of {k:,} x {k:,} parameters, {matrix:,.3g} MB each, and the limit is "
            f"{max_model_mb:g} MB: {math.isqrt(int(max_model_mb * 2**17)):,} parameters would fit; name fewer "
            "marginals (workload), declare fewer bins, or raise max_model_mb"
        )
