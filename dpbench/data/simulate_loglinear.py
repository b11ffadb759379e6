"""Rows of a log-linear model of discrete attributes, whose regression coefficients are known by enumeration."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.simulate import PriorSimulation, Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError

MOST_CELLS = 1_000_000  # all of which are enumerated


def load(config: Dataset) -> Simulation:
    """p(x) in proportion to exp(sum_A e_A(x_A)), A all sets of 1 to `degree` attributes, e_A of mean 0 along each axis.

    Each e_A is drawn by `parameters_seed`: N(0, scale^2) in each cell, centred. So the parameters of the model are
    N(0, scale^2) in orthonormal contrasts. With `prior` they are drawn anew for each repetition.

    `truth`: the coefficients of least squares in the population, E[x x']^-1 E[x y], x being the levels of the features
    except each one's first, and an intercept. They are sums over all cells of the domain.

    Raises `UserError` for a value out of range, or too many cells.
    """
    domain = Domain(attributes(config))
    degree, scale, seed = config["degree"], config["scale"], config["parameters_seed"]
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise UserError(f"dataset.degree must be a whole number of at least 1, not {degree!r}")
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 <= scale < math.inf:
        raise UserError(f"dataset.scale must be a number of at least 0, not {scale!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UserError(f"dataset.parameters_seed must be a whole number of at least 0, not {seed!r}")
    if not isinstance(config["prior"], bool):
        raise UserError(f"dataset.prior must be true or false, not {config['prior']!r}")

    def settle(rng: np.random.Generator) -> Simulation:
        p = drawn_population(rng, domain.shape(domain.names), degree, float(scale))
        return Simulation(domain, partial(_rows, domain, p), coefficients(domain, p))

    fixed = settle(np.random.default_rng(seed))
    return PriorSimulation(domain, fixed.draw, fixed.truth, settle) if config["prior"] else fixed


def attributes(config: Dataset) -> tuple[Attribute, ...]:
    """x1, x2, ... with `levels` 0, 1, ..., as many as listed, and y, a number of as many values as the last entry.

    Raises `UserError` for fewer than two attributes, one of fewer than two levels, or more than a million cells.
    """
    sizes = config["levels"]
    if not isinstance(sizes, list) or len(sizes) < 2 or not all(type(size) is int and size > 1 for size in sizes):
        raise UserError(
            f"dataset.levels must be two or more whole numbers of at least 2, such as [3, 5], not {sizes!r}"
        )
    if math.prod(sizes) > MOST_CELLS:
        raise UserError(f"dataset.levels has {math.prod(sizes):,} cells, and {MOST_CELLS:,} at most are enumerated")
    features = (Attribute.categorical(f"x{j}", range(size)) for j, size in enumerate(sizes[:-1], 1))
    return (*features, Attribute.discrete("y", range(sizes[-1])))


def drawn_population(rng: np.random.Generator, shape: tuple[int, ...], degree: int, scale: float) -> Floats:
    """The probabilities of a log-linear model whose effects are drawn, of this shape."""
    logits = np.zeros(shape)
    for r in range(1, min(degree, len(shape)) + 1):
        for axes in combinations(range(len(shape)), r):
            effect = rng.normal(0.0, scale, [size if axis in axes else 1 for axis, size in enumerate(shape)])
            for axis in axes:
                effect = effect - effect.mean(axis=axis, keepdims=True)
            logits += effect
    p = np.exp(logits - logits.max())
    return np.asarray(p / p.sum(), dtype=float)


def coefficients(domain: Domain, p: Floats) -> dict[str, float]:
    """Of the regression of the last attribute on the others, in a population with these probabilities of the cells."""
    design = Design(domain, domain.names[-1], scaled=False)
    X, y = design.encode(Table(domain, np.indices(p.shape).reshape(p.ndim, -1).T))
    weighted = X * p.reshape(-1, 1)
    return dict(zip(design.columns, np.linalg.solve(weighted.T @ X, weighted.T @ y).tolist(), strict=True))


def _rows(domain: Domain, p: Floats, rng: np.random.Generator, n: int) -> Table:
    """n independent rows."""
    cells = rng.choice(p.size, n, p=p.ravel())
    return Table(domain, np.stack(np.unravel_index(cells, p.shape), axis=1).astype(np.int64))
