"""The posterior of a logistic or Poisson regression given noisy statistics (Kulkarni et al. 2021)."""

from __future__ import annotations

import numpy as np

from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError, check_known, check_positive
from dpbench.models.fit import Fit
from dpbench.models.glm_moments import EXPECTATIONS
from dpbench.models.glm_posterior import SCALE, annealed, metropolis, start_of, statistics_density, theta_of
from dpbench.models.nuts import laplace, nuts
from dpbench.models.posterior_fit import posterior_fit
from dpbench.releases import GlmStatistics, Release

NOISE = ("aware", "naive")
SAMPLERS = ("nuts", "annealed_nuts", "laplace", "metropolis")
ACCEPTANCE = {"nuts": 0.8, "annealed_nuts": 0.9}  # with 0.8 up to an eighth of the draws of the latter diverged


def bayesian_statistics(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    noise: str = "aware",
    expectations: str = "quadrature",
    sampler: str = "nuts",
    largest_norm: float = 3.0,
    feature_scale: float = SCALE,
    chains: int = 4,
    draws: int = 2000,
    warmup: int = 1000,
    step: float = 0.01,
    level: float = 0.95,
) -> Fit:
    """Draws of theta from the posterior given the released statistics, which models the distribution of their noise.

    **Source** Kulkarni et al. 2021 (Bayesian GLM), sections 3 and 4.1: features N(0, Sigma), the sum of the statistics
    normal by the central limit theorem, theta and Sigma with the priors of `models.glm_posterior`.
    **Privacy** Post-processing: only the values, the variances of their noise and the number of rows are used.
    **Shapes** `draws` (chains * 1,000, p) in the order of `Design.columns`.
    **Departures** those of `models.glm_moments`, `models.glm_posterior`, `models.nuts` and `models.metropolis`.

    `noise`: "aware", or "naive", which treats the noisy statistics as exact. `expectations`: by "quadrature", or by
    the paper's "taylor" polynomials, which need |x'theta| below 1 or so. `sampler`: "nuts"; "annealed_nuts", for the
    noise-naive posterior, which starts from the mode of `models.glm_posterior.annealed` and adapts correlations, too;
    "laplace", a normal distribution around the mode; or "metropolis", as in the paper for Poisson, with proposals of
    scale `step`. `largest_norm`: ||theta||_2 is at most this. `feature_scale`: of the half-normal prior of the
    features' standard deviations.

    Raises `UserError` for a setting out of range or a design with an intercept, which is not a normal feature,
    `NoEstimateError` if the number of rows is private and its noisy value not positive, and `UnconvergedError`.
    """
    _check(design, noise, expectations, sampler)
    check_positive("bayesian_statistics", largest_norm=largest_norm, feature_scale=feature_scale)
    check_positive("bayesian_statistics", draws=draws, warmup=warmup, step=step)
    if chains < 2:
        raise UserError(f"bayesian_statistics needs at least 2 chains, to compute R-hat, not {chains}")
    found, bound = release[GlmStatistics], largest_norm**2
    d, family, rows = found.features, found.family, found.rows
    if rows < 1:
        raise NoEstimateError(f"the noisy number of rows is {rows:.3g}: the noise is larger than all of the signal")
    variances, rows_sd = found.variances, found.rows_sd
    if noise == "naive":
        variances, rows_sd = np.zeros_like(variances), 0.0
    density = statistics_density(family, d, expectations)
    data = (found.values, variances, rows, rows_sd, bound, feature_scale)
    anneals = sampler == "annealed_nuts"
    start = start_of(found.values, found.variances if anneals else variances, rows, bound, feature_scale, family, d)
    around = annealed(density, start, data, found.variances) if anneals else laplace(density, start, data)
    notes = {"family": family, "largest_norm": largest_norm, "noise": noise, "sampler": sampler}
    lengths, divergences = {"chains": chains, "draws": draws, "warmup": warmup}, None
    if sampler in ACCEPTANCE:
        target = ACCEPTANCE[sampler]
        points, diverged, _ = nuts(density, around, data, rng, target=target, dense=anneals, **lengths)
        divergences = int(diverged.sum())
    elif sampler == "metropolis":
        points, notes["accepted"] = metropolis(density, around, data, rng, step=step, **lengths)
    else:
        points = around.draws(rng, (chains, draws))
    return posterior_fit(theta_of(points[..., :d], bound), divergences=divergences, level=level, notes=notes)


def _check(design: Design, noise: str, expectations: str, sampler: str) -> None:
    check_known("noise", noise, NOISE)
    check_known("expectations", expectations, EXPECTATIONS)
    check_known("sampler", sampler, SAMPLERS)
    if sampler == "annealed_nuts" and noise != "naive":
        raise UserError("sampler=annealed_nuts lets the noise fall to 0, which is for noise=naive alone: use nuts")
    if design.intercept:
        raise UserError(
            "bayesian_statistics assumes normal features, but the intercept is a constant: set design.intercept=false"
        )
