"""The log density of the parameters (theta, Sigma) of a Bayesian GLM given noisy statistics.

Kulkarni et al. 2021 (Bayesian GLM), sections 3.1 and 4.1. A point is unconstrained: a vector (p,) of

    w (d)                theta = w / sqrt(1 + ||w||^2 / s), which has ||theta||^2 < s
    log tau (d)          the standard deviations of the features
    d (d - 1) / 2        the Cholesky factor of their correlation matrix Omega, by numpyro's transform
    1                    the number of rows where it is private, in standard deviations of its noise

The priors: theta of uniform direction with a squared norm chi^2(d) below s,
which is N(0, I) within a ball; tau_j half-normal, of the scale `SCALE` in the paper; Omega ~ LKJ(2);
Sigma = diag(tau) Omega diag(tau).

Departures. 1. Section 4.1 has sqrt(max(rho, s)) for the norm; the text, a truncated chi^2. Here rho <= s is truncated,
so that the prior has no mass on the sphere itself. 2. Where the number of rows is private it has a flat prior.

`metropolis` draws from such a density by a random walk (Kulkarni et al. 2021, section 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.inference.glm_statistics import blocks, triangle
from dpbench.models.glm_moments import Array, moments
from dpbench.models.nuts import Density, Laplace, climbed, laplace, prepared_jax, start_near

SCALE = 2.5  # of the half-normal prior of tau in section 4.1
SHAPE = 2.0  # of the LKJ prior of Omega
SHARES = (*(16.0**-k for k in range(7)), 0.0)  # of the variance of the noise, from one mode to the next


@cache
def statistics_density(family: str, d: int, method: str) -> Density:
    """log p(point | values, ..., scale) up to a constant: noise-aware, with s integrated out.

    Given theta and Sigma, s ~ N(n mu_s, n Sigma_s) (section 3.3), so that the noisy values z = s + noise are
    N(n mu_s, n Sigma_s + diag(variances)). Variances of 0: the noise-naive posterior. values, variances (k,) in the
    order of `inference.glm_statistics`; `bound`: s, infinite for none; `scale`: of the prior of tau.
    """
    jax = prepared_jax()

    def density(
        point: Array, values: Array, variances: Array, rows: Array, rows_sd: Array, bound: Array, scale: Array
    ) -> Array:
        xp = jax.numpy
        theta, prior_theta = _theta(point[:d], bound, xp)
        Sigma, prior_Sigma = _sigma(point[d:-1], d, scale)
        n = xp.maximum(rows + rows_sd * point[-1], 1.0)
        mean, covariance = moments(theta, Sigma, family, method)
        total = n * covariance + xp.diag(variances)
        return prior_theta + prior_Sigma - point[-1] ** 2 / 2 + gaussian(values - n * mean, total)

    return density


def theta_of(w: Floats, bound: float) -> Floats:
    """theta (..., d) of w (..., d)."""
    found: Floats = w / np.sqrt(1 + (w**2).sum(axis=-1, keepdims=True) / bound)
    return found


def start_of(values: Floats, variances: Floats, rows: float, bound: float, scale: float, family: str, d: int) -> Floats:
    """A starting point (p,) for the mode, by the method of moments: no correlation, and E[y x_j] = tau_j^2 theta_j / 2.

    tau_j^2 is the released second moment, between the scale of the noise alone and the prior's scale. ||theta||_2 is
    at most half the bound, and half the prior's root of d.
    """
    parts = blocks(family, d)
    i, j = triangle(d)
    noise = math.sqrt(variances[parts[1]].max()) / rows
    tau2 = np.clip((values[parts[1]] / rows)[i == j], max(0.1 * noise, 1e-6), scale**2)
    theta = 2 * (values[parts[0 if family == "logistic" else 2]] / rows) / (tau2 + noise)
    theta *= min(1.0, math.sqrt(min(bound, d)) / 2 / max(float(np.linalg.norm(theta)), 1e-6))
    w = theta / np.sqrt(1 - theta @ theta / bound)
    return np.concatenate([w, np.log(tau2) / 2, np.zeros(d * (d - 1) // 2 + 1)])


def annealed(density: Density, start: Floats, data: Sequence[Any], variances: Floats) -> Laplace:
    """Laplace's approximation of the noise-naive posterior, its mode followed from that of the noise-aware one.

    The variances (k,) of the noise fall to 0 in steps, and Newton's method goes on from the last mode (numerical
    continuation, Allgower and Georg 1990). Noisy second moments are seldom those of any rows: far from its mode the
    noise-naive log density is -1e6 to -1e16, and a search that begins there ends far from the mode.
    """
    values, _, *rest = data
    found = laplace(density, start, (values, variances, *rest))
    for share in SHARES[1:]:
        found = climbed(density, found.mode, (values, share * variances, *rest))
    return found


def gaussian(residual: Array, covariance: Array) -> Array:
    """log N(residual | 0, covariance) up to a constant; its gradient is that of the closed form."""
    return _gaussian()(residual, covariance)


@cache
def _gaussian() -> Any:
    """The derivative of a Cholesky factor takes several times as long as the inverse, which the closed form uses."""
    jax = prepared_jax()
    xp, solve = jax.numpy, jax.scipy.linalg.cho_solve

    def forward(r: Array, C: Array) -> Any:
        root = jax.lax.linalg.cholesky(C, symmetrize_input=False)
        solved = solve((root, True), r)
        return -r @ solved / 2 - xp.log(xp.diag(root)).sum(), (root, solved)

    def backward(kept: Any, g: Array) -> Any:
        root, solved = kept
        return -g * solved, g / 2 * (solved[:, None] * solved - solve((root, True), xp.eye(len(solved))))

    density = jax.custom_vjp(lambda r, C: forward(r, C)[0])
    density.defvjp(forward, backward)
    return density


def _theta(w: Array, bound: Array, xp: Any) -> tuple[Array, Array]:
    """theta (d,) and the log density of w: that of N(0, I) at theta, times (1 + ||w||^2 / s)^-(d + 2)/2."""
    stretch = 1 + w @ w / bound
    theta = w / xp.sqrt(stretch)
    return theta, -theta @ theta / 2 - (len(w) + 2) / 2 * xp.log(stretch)


def _sigma(point: Array, d: int, scale: Array) -> tuple[Array, Array]:
    """Sigma (d, d) and the log density of (log tau, Omega's point)."""
    from numpyro.distributions import LKJCholesky
    from numpyro.distributions.transforms import CorrCholeskyTransform

    xp = point.__array_namespace__()
    tau = xp.exp(point[:d])
    prior = (point[:d] - (tau / scale) ** 2 / 2).sum()
    if d == 1:
        return (tau**2)[:, None], prior
    transform = CorrCholeskyTransform()
    root = transform(point[d:])
    prior += LKJCholesky(d, SHAPE).log_prob(root) + transform.log_abs_det_jacobian(point[d:], root)
    scaled = tau[:, None] * root
    return scaled @ scaled.T, prior


def metropolis(
    density: Density,
    around: Laplace,
    data: Sequence[Any],
    rng: np.random.Generator,
    *,
    chains: int,
    draws: int,
    warmup: int,
    step: float,
) -> tuple[Floats, float]:
    """Draws (chains, draws, p) after `warmup` steps, and the share of proposals accepted.

    Proposals are N(point, step^2 I), in the coordinates of the density; chains start as those of `nuts` do. Nothing is
    adapted. A program is compiled once for each density, `draws` and `warmup`.

    Departures from section 10: the moments are exact in place of Monte Carlo's, the prior of Sigma is not an inverse
    Wishart distribution, and its coordinates, which the paper does not state, are those of `models.glm_posterior`.
    """
    jax = prepared_jax()
    program, found = _program(density, draws, warmup), []
    for _ in range(chains):
        start, key = start_near(density, around, data, rng), jax.random.key(int(rng.integers(2**31)))
        found.append([np.asarray(one) for one in program(key, around.mode + around.root @ start, step, tuple(data))])
    points, accepted = (np.stack(one) for one in zip(*found, strict=True))
    return points, float(accepted.mean())


@cache
def _program(density: Density, draws: int, warmup: int) -> Any:
    """One chain: its points (draws, p), and whether each step was accepted."""
    jax = prepared_jax()
    xp, random = jax.numpy, jax.random

    def chain(key: Any, start: Any, step: Any, data: tuple[Any, ...]) -> Any:
        def move(state: Any, key: Any) -> Any:
            point, log_p = state
            one, two = random.split(key)
            proposal = point + step * random.normal(one, point.shape)
            new = density(proposal, *data)
            accepted = xp.log(random.uniform(two)) < new - log_p
            state = xp.where(accepted, proposal, point), xp.where(accepted, new, log_p)
            return state, (state[0], accepted)

        _, (points, accepted) = jax.lax.scan(move, (start, density(start, *data)), random.split(key, warmup + draws))
        return points[warmup:], accepted[warmup:]

    return jax.jit(chain)
