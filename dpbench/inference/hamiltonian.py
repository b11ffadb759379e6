"""Draws from a log density by Hamiltonian Monte Carlo, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .measurements import Array

Density = Callable[[Array], tuple[float, Array]]  # a point (k,) -> its log density and the gradient (k,)
TARGET = 0.8  # acceptance (Hoffman and Gelman 2014, section 3.2)
GAMMA, OFFSET, KAPPA = 0.05, 10, 0.75  # of dual averaging (as there)
JITTER = 0.2  # of the step, so that no trajectory is a period of the density (Neal 2011, section 3.2)
WORST = 1000.0  # an error of the energy above it ends a trajectory: it diverged


class Chain(NamedTuple):
    """`draws` (count, k), their log densities (count,), the mean acceptance, and how many trajectories diverged."""

    draws: Array
    values: Array
    acceptance: float
    divergences: int


def hamiltonian(
    density: Density, start: Array, root: Array, rng: np.random.Generator, *, warmup: int, count: int, steps: int
) -> Chain:
    """A chain of `count` draws after `warmup`, each by a trajectory of so many leapfrog `steps` in the units of `root`.

    **Source** Neal 2011, "MCMC using Hamiltonian dynamics", Figure 2; the step size is that of Hoffman and Gelman 2014,
    section 3.2.1 (dual averaging). root root' (k, k) is about the covariance of the density.
    """
    point, (value, slope) = start, density(start)
    size, averaged, mean_error, divergences = 0.1, 0.0, 0.0, 0
    centre, draws, values, accepted = math.log(10 * size), [], [], []
    for t in range(1, warmup + count + 1):
        momentum = rng.normal(size=len(point))
        step = size * (1 + JITTER * (2 * rng.random() - 1))
        new, new_value, new_slope, energy = _trajectory(density, point, slope, momentum, root, step, steps, value)
        error = new_value - energy - value + float(momentum @ momentum) / 2
        chance = math.exp(min(0.0, error)) if error > -WORST else 0.0
        if rng.random() < chance:
            point, value, slope = new, new_value, new_slope
        if t <= warmup:
            mean_error += (TARGET - chance - mean_error) / (t + OFFSET)
            log_size = centre - math.sqrt(t) / GAMMA * mean_error
            averaged += t**-KAPPA * (log_size - averaged)
            size = math.exp(log_size if t < warmup else averaged)
        else:
            draws.append(point)
            values.append(value)
            accepted.append(chance)
            divergences += error <= -WORST
    return Chain(np.array(draws), np.array(values), float(np.mean(accepted)), divergences)


def _trajectory(
    density: Density, point: Array, slope: Array, momentum: Array, root: Array, step: float, steps: int, value: float
) -> tuple[Array, float, Array, float]:
    """Its end, with the log density and gradient there, and the kinetic energy; it ends early where it diverges."""
    new_value = value
    momentum = momentum + step / 2 * root.T @ slope
    for _ in range(steps):
        point = point + step * root @ momentum
        new_value, slope = density(point)
        if not new_value > value - WORST:
            return point, -math.inf, slope, 0.0
        momentum = momentum + step * root.T @ slope
    momentum = momentum - step / 2 * root.T @ slope
    return point, new_value, slope, float(momentum @ momentum) / 2
