"""Draws from a log density by the No-U-Turn sampler of numpyro, and by Laplace's approximation, which it starts from.

jax and numpyro are imported when the first density is sampled. A log density is a function of an unconstrained point
(p,) and of data, which are arguments of the compiled program: one program serves all data of the same shapes. Build
each density once (`functools.cache`), so that it is recognised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.fetch import cache_dir
from dpbench.errors import NoEstimateError

Density = Callable[..., Any]  # (point (p,), *data) -> log density, in jax's operations
SPREAD = 2.0  # of the chains' starting points around the mode, in standard deviations of Laplace's approximation
TRIES = 100  # to find a start where the density is not 0
STEP = 1e-4  # of the differences of the gradient, in units of the start's scale
LEAST = 0.1  # curvature: no direction is treated as wider than 3 units
CLIMBS, FLAT, SHORTEST = 50, 1e-2, 1e-8  # Newton's steps at most, the slope that ends them, the least part of one
LONGEST = 1.0  # change of a coordinate by one of them: a full step may end where the density is flat
CACHE = "JAX_COMPILATION_CACHE_DIR"


@dataclass(frozen=True)
class Laplace:
    """The `mode` (p,) of a log density, and a `root` (p, p): root root' is the inverse of minus its Hessian there."""

    mode: Floats
    root: Floats

    def draws(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Points (*shape, p) of N(mode, root root')."""
        found: Floats = self.mode + rng.normal(size=(*shape, len(self.mode))) @ self.root.T
        return found


def prepared_jax() -> Any:
    """jax with 64-bit floats, and programs kept on disk for the next process (JAX_COMPILATION_CACHE_DIR moves them)."""
    import jax

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    config.update("jax_enable_compilation_cache", True)
    if not os.environ.get(CACHE):
        config.update("jax_compilation_cache_dir", str(cache_dir() / "jax"))
    return jax


def laplace(density: Density, start: Floats, data: Sequence[Any]) -> Laplace:
    """Laplace's approximation of a log density, its mode sought by BFGS from `start`.

    The Hessian is that of central differences of the gradient. Where it is not negative definite, as on a ridge, its
    eigenvalues are taken in absolute value, and for `LEAST` at least.

    Raises `NoEstimateError` if the density is 0 or undefined at the start.
    """
    from scipy.optimize import minimize

    value_and_gradient = _value_and_gradient(density)

    def negative(point: Floats) -> tuple[float, Floats]:
        value, gradient = value_and_gradient(point, *data)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(point)
        return -float(value), -np.asarray(gradient)

    if not np.isfinite(negative(start)[0]):
        raise NoEstimateError("the posterior density is 0 or undefined at the start of the sampler")
    return curvature(density, minimize(negative, start, jac=True, method="BFGS", options={"maxiter": 200}).x, data)


def curvature(density: Density, mode: Floats, data: Sequence[Any]) -> Laplace:
    """Laplace's approximation at a point that is taken to be the mode."""
    value_and_gradient = _value_and_gradient(density)
    steps = STEP * np.eye(len(mode))
    gradients = [[-np.asarray(value_and_gradient(mode + sign * step, *data)[1]) for sign in (1, -1)] for step in steps]
    hessian = np.stack([(above - below) / (2 * STEP) for above, below in gradients])
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    return Laplace(mode, vectors / np.sqrt(np.maximum(np.abs(values), LEAST)))


def climbed(density: Density, start: Floats, data: Sequence[Any]) -> Laplace:
    """Laplace's approximation of a log density, its mode sought by Newton's method from `start`, which is near.

    The Hessian is that of `laplace`, so that every step goes uphill. It is at most `LONGEST` in each coordinate, and
    halved until the density increases by a part of what its gradient promises (Armijo's rule), also where the density
    is 0 or undefined.
    """
    value_and_gradient = _value_and_gradient(density)
    found, (value, gradient) = curvature(density, start, data), value_and_gradient(start, *data)
    for _ in range(CLIMBS):
        slope = found.root.T @ np.asarray(gradient)
        if np.abs(slope).max() < FLAT:
            break
        step = found.root @ slope
        length = min(1.0, LONGEST / np.abs(step).max())
        while length > SHORTEST:
            point = found.mode + length * step
            new, gradient = value_and_gradient(point, *data)
            if new > value + 1e-4 * length * slope @ slope and np.isfinite(gradient).all():
                break
            length /= 2
        else:
            break
        found, value = curvature(density, point, data), new
    return found


def nuts(
    density: Density,
    around: Laplace,
    data: Sequence[Any],
    rng: np.random.Generator,
    *,
    chains: int,
    draws: int,
    warmup: int,
    target: float = 0.8,
    dense: bool = False,
) -> tuple[Floats, Floats, Floats]:
    """Draws (chains, draws, p), whether each diverged (chains, draws), and its leapfrog steps (chains, draws).

    Chains start from Laplace's approximation, `SPREAD` times as wide, and move in its units: there the density is near
    N(0, I), and few steps suffice. `warmup`: steps that adapt the step size and the scales. `target`: their
    acceptance. `dense`: they adapt correlations, too. A program is compiled once for each density, `draws`, `warmup`,
    `target` and `dense`.
    """
    jax = prepared_jax()
    program = _program(density, draws, warmup, target, dense)
    found = []
    for _ in range(chains):
        start, key = start_near(density, around, data, rng), jax.random.key(int(rng.integers(2**31)))
        found.append([np.asarray(one) for one in program(key, start, around.mode, around.root, tuple(data))])
    points, diverged, steps = (np.stack(one) for one in zip(*found, strict=True))
    return around.mode + points @ around.root.T, diverged, steps


def start_near(density: Density, around: Laplace, data: Sequence[Any], rng: np.random.Generator) -> Floats:
    """The start of a chain, in Laplace's units: where the density is not 0, or at the mode if no try finds such a
    point.
    """
    for _ in range(TRIES):
        start: Floats = SPREAD * rng.normal(size=len(around.mode))
        if np.isfinite(_value_and_gradient(density)(around.mode + around.root @ start, *data)[0]):
            return start
    return np.zeros(len(around.mode))


@cache
def _value_and_gradient(density: Density) -> Any:
    jax = prepared_jax()
    return jax.jit(jax.value_and_grad(density))


@cache
def _program(density: Density, draws: int, warmup: int, target: float, dense: bool) -> Any:
    """One chain. Within `jit`, `MCMC.run` is traced once; called outside, it compiles again for each chain and data."""
    jax = prepared_jax()
    from numpyro.infer import MCMC, NUTS

    def chain(key: Any, start: Any, mode: Any, root: Any, data: tuple[Any, ...]) -> Any:
        def potential(z: Any) -> Any:
            return -density(mode + root @ z, *data)

        kernel = NUTS(potential_fn=potential, target_accept_prob=target, dense_mass=dense)
        mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, num_chains=1, progress_bar=False)
        mcmc.run(key, init_params=start, extra_fields=("diverging", "num_steps"))
        extra = mcmc.get_extra_fields()
        return mcmc.get_samples(), extra["diverging"], extra["num_steps"]

    return jax.jit(chain)
