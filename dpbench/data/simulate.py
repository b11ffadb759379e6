"""Rows drawn anew for each repetition, and those of a linear model with known coefficients (BinAgg, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.table import Split, Table, TestRows
from dpbench.errors import UserError


@dataclass(frozen=True)
class Simulation:
    """A distribution of rows over a domain: `draw` gives n independent ones.

    `truth`: the population's coefficient of each feature, such as those that rows of a linear model are drawn with.
    """

    domain: Domain
    draw: Callable[[np.random.Generator, int], Table]
    truth: Mapping[str, float] = field(default_factory=dict)

    def split(self, rng: np.random.Generator, *, train_rows: int, test_rows: TestRows, public_rows: int = 0) -> Split:
        """Fresh rows, `train_rows` of them for training; `test_rows` is as `split` takes it."""
        part, most = test_rows if isinstance(test_rows, Sequence) else (test_rows, math.inf)
        test = int(min(part if part >= 1 else round(train_rows * part / (1 - part)), most))
        n = train_rows + test + public_rows
        table = self.draw(rng, n)
        train, rest, public = np.split(np.arange(n), [train_rows, train_rows + test])
        return Split(table.take(train), table.take(rest), self.truth, table.take(public) if public_rows else None)


@dataclass(frozen=True)
class PriorSimulation(Simulation):
    """A `Simulation` whose coefficients, too, are drawn anew for each repetition, by `settle`."""

    settle: Callable[[np.random.Generator], Simulation] | None = None

    def split(self, rng: np.random.Generator, *, train_rows: int, test_rows: TestRows, public_rows: int = 0) -> Split:
        """Fresh coefficients, and fresh rows with them."""
        assert self.settle is not None
        drawn = self.settle(rng)
        return drawn.split(rng, train_rows=train_rows, test_rows=test_rows, public_rows=public_rows)


def load(config: Dataset) -> Simulation:
    """The linear model of `config`: `features` d, `sigma`, `coefficients_seed`, and the declared bounds.

    y = x'beta + N(0, sigma^2), x uniform on [0, 1]^d, over a domain of x1, ..., xd and y. Values outside the declared
    bounds are clipped. beta is drawn from the uniform distribution on [1, 2]^d by a
    generator with the seed `coefficients_seed`; it is the same in every draw.

    Raises `UserError` for a value out of range.
    """
    domain, sigma, seed = Domain(attributes(config)), config["sigma"], config["coefficients_seed"]
    if not isinstance(sigma, (int, float)) or not sigma >= 0:
        raise UserError(f"dataset.sigma must be a number of at least 0, not {sigma!r}")
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"dataset.coefficients_seed must be a whole number of at least 0, not {seed!r}")
    beta = np.random.default_rng(seed).uniform(1.0, 2.0, len(domain.names) - 1)
    truth = dict(zip(domain.names, beta.tolist(), strict=False))
    return Simulation(domain, partial(_linear, domain, beta, float(sigma)), truth)


def _linear(domain: Domain, beta: Floats, sigma: float, rng: np.random.Generator, n: int) -> Table:
    """n rows of the linear model."""
    X = rng.random((n, len(beta)))
    y = X @ beta + rng.normal(0.0, sigma, n)
    numbers, codes = {}, np.empty((n, len(beta) + 1), dtype=np.int64)
    for j, (attribute, column) in enumerate(zip(domain.attributes, [*X.T, y], strict=True)):
        assert attribute.bounds is not None
        numbers[attribute.name] = np.clip(column, *attribute.bounds)
        codes[:, j] = attribute.code(numbers[attribute.name])
    return Table(domain, codes, numbers)


def attributes(config: Dataset) -> tuple[Attribute, ...]:
    """x1, ..., xd on `feature_bounds` and y on `target_bounds`, each in `bins` bins.

    Raises `UserError` for bounds that are not increasing, or fewer than one feature or bin.
    """
    d, bins = config["features"], config["bins"]
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise UserError(f"dataset.features must be a whole number of at least 1, not {d!r}")
    for key in ("feature_bounds", "target_bounds"):
        if not isinstance(config[key], list) or len(config[key]) != 2:
            raise UserError(f"dataset.{key} must be two numbers, such as [0, 1], not {config[key]!r}")
    declared = {f"x{j}": config["feature_bounds"] for j in range(1, d + 1)} | {"y": config["target_bounds"]}
    return tuple(Attribute.binned(name, lower, upper, bins) for name, (lower, upper) in declared.items())
