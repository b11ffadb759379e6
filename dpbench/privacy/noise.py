"""The only place where noise is drawn. Each call writes what it drew into the ledger.

Noise is sampled in double precision: the guarantee is that of the real-valued mechanism, not of its last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbench.data.domain import Floats
from dpbench.privacy.budget import Event, Ledger, RandomSearch


def gaussian(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + N(0, (multiplier * sensitivity)^2) in each entry: 1/multiplier-Gaussian DP.

    `sensitivity` bounds the l2 norm of the change of the whole `value` between neighbours.
    """
    ledger.record(Event("gaussian", label, sensitivity, multiplier))
    exact = np.asarray(value, dtype=float)
    return exact + rng.normal(0.0, multiplier * sensitivity, size=exact.shape)


def sampled_gaussian(
    rng: np.random.Generator,
    ledger: Ledger,
    n: int,
    shape: tuple[int, ...],
    *,
    sensitivity: float,
    multiplier: float,
    rate: float,
    count: int,
    label: str,
) -> Iterator[tuple[slice | NDArray[np.int64], Floats]]:
    """`count` steps of the sampled Gaussian mechanism: each yields the rows of a Poisson sample, and noise to add.

    Each of n rows is in a sample with probability `rate`, independently: a binomial number of rows without
    replacement; all rows, as a slice, at rate 1. The noise has the given shape and scale multiplier * sensitivity,
    where `sensitivity` bounds the l2 norm of what one sampled row adds to the quantity that is to be noised.
    """
    ledger.record(Event("gaussian", label, sensitivity, multiplier, count, rate))

    def steps() -> Iterator[tuple[slice | NDArray[np.int64], Floats]]:
        for _ in range(count):
            rows = rng.choice(n, rng.binomial(n, rate), replace=False) if rate < 1 else slice(None)
            yield rows, rng.normal(0.0, multiplier * sensitivity, size=shape)

    return steps()


def laplace(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + Laplace(multiplier * sensitivity) in each entry: (1/multiplier)-DP; `sensitivity` is in the l1 norm."""
    ledger.record(Event("laplace", label, sensitivity, multiplier))
    exact = np.asarray(value, dtype=float)
    return exact + rng.laplace(0.0, multiplier * sensitivity, size=exact.shape)


def tree_laplace(
    rng: np.random.Generator, ledger: Ledger, *, scale: float, epsilon: float, label: str
) -> Callable[[int], Floats]:
    """The noise of a tree of counts that is epsilon-DP as a whole: a function of m that draws m of Laplace(scale).

    The ledger holds one event of this epsilon however often the function is called: the caller's algorithm must be
    epsilon-DP whatever the depth of its tree, as PrivTree is (Zhang et al. 2016; Paper 1, section C).
    """
    ledger.record(Event("pure", label, 1.0, 1 / epsilon))
    return lambda m: rng.laplace(0.0, scale, size=m)


def projection(
    rng: np.random.Generator,
    ledger: Ledger,
    gram: Floats,
    *,
    sensitivity: float,
    multiplier: float,
    count: int,
    failure: float = 0.0,
    label: str,
) -> Floats:
    """R B (count, k) for a matrix B with B'B = `gram` (k, k) and R of entries iid N(0, 1): rows iid N(0, gram).

    `sensitivity` bounds the l2 norm of a record's row in B. Both of two neighbours' Gram matrices must be at least
    (multiplier * sensitivity)^2 I, but for the probability `failure`; `projections.projection_epsilon` says what that
    costs.
    """
    ledger.record(Event("projection", label, sensitivity, multiplier, count, delta=failure))
    return rng.normal(size=(count, len(gram))) @ np.linalg.cholesky(gram).T


def exponential_mechanism(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index drawn with weight exp(epsilon score / (2 sensitivity)): epsilon-DP and epsilon^2/8-zCDP.

    Drawn in log space as the largest of the scores with Gumbel noise. `sensitivity` bounds the change of any score.
    """
    ledger.record(Event("exponential", label, sensitivity, 2 / epsilon))
    logits = np.asarray(scores, dtype=float) * (epsilon / (2 * sensitivity))
    return int(np.argmax(logits + rng.gumbel(size=logits.shape)))


def permute_and_flip(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index by permute-and-flip (McKenna and Sheldon 2020): epsilon-DP, hence epsilon^2/2-zCDP, and no better.

    Equal in law to the largest of the scores with exponential noise (Ding et al. 2021).
    """
    ledger.record(Event("permute_and_flip", label, sensitivity, 2 / epsilon))
    logits = np.asarray(scores, dtype=float) * (epsilon / (2 * sensitivity))
    return int(np.argmax(logits + rng.exponential(size=logits.shape)))


def objective_noise(
    rng: np.random.Generator,
    ledger: Ledger,
    size: int,
    *,
    sensitivity: float,
    multiplier: float,
    offset: float,
    label: str,
) -> Floats:
    """b (size,) ~ N(0, (multiplier * sensitivity)^2 I), the linear term of a perturbed objective.

    `sensitivity` bounds the l2 norm of the gradient of one record's loss; `accounting.objective_epsilon` says what
    the whole costs.
    """
    ledger.record(Event("objective", label, sensitivity, multiplier, offset=offset))
    return rng.normal(0.0, multiplier * sensitivity, size=size)


def number_of_runs(rng: np.random.Generator, ledger: Ledger, search: RandomSearch) -> int:
    """K, drawn from the law of the search by inversion. The ledger holds the search: whoever draws K must make the
    runs independent, and release no more than the one with the best private score.
    """
    ledger.record(search)
    eta, gamma = search.eta, search.gamma
    k, probability = 1, (1 - gamma) / (math.expm1(-eta * math.log(gamma)) / eta if eta else -math.log(gamma))
    left = rng.random() - probability
    while left > 0 and probability > 0:
        probability *= (1 - gamma) * (k + eta) / (k + 1)
        left -= probability
        k += 1
    return k


def claimed(ledger: Ledger, epsilon: float, delta: float, *, label: str) -> None:
    """Enter the (epsilon, delta) that a third party's code claims of its own noise, which we cannot verify."""
    ledger.record(Event("claimed", label, 1.0, 1 / epsilon, delta=delta))


def unperturbed(ledger: Ledger, value: ArrayLike, *, label: str) -> Floats:
    """The value itself, with its infinite cost in the ledger: for the non-private reference."""
    ledger.record(Event("exact", label, 1.0, 0.0))
    return np.asarray(value, dtype=float)
