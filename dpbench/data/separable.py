"""Rows separable by a hyperplane that their low-order marginals do not identify (excess risk, section 4)."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError


def load(config: Dataset) -> Simulation:
    """The hardest distribution of its kind: of x in {-1, 1}^(h + k) and y = -1 or +1, with the keys of `config`.

    By Theorem 4.1 there is a distribution on which all synthetic data from noisy marginals are poor; its proof (Dagan
    and Feldman 2020) matches the low moments of two sets of rows that a hyperplane nearly separates. This is such a
    distribution at a practical size, found by a linear programme, not that of the theorem, which has of the order of
    ln^6 n features.

    x is y times a vector of two blocks, `hidden` h and `open` k, with a sum a of the first, each entry times a sign
    that `signs_seed` draws, and a sum u of the second; given a and u, all such vectors are equally likely. The
    distribution of (a, u)

    - has its support where (a + weight u) / (||w||_2 ||x||_2) is at least `margin`: the hyperplane w of the signs and
    of `weight`
      separates the rows;
    - gives any product of some hidden features, any open ones and perhaps the label, `degree` attributes in all, the
      mean 0: no marginal of `degree` attributes has information on the hidden features' signs;
    - has the least total variation between u at y = 1 and at y = -1: the open features, which the marginals do cover,
      have as little information on the label as possible. They must have some, as the mean of y w'x is above 0.

    Raises `UserError` for values out of range, or if there is no such distribution.
    """
    hidden, opened, degree = (
        _integer(config, key, least) for key, least in (("hidden", 1), ("open", 1), ("degree", 2))
    )
    for key in ("weight", "margin"):
        if isinstance(config[key], bool) or not isinstance(config[key], (int, float)) or not config[key] > 0:
            raise UserError(f"dataset.{key} must be a number above 0, not {config[key]!r}")
    signs = np.random.default_rng(_integer(config, "signs_seed", 0)).choice([-1, 1], hidden)
    minus, weights = _hardest(hidden, opened, degree, float(config["weight"]), float(config["margin"]))
    domain = Domain(attributes(config))
    return Simulation(domain, partial(_draw, domain, signs, opened, minus, weights))


def attributes(config: Dataset) -> tuple[Attribute, ...]:
    """x1, ..., x(h + k), each -1 or 1, and the label y."""
    count = _integer(config, "hidden", 1) + _integer(config, "open", 1)
    features = tuple(Attribute.discrete(f"x{j}", [-1, 1]) for j in range(1, count + 1))
    return (*features, Attribute.categorical("y", ["-1", "1"]))


def _hardest(hidden: int, opened: int, degree: int, weight: float, margin: float) -> tuple[Codes, Floats]:
    """The numbers of -1 in the two blocks (c, 2), and the probability (c,) of each such pair for y = 1."""
    from scipy.optimize import linprog

    norm = math.sqrt((hidden + opened * weight**2) * (hidden + opened))
    allowed = [
        (a, u)
        for a, u in product(range(hidden + 1), range(opened + 1))
        if hidden - 2 * a + weight * (opened - 2 * u) >= margin * norm
    ]
    one, two = (_mean_products(size, degree) for size in (hidden, opened))
    silent = [
        [one[s][a] * two[t][u] for a, u in allowed]
        for s, t in product(range(1, min(hidden, degree) + 1), range(min(opened, degree) + 1))
        if s + t + (s + t) % 2 <= degree  # an odd number of features has a mean with the label only
    ]
    # |P(u | y = 1) - P(u | y = -1)| is at most a further variable, for each u > 0; their sum is the least possible
    coefficients = [[int(u == less) - int(u == opened - less) for _, u in allowed] for less in range((opened + 1) // 2)]
    gaps, cells = len(coefficients), len(allowed)
    found = linprog(
        [0.0] * cells + [1.0] * gaps,
        A_ub=np.block([[np.array(coefficients), -np.eye(gaps)], [-np.array(coefficients), -np.eye(gaps)]]),
        b_ub=np.zeros(2 * gaps),
        A_eq=np.block([[np.array([*silent, np.ones(cells)]), np.zeros((len(silent) + 1, gaps))]]),
        b_eq=[0.0] * len(silent) + [1.0],
        method="highs",
    )
    if not found.success:
        raise UserError(
            f"no rows of {hidden} hidden and {opened} open features with margin {margin:g} and weight {weight:g} have "
            f"uninformative marginals of {degree} attributes; lower dataset.degree or raise dataset.open"
        )
    weights = np.clip(found.x[:cells], 0, None)
    return np.array(allowed), weights / weights.sum()


def _mean_products(size: int, most: int) -> Floats:
    """The mean product of s of `size` features, for each s up to `most` and each number of -1."""
    polynomials = [
        np.polynomial.polynomial.polymul(
            np.polynomial.polynomial.polypow([1, 1], size - minus), np.polynomial.polynomial.polypow([1, -1], minus)
        )
        for minus in range(size + 1)
    ]
    return np.array([[p[s] / math.comb(size, s) for p in polynomials] for s in range(min(size, most) + 1)])


def _draw(
    domain: Domain, signs: Codes, opened: int, minus: Codes, weights: Floats, rng: np.random.Generator, n: int
) -> Table:
    """n rows: for each a label, the numbers of -1 in the two blocks, and their positions."""
    y = rng.choice([-1, 1], n)
    drawn = minus[rng.choice(len(weights), n, p=weights)]
    blocks = [
        np.where(rng.random((n, size)).argsort(axis=1) < count[:, None], -1, 1)
        for size, count in zip((len(signs), opened), drawn.T, strict=True)
    ]
    x = y[:, None] * np.hstack([blocks[0] * signs, blocks[1]])
    return Table(domain, (np.column_stack([x, y]) > 0).astype(np.int64))


def _integer(config: Dataset, key: str, least: int) -> int:
    value = config[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UserError(f"dataset.{key} must be a whole number of at least {least}, not {value!r}")
    return value
