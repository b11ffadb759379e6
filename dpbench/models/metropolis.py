"""Draws from a log density by random-walk Metropolis-Hastings (Kulkarni et al. 2021, section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.models.nuts import Density, Laplace, prepared_jax, start_near


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
