"""The posterior of a logistic or Poisson regression given rows (Kulkarni et al. 2021, section 4)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import UserError, check_known, check_positive
from dpbench.inference.glm_statistics import FAMILIES
from dpbench.models.fit import Fit
from dpbench.models.logistic import check_labels
from dpbench.models.poisson import counts_of
from dpbench.models.posterior_fit import posterior_fit
from dpbench.releases import Release, SyntheticRows

FREEDOM = 5  # degrees of freedom of the proposals: heavier tails than the posterior
MOST_STEPS, GRADIENT = 100, 1e-9  # of Newton's method, in units of the number of rows
BLOCK = 2**22  # scores x'theta in memory at once


def bayesian_rows(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    family: str = "logistic",
    largest_norm: float = 3.0,
    chains: int = 4,
    draws: int = 2000,
    level: float = 0.95,
) -> Fit:
    """Draws from the posterior of theta given the released rows, which are treated as real ones.

    **Source** Kulkarni et al. 2021 (Bayesian GLM), section 4: the non-private baseline. theta has a uniform direction
    and a squared norm of chi^2(d), truncated at s: it is N(0, I) within ||theta||_2 <= `largest_norm` = sqrt s. Labels
    -1 and +1 are logistic; counts have the mean log(1 + exp(x'theta)), section 8.
    **Privacy** Post-processing.
    **Shapes** `draws` (4 * 1,000, p) in the order of `Design.columns`.
    **Departures** Metropolis-Hastings with independent proposals, a t distribution around the mode with the curvature
    there, instead of Stan's NUTS: it needs no tuning, and nearly all of its proposals are accepted.

    Raises `UserError` for a target of another family or a setting out of range, and `UnconvergedError`.
    """
    check_known("family", family, FAMILIES)
    check_positive("bayesian_rows", largest_norm=largest_norm, chains=chains, draws=draws)
    if chains < 2 or draws < 10:
        raise UserError(f"bayesian_rows needs at least 2 chains and 10 draws, not {chains} and {draws}")
    table = release[SyntheticRows].table
    if family == "logistic":
        check_labels(design)
    X, y = design.encode(table)
    y = counts_of(design, table) if family == "poisson" else y
    sampled, accepted = metropolis(X, y, family, rng, largest_norm=largest_norm, chains=chains, draws=draws)
    return posterior_fit(
        sampled, level=level, notes={"accepted": accepted, "family": family, "largest_norm": largest_norm}
    )


def metropolis(
    X: Floats, y: Floats, family: str, rng: np.random.Generator, *, largest_norm: float, chains: int, draws: int
) -> tuple[Floats, float]:
    """Draws (chains, draws, d) of the posterior given X (n, d) and y (n,), and the share of proposals accepted.

    A tenth more are drawn and discarded at the start of each chain: its first proposal may be outside the bound.
    """
    centre, precision = _mode(X, y, family)
    steps = draws + draws // 10 + 1
    shape = (chains * steps, len(centre))
    z = rng.normal(size=shape) / np.sqrt(rng.chisquare(FREEDOM, size=(shape[0], 1)) / FREEDOM)
    proposals = centre + np.linalg.solve(np.linalg.cholesky(precision).T, z.T).T
    log_q = -(FREEDOM + len(centre)) / 2 * np.log1p((z**2).sum(axis=1) / FREEDOM)
    log_p = _log_posterior(proposals, X, y, family)
    log_p[np.linalg.norm(proposals, axis=1) > largest_norm] = -np.inf
    weight, chance = (log_p - log_q).reshape(chains, steps), np.log(rng.random((chains, steps)))
    place = np.zeros((chains, steps), dtype=np.int64)
    for t in range(1, steps):
        before = place[:, t - 1]
        held = weight[np.arange(chains), before]
        accepted = (weight[:, t] > -np.inf) & ((held == -np.inf) | (chance[:, t] + held < weight[:, t]))
        place[:, t] = np.where(accepted, t, before)
    found = np.take_along_axis(proposals.reshape(chains, steps, -1), place[..., None], axis=1)
    return found[:, -draws:], float((place[:, 1:] != place[:, :-1]).mean())


def _mode(X: Floats, y: Floats, family: str) -> tuple[Floats, Floats]:
    """The mode (d,) of the posterior under N(0, I) and the curvature (d, d) there, by Newton's method from 0.

    Both log-likelihoods are concave, so that a step that is halved until the posterior rises ends at the mode.
    """
    theta = np.zeros(X.shape[1])
    value = _log_posterior(theta[None], X, y, family)[0]
    for _ in range(MOST_STEPS):
        slope, curvature = _derivatives(X @ theta, y, family)
        gradient, hessian = X.T @ slope - theta, (X * curvature[:, None]).T @ X + np.eye(len(theta))
        if np.abs(gradient).max() <= GRADIENT * (1 + len(y)):
            break
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while size > GRADIENT and (new := _log_posterior((theta + size * step)[None], X, y, family)[0]) < value:
            size /= 2
        theta, value = theta + size * step, new
    return theta, hessian


def _log_posterior(thetas: Floats, X: Floats, y: Floats, family: str) -> Floats:
    """The logarithm of the density (k,) at thetas (k, d) under the prior N(0, I), up to a constant."""
    found: Floats = -(thetas**2).sum(axis=1) / 2
    for start in range(0, len(thetas), rows := max(BLOCK // max(len(y), 1), 1)):
        s = thetas[start : start + rows] @ X.T
        if family == "logistic":
            found[start : start + rows] -= np.logaddexp(0.0, -y * s).sum(axis=1)
        else:
            mean = np.logaddexp(0.0, s)
            found[start : start + rows] += (y * _log_softplus(s, mean) - mean).sum(axis=1)
    return found


def _derivatives(s: Floats, y: Floats, family: str) -> tuple[Floats, Floats]:
    """The derivative of the log-likelihood of each row in s = x'theta (n,), and the second one with its sign turned."""
    up = expit(s)
    if family == "logistic":
        return y * expit(-y * s), up * (1 - up)
    mean = np.logaddexp(0.0, s)
    part = np.exp(-np.logaddexp(0.0, -s) - _log_softplus(s, mean))  # expit / softplus
    return y * part - up, y * (part**2 - part * (1 - up)) + up * (1 - up)


def _log_softplus(s: Floats, softplus: Floats) -> Floats:
    """log log(1 + e^s), which is s for very small s."""
    found: Floats = np.where(s < -30, s, np.log(np.maximum(softplus, 1e-300)))
    return found
