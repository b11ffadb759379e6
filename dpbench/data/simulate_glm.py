"""Rows of a logistic or Poisson regression with known coefficients (Kulkarni et al. 2021, sections 4.3 and 10)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.simulate import PriorSimulation, Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

BINS = 16  # of a feature, for methods on marginals
FAMILIES = ("logistic", "poisson")
MOST_TRIES = 1000  # of drawing a row inside the ball: with fewer than 1 in 1,000 inside, the settings make no sense
Parameters = tuple[Floats, Floats]  # theta (d,) and a root (d, d) of Sigma


def load(config: Dataset) -> Simulation:
    """Rows x ~ N(0, Sigma) with ||x||_2 <= `radius`, drawn anew where they are outside, and y given x'theta.

    `family`: logistic, P(y = 1 | x) = 1 / (1 + exp(-x'theta)); or poisson, y a count of mean log(1 + exp(x'theta)), and
    at most `largest_count`. `theta`: the coefficients; or null: a direction drawn by `parameters_seed`, of length
    `norm`, with `features` entries. Sigma: a random covariance matrix, W of d x 2d standard normals drawn by
    `parameters_seed`, W W' scaled to the mean variance sigma^2.

    With `prior` the parameters are drawn anew for each repetition from the model's own prior: theta ~ N(0, I) with
    ||theta||_2 <= `norm`, Sigma = diag(tau) Omega diag(tau), Omega ~ LKJ(2), tau_j = |N(0, sigma^2)|.

    Raises `UserError` for a value out of range.
    """
    domain, d = Domain(attributes(config)), features_of(config)
    family, theta, sigma, seed = _checked(config)
    draw = partial(_draw, domain, family, float(config["radius"]))

    def settled(parameters: Parameters) -> Simulation:
        return Simulation(
            domain, partial(draw, *parameters), dict(zip(domain.names, parameters[0].tolist(), strict=False))
        )

    rng = np.random.default_rng(seed)
    if not config["prior"]:
        norm = float(config["norm"])
        fixed = _direction(rng, d) * norm if theta is None else theta
        return settled((fixed, _random_root(rng, d, sigma)))
    start = settled((np.zeros(d), sigma * np.eye(d)))

    def settle(rng: np.random.Generator) -> Simulation:
        return settled(prior_draw(rng, d, float(config["norm"]), sigma))

    return PriorSimulation(domain, start.draw, start.truth, settle)


def attributes(config: Dataset) -> tuple[Attribute, ...]:
    """x1, ..., xd on [-radius, radius] in 16 bins, and y: the labels -1 and 1, or the counts 0 .. largest_count."""
    radius, largest = config["radius"], config["largest_count"]
    if not _number(radius) or not radius > 0:
        raise UserError(f"dataset.radius must be a number greater than 0, not {radius!r}")
    if not isinstance(largest, int) or isinstance(largest, bool) or largest < 1:
        raise UserError(f"dataset.largest_count must be a whole number of at least 1, not {largest!r}")
    check_known("dataset.family", config["family"], FAMILIES)
    labels = config["family"] == "logistic"
    y = Attribute.categorical("y", ["-1", "1"]) if labels else Attribute.discrete("y", range(largest + 1))
    names = (f"x{j}" for j in range(1, features_of(config) + 1))
    return (*(Attribute.binned(name, -radius, radius, BINS) for name in names), y)


def features_of(config: Dataset) -> int:
    """d: the length of theta, or `features`."""
    theta, d = config["theta"], config["features"]
    if theta is not None:
        if not (isinstance(theta, list) and theta and all(map(_number, theta))):
            raise UserError(f"dataset.theta must be a list of numbers or null, not {theta!r}")
        return len(theta)
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise UserError(f"dataset.features must be a whole number of at least 1, not {d!r}")
    return d


def prior_draw(rng: np.random.Generator, d: int, norm: float, sigma: float) -> Parameters:
    """theta (d,) and a root (d, d) of Sigma from the prior of the Bayesian GLM (section 4.1; see `load`).

    theta of uniform direction and squared length chi^2(d) is N(0, I); a greater length than `norm` is drawn anew.
    """
    from scipy.stats import chi2

    squared = float(chi2.ppf(rng.random() * chi2.cdf(norm**2, d), d))
    tau = np.abs(rng.normal(0.0, sigma, d))
    return _direction(rng, d) * math.sqrt(squared), tau[:, None] * _lkj_root(rng, d, 2.0)


def _lkj_root(rng: np.random.Generator, d: int, shape: float) -> Floats:
    """The Cholesky factor (d, d) of a correlation matrix with density proportional to det^(shape - 1).

    The onion method of Lewandowski, Kurowicka and Joe (2009), section 3.2: row i is y u, u uniform on the sphere of
    R^i, y^2 ~ Beta(i / 2, shape + (d - 1 - i) / 2), and its diagonal entry is sqrt(1 - y^2).
    """
    root = np.eye(d)
    for i in range(1, d):
        squared = rng.beta(i / 2, shape + (d - 1 - i) / 2)
        root[i, :i] = math.sqrt(squared) * _direction(rng, i)
        root[i, i] = math.sqrt(1 - squared)
    return root


def _draw(
    domain: Domain,
    family: str,
    radius: float,
    theta: Floats,
    root: Floats,
    rng: np.random.Generator,
    n: int,
) -> Table:
    """n rows with these parameters."""
    X = rng.normal(size=(n, len(theta))) @ root.T
    for _ in range(MOST_TRIES):
        outside = np.linalg.norm(X, axis=1) > radius
        if not outside.any():
            break
        X[outside] = rng.normal(size=(int(outside.sum()), len(theta))) @ root.T
    else:
        raise UserError(f"too few rows of this sigma have a norm of at most dataset.radius = {radius:g}; lower sigma")
    s, y = X @ theta, domain.attributes[-1]
    if family == "logistic":
        codes = (rng.random(n) < 1 / (1 + np.exp(-s))).astype(np.int64)
    else:
        codes = np.minimum(rng.poisson(np.logaddexp(0.0, s)), y.size - 1)
    numbers = {attribute.name: x for attribute, x in zip(domain.attributes, X.T, strict=False)}
    features = [attribute.code(numbers[attribute.name]) for attribute in domain.attributes[:-1]]
    return Table(domain, np.column_stack([*features, codes]), numbers)


def _direction(rng: np.random.Generator, d: int) -> Floats:
    """Uniform on the unit sphere of R^d."""
    drawn: Floats = rng.normal(size=d)
    return drawn / np.linalg.norm(drawn)


def _random_root(rng: np.random.Generator, d: int, sigma: float) -> Floats:
    """The Cholesky factor of W W', scaled to the mean variance sigma^2."""
    wishart = (W := rng.normal(size=(d, 2 * d))) @ W.T
    root: Floats = np.linalg.cholesky(wishart * sigma**2 * d / np.trace(wishart))
    return root


def _checked(config: Dataset) -> tuple[str, Floats | None, float, int]:
    theta, seed = config["theta"], config["parameters_seed"]
    for key in ("sigma", "norm"):
        if not _number(config[key]) or not config[key] > 0:
            raise UserError(f"dataset.{key} must be a number greater than 0, not {config[key]!r}")
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"dataset.parameters_seed must be a whole number of at least 0, not {seed!r}")
    if not isinstance(config["prior"], bool):
        raise UserError(f"dataset.prior must be true or false, not {config['prior']!r}")
    return config["family"], None if theta is None else np.array(theta, float), float(config["sigma"]), seed


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
