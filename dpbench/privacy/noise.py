"""The only place where noise is drawn. Each call writes what it drew into the ledger, and each function takes the value
that it noises, so that what is asked and told can be recorded and replayed (`privacy.tape`).

Noise is sampled in double precision: the guarantee is that of the real-valued mechanism, not of its last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpbench.data.domain import Floats
from dpbench.privacy import tape
from dpbench.privacy.budget import Event, Ledger, RandomSearch
from dpbench.privacy.tape import Rows

T = TypeVar("T")


def gaussian(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + N(0, (multiplier * sensitivity)^2) in each entry: 1/multiplier-Gaussian DP.

    `sensitivity` bounds the l2 norm of the change of the whole `value` between neighbours.
    """
    event = Event("gaussian", label, sensitivity, multiplier)
    ledger.record(event)
    exact = np.asarray(value, dtype=float)
    return _answer(rng, event, exact, lambda: exact + rng.normal(0.0, multiplier * sensitivity, size=exact.shape))


def sampled_gaussian(
    rng: np.random.Generator,
    ledger: Ledger,
    n: int,
    query: Callable[[Rows], Floats],
    *,
    sensitivity: float,
    multiplier: float,
    rate: float,
    count: int,
    label: str,
) -> Iterator[Floats]:
    """`count` steps of the sampled Gaussian mechanism: each yields query(rows of a Poisson sample) with noise.

    Each of n rows is in a sample with probability `rate`, independently: a binomial number of rows without
    replacement; all rows, as a slice, at rate 1. The noise is N(0, (multiplier * sensitivity)^2) in each entry, where
    `sensitivity` bounds the l2 norm of what one sampled row adds to the query. A step's query is computed when the step
    is asked for, so that it may depend on the answers before.
    """
    event = Event("gaussian", label, sensitivity, multiplier, count, rate)
    ledger.record(event)

    def step() -> Floats:
        rows = tape.sample(n, draw) if rate < 1 else slice(None)
        exact = query(rows)

        def noisy() -> Floats:
            return exact + rng.normal(0.0, multiplier * sensitivity, size=exact.shape)

        return _answer(rng, event, exact, noisy, rows=rows, n=n)

    def draw() -> Rows:
        return rng.choice(n, rng.binomial(n, rate), replace=False)

    return (step() for _ in range(count))


def laplace(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + Laplace(multiplier * sensitivity) in each entry: (1/multiplier)-DP; `sensitivity` is in the l1 norm."""
    event = Event("laplace", label, sensitivity, multiplier)
    ledger.record(event)
    exact = np.asarray(value, dtype=float)
    return _answer(rng, event, exact, lambda: exact + rng.laplace(0.0, multiplier * sensitivity, size=exact.shape))


def tree_laplace(
    rng: np.random.Generator, ledger: Ledger, *, scale: float, epsilon: float, label: str
) -> Callable[[Floats], Floats]:
    """A function that adds Laplace(scale) to each of the counts (m,) of a tree that is epsilon-DP as a whole.

    A record changes the counts of one call by 1 at most, in the l1 norm. The ledger holds one event of this epsilon
    however often the function is called: the caller's algorithm must be epsilon-DP whatever the depth of its tree, as
    PrivTree is (Zhang et al. 2016; Paper 1, section C).
    """
    event = Event("pure", label, 1.0, 1 / epsilon)
    ledger.record(event)
    return lambda counts: _answer(rng, event, counts, lambda: counts + rng.laplace(0.0, scale, size=counts.shape))


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
    event = Event("projection", label, sensitivity, multiplier, count, delta=failure)
    ledger.record(event)
    return _answer(rng, event, gram, lambda: rng.normal(size=(count, len(gram))) @ np.linalg.cholesky(gram).T)


def exponential_mechanism(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index drawn with weight exp(epsilon score / (2 sensitivity)): epsilon-DP and epsilon^2/8-zCDP.

    Drawn in log space as the largest of the scores with Gumbel noise. `sensitivity` bounds the change of any score.
    """
    event = Event("exponential", label, sensitivity, 2 / epsilon)
    ledger.record(event)
    exact = np.asarray(scores, dtype=float)
    logits = exact * (epsilon / (2 * sensitivity))
    return _answer(rng, event, exact, lambda: int(np.argmax(logits + rng.gumbel(size=logits.shape))))


def permute_and_flip(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index by permute-and-flip (McKenna and Sheldon 2020): epsilon-DP, hence epsilon^2/2-zCDP, and no better.

    Equal in law to the largest of the scores with exponential noise (Ding et al. 2021).
    """
    event = Event("permute_and_flip", label, sensitivity, 2 / epsilon)
    ledger.record(event)
    exact = np.asarray(scores, dtype=float)
    logits = exact * (epsilon / (2 * sensitivity))
    return _answer(rng, event, exact, lambda: int(np.argmax(logits + rng.exponential(size=logits.shape))))


def perturbed_minimiser(
    rng: np.random.Generator,
    ledger: Ledger,
    gradient: Callable[[Floats], Floats],
    minimise: Callable[[Floats], Floats],
    *,
    size: int,
    sensitivity: float,
    multiplier: float,
    offset: float,
    label: str,
) -> Floats:
    """minimise(b), the theta (size,) of an objective with the linear term b ~ N(0, (multiplier * sensitivity)^2 I).

    `gradient` is that of the objective without b, a function of theta. `sensitivity` bounds the l2 norm of the gradient
    of one record's loss; `accounting.objective_epsilon` says what the whole costs if theta is the exact minimiser.
    """
    event = Event("objective", label, sensitivity, multiplier, offset=offset)
    ledger.record(event)
    return _answer(rng, event, gradient, lambda: minimise(rng.normal(0.0, multiplier * sensitivity, size=size)))


def number_of_runs(rng: np.random.Generator, ledger: Ledger, search: RandomSearch) -> int:
    """K, drawn from the law of the search by inversion. The ledger holds the search: whoever draws K must make the
    runs independent, and release no more than the one with the best private score.
    """
    ledger.record(search)
    return _answer(rng, search, None, lambda: _draw_number(rng, search))


def _draw_number(rng: np.random.Generator, search: RandomSearch) -> int:
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
    event = Event("exact", label, 1.0, 0.0)
    ledger.record(event)
    exact = np.asarray(value, dtype=float)
    return _answer(None, event, exact, lambda: exact)


def unpaid(value: ArrayLike, *, label: str) -> Floats:
    """The value itself, in no ledger: the release names it among its `nonprivate_inputs`."""
    exact = np.asarray(value, dtype=float)
    return tape.answer(None, label, None, exact, lambda: exact)


def _answer(
    rng: np.random.Generator | None,
    event: Event | RandomSearch,
    asked: Any,
    draw: Callable[[], T],
    *,
    rows: Rows | None = None,
    n: int = 0,
) -> T:
    """The one way out: whatever is told of the private rows is drawn, recorded or replayed here."""
    return tape.answer(rng, event.label, event, asked, draw, rows=rows, n=n)
