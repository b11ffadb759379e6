"""The only place where noise is drawn. Each call enters its draw into the ledger, and each function takes the exact
value, so that queries and answers can be recorded and replayed (`privacy.recording`).

Noise is sampled in double precision: the guarantee is that of the real-valued mechanism, not of floating-point
arithmetic (Mironov 2012). Discrete noise (`noise=discrete`) is integer multiples of a spacing, drawn exactly
(`privacy.discrete`) and added to values that are such multiples themselves (`privacy.discrete_values`): its guarantee
holds for the released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpbench.data.domain import Codes, Floats
from dpbench.privacy import discrete, events, recording
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete import DiscreteGaussian, OnGrid, is_discrete
from dpbench.privacy.events import Event
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.projections import Projection, TwoSidedProjection
from dpbench.privacy.recording import Rows
from dpbench.privacy.renyi import RandomSearch

T = TypeVar("T")


LEVELS = 2**10  # of a score in its sensitivity, where an index is drawn exactly


def gaussian(
    rng: np.random.Generator,
    ledger: Ledger,
    value: ArrayLike | OnGrid,
    *,
    sensitivity: float,
    multiplier: float,
    label: str,
) -> Floats:
    """value + N(0, (multiplier * sensitivity)^2) in each entry: 1/multiplier-Gaussian DP.

    `sensitivity` bounds the l2 norm of the change of `value` between neighbours. A value `OnGrid` gets
    discrete noise (`DiscreteGaussian.of`), with a standard deviation that also covers its rounding.
    """
    if isinstance(value, OnGrid):
        return _discrete_gaussian(
            rng, ledger, value, DiscreteGaussian.of(label, sensitivity, multiplier, value.entries)
        )
    event = events.Gaussian(label, sensitivity, multiplier)
    return _answer(rng, ledger, event, value, lambda x: x + rng.normal(0.0, multiplier * sensitivity, size=x.shape))


def _discrete_gaussian(rng: np.random.Generator, ledger: Ledger, value: OnGrid, event: DiscreteGaussian) -> Floats:
    ledger.record(event)
    exact = value.multiples(event.spacing)

    def noisy() -> Floats:
        drawn = discrete.gaussian(discrete.Source.of(rng), event.scale, exact.size).reshape(exact.shape)
        return (exact + drawn).astype(float) * event.spacing

    return recording.answer(rng, event.label, event, exact * event.spacing, noisy)


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
    `sensitivity` bounds the l2 norm of one sampled row's contribution to the query. A step's query is computed when the
    step is taken, so that it may depend on the previous answers.
    """
    event = events.Gaussian(label, sensitivity, multiplier, count, rate)

    def draw() -> Rows:
        return rng.choice(n, rng.binomial(n, rate), replace=False)

    return _steps(rng, ledger, event, n, query, draw)


def batch_gaussian(
    rng: np.random.Generator,
    ledger: Ledger,
    n: int,
    query: Callable[[Rows], Floats],
    *,
    sensitivity: float,
    multiplier: float,
    batch: int,
    replacement: bool,
    count: int,
    label: str,
) -> Iterator[Floats]:
    """`count` steps, each query(rows of a batch) with noise: `batch` of n rows drawn uniformly, perhaps repeatedly.

    Neighbours replace one record. The noise is N(0, (multiplier * sensitivity)^2) in each entry, where `sensitivity`
    bounds the l2 norm of the change of the query where the batch holds another row in one place. As in
    `sampled_gaussian` a step's query may depend on the previous answers.
    """
    event = BatchGaussian(label, sensitivity, multiplier, n, batch, replacement, count)
    return _steps(rng, ledger, event, n, query, lambda: rng.choice(n, batch, replace=replacement))


def _steps(
    rng: np.random.Generator,
    ledger: Ledger,
    event: events.Gaussian | BatchGaussian,
    n: int,
    query: Callable[[Rows], Floats],
    draw: Callable[[], Rows],
) -> Iterator[Floats]:
    """The noisy answers of an event, on samples of n rows from `draw`; all rows, as a slice, at rate 1.

    A batch is drawn at any rate: it may hold a row more than once.
    """
    ledger.record(event)
    all_rows = isinstance(event, events.Gaussian) and event.rate == 1

    def step() -> Floats:
        rows = slice(None) if all_rows else recording.sample(n, draw)
        exact = query(rows)

        def noisy() -> Floats:
            return exact + rng.normal(0.0, event.multiplier * event.sensitivity, size=exact.shape)

        return recording.answer(rng, event.label, event, exact, noisy, rows=rows, n=n)

    return (step() for _ in range(event.count))


def laplace(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + Laplace(multiplier * sensitivity) in each entry: (1/multiplier)-DP; `sensitivity` is in the l1 norm."""
    event = events.Laplace(label, sensitivity, multiplier)
    return _answer(rng, ledger, event, value, lambda x: x + rng.laplace(0.0, multiplier * sensitivity, size=x.shape))


def tree_laplace(
    rng: np.random.Generator, ledger: Ledger, *, scale: float, epsilon: float, label: str, spacing: float | None = None
) -> Callable[[Floats], Floats]:
    """A function that adds Laplace(scale) to each of the counts (m,) of a tree that is epsilon-DP in total.

    A record changes the counts of one call by 1 at most, in the l1 norm. The ledger holds one event of this epsilon
    however often the function is called: the caller's algorithm must be epsilon-DP whatever the depth of its tree, as
    PrivTree is (Zhang et al. 2016; BinAgg, section C). With a `spacing`, of which counts and scale are multiples, the
    noise is discrete: integer multiples x with probabilities in proportion to exp(-|x| / scale).
    """
    event = events.PureDP(label, epsilon)
    ledger.record(event)

    def draw(size: int) -> Floats:
        if spacing is None:
            return rng.laplace(0.0, scale, size=size)
        return discrete.laplace(discrete.Source.of(rng), round(scale / spacing), size).astype(float) * spacing

    return lambda counts: recording.answer(rng, label, event, counts, lambda: counts + draw(len(counts)))


def projection(
    rng: np.random.Generator,
    ledger: Ledger,
    gram: Floats,
    *,
    sensitivity: float,
    multiplier: float,
    count: int,
    failure: float = 0.0,
    two_sided: bool = False,
    label: str,
) -> Floats:
    """R B (count, k) for a matrix B with B'B = `gram` (k, k) and R of entries iid N(0, 1): rows iid N(0, gram).

    `sensitivity` bounds the l2 norm of a record's row in B. Both of two neighbours' Gram matrices must be at least
    (multiplier * sensitivity)^2 I, except with probability `failure`; `projections.projection_epsilon` gives the cost.
    `two_sided`: a record changes `gram` by no more than `projections.two_sided_rdp` says, which gives the cost.
    """
    kind = TwoSidedProjection if two_sided else Projection
    event = kind(label, sensitivity, multiplier, count, failure)
    return _answer(rng, ledger, event, gram, lambda M: rng.normal(size=(count, len(M))) @ np.linalg.cholesky(M).T)


def exponential_mechanism(
    rng: np.random.Generator,
    ledger: Ledger,
    scores: ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    label: str,
    noise: str = "continuous",
) -> int:
    """An index drawn with weight exp(epsilon score / (2 sensitivity)): epsilon-DP and epsilon^2/8-zCDP.

    Drawn in log space as the largest of the scores with Gumbel noise. `sensitivity` bounds the change of any score.

    For discrete `noise` it is drawn exactly, by scores that are rounded to `LEVELS` in a sensitivity. A score, computed
    in double precision, must be right to half a level; then its level moves by LEVELS + 2 at most between neighbours,
    and so the weight is exp(epsilon level / (2 (LEVELS + 2))).
    """
    event, scale = events.ExponentialMechanism(label, sensitivity, epsilon), epsilon / (2 * sensitivity)
    if is_discrete(noise):
        rate = Fraction(epsilon) / (2 * (LEVELS + 2))

        def draw(x: Floats) -> int:
            levels = [int(level) for level in np.rint(x * (LEVELS / sensitivity))]
            return discrete.weighted_index(discrete.Source.of(rng), levels, rate)

        return _answer(rng, ledger, event, scores, draw)
    return _answer(rng, ledger, event, scores, lambda x: int(np.argmax(x * scale + rng.gumbel(size=x.shape))))


def exponential_mechanisms(
    rng: np.random.Generator,
    ledger: Ledger,
    scores: ArrayLike,
    *,
    count: int,
    replacement: bool = False,
    sensitivity: float,
    epsilon: float,
    label: str,
) -> Codes:
    """`count` indices by as many exponential mechanisms, the scores being the same for all.

    Without replacement each is drawn from the remaining ones. They are the largest of the scores with Gumbel noise,
    in their order (Durfee and Rogers 2019), so that noise is drawn once.
    """
    event, scale = events.ExponentialMechanism(label, sensitivity, epsilon, count), epsilon / (2 * sensitivity)

    def draw(x: Floats) -> Codes:
        logits = x * scale  # of perhaps a million queries: worked on in place
        if replacement:
            logits -= logits.max()
            steps = np.cumsum(np.exp(logits, out=logits), out=logits)
            places: Codes = np.searchsorted(steps, rng.random(count) * steps[-1], side="right")
            return places.clip(max=len(x) - 1)  # the product may be rounded up to the last step
        logits += rng.gumbel(size=x.shape)
        largest: Codes = np.argpartition(logits, len(x) - count)[len(x) - count :]
        return largest[np.argsort(-logits[largest])]

    return _answer(rng, ledger, event, scores, draw, replacement=replacement)


def permute_and_flip(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index by permute-and-flip (McKenna and Sheldon 2020): epsilon-DP, hence epsilon^2/2-zCDP, and no better.

    Equal in distribution to the largest of the scores with exponential noise (Ding et al. 2021).
    """
    event, scale = events.PermuteAndFlip(label, sensitivity, epsilon), epsilon / (2 * sensitivity)
    return _answer(rng, ledger, event, scores, lambda x: int(np.argmax(x * scale + rng.exponential(size=x.shape))))


def depth_exponential(
    rng: np.random.Generator,
    ledger: Ledger,
    boxes: Floats,
    *,
    epsilon: float,
    delta: float,
    label: str,
) -> Floats:
    """A point (d,) of nested boxes (k, 2, d), the largest first, each with its lower and its upper corner.

    Its density is in proportion to exp(epsilon i / 2) between box i and box i + 1, and 0 outside of the largest: i is
    drawn in log space, and then a point, uniformly.
    """
    event = events.DepthExponential(label, epsilon, delta)

    def draw(x: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # no width, or none more than the next box
            logs = np.log(x[:, 1] - x[:, 0])
            volumes = logs.sum(axis=1)
            shells = np.append(np.log(-np.expm1(np.diff(volumes))), 0.0) + volumes
            i = int(np.argmax(shells + epsilon / 2 * np.arange(len(x)) + rng.gumbel(size=len(x))))
            return _uniform(rng, *x[i]) if i == len(x) - 1 else _between(rng, x[i], x[i + 1])

    return _answer(rng, ledger, event, boxes, draw)


def _uniform(rng: np.random.Generator, low: Floats, high: Floats) -> Floats:
    """A point (d,) of the box between two corners."""
    return low + (high - low) * rng.random(len(low))


def _between(rng: np.random.Generator, outer: Floats, inner: Floats) -> Floats:
    """A point (d,) of the outer box (2, d) that is not in the inner one, uniformly.

    j, its first coordinate outside of the inner box, has a probability in proportion to the volume of such points.
    """
    large, small = outer[1] - outer[0], inner[1] - inner[0]
    logs = np.log(large - small)
    logs[1:] += np.cumsum(np.log(small))[:-1]
    logs[:-1] += np.cumsum(np.log(large)[::-1])[::-1][1:]
    j = int(np.argmax(logs + rng.gumbel(size=len(logs))))
    point = _uniform(rng, *np.where(np.arange(len(logs)) < j, inner, outer))
    below = inner[0, j] - outer[0, j]
    step = rng.uniform(0.0, large[j] - small[j])
    point[j] = outer[0, j] + step if step < below else inner[1, j] + (step - below)
    return point


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
    kind: type[events.ObjectivePerturbation] = events.ObjectivePerturbation,
) -> Floats:
    """minimise(b), the theta (size,) of an objective with the linear term b ~ N(0, (multiplier * sensitivity)^2 I).

    `gradient` is that of the objective without b, a function of theta. `sensitivity` bounds the l2 norm of the gradient
    of one record's loss; `accounting.objective_epsilon` gives the cost if theta is the exact minimiser, or that of the
    `kind` of the loss.
    """
    event = kind(label, sensitivity, multiplier, offset)
    ledger.record(event)
    return recording.answer(
        rng, label, event, gradient, lambda: minimise(rng.normal(0.0, multiplier * sensitivity, size=size))
    )


def number_of_runs(rng: np.random.Generator, ledger: Ledger, search: RandomSearch) -> int:
    """K, drawn from the distribution of the search by inversion. The ledger holds the search: the caller must make the
    runs independent, and release only the one with the best private score.
    """
    ledger.record(search)
    return recording.answer(rng, search.label, search, None, lambda: _draw_number(rng, search))


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
    """Enter the (epsilon, delta) that third-party code claims for its own noise, which we cannot verify."""
    ledger.record(events.Claimed(label, epsilon, delta))


def unperturbed(ledger: Ledger, value: ArrayLike, *, label: str) -> Floats:
    """The value itself, with its infinite cost in the ledger: for the non-private reference."""
    return _answer(None, ledger, events.Exact(label), value, lambda exact: exact)


def unpaid(value: ArrayLike, *, label: str) -> Floats:
    """The value itself, in no ledger: the release names it among its `nonprivate_inputs`."""
    exact = np.asarray(value, dtype=float)
    return recording.answer(None, label, None, exact, lambda: exact)


def _answer(
    rng: np.random.Generator | None,
    ledger: Ledger,
    event: Event,
    value: ArrayLike,
    draw: Callable[[Floats], T],
    *,
    replacement: bool | None = None,
) -> T:
    """The answer of `draw` for the value, once the event is in the ledger."""
    ledger.record(event)
    exact = np.asarray(value, dtype=float)
    return recording.answer(rng, event.label, event, exact, lambda: draw(exact), replacement=replacement)
