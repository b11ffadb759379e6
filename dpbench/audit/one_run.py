"""How much the releases of a mechanism give away of many records at once, measured: a lower bound on its epsilon.

Canaries are in a table or out of it by the toss of a coin, each its own; an attacker guesses from the release which are
in (Steinke, Nasr and Jagielski 2023). It sees what is released, not what was asked: third-party code, and rows that
were read without noise, are audited as well as noise is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpbench.audit.lower_bound import one_run_bound, one_run_mu
from dpbench.audit.neighbours import joined, random_table
from dpbench.audit.sampled_audit import Audit, Make
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.inference.glm_statistics import sum_statistics
from dpbench.privacy.accounting import gaussian_epsilon, spent
from dpbench.privacy.events import Gaussian
from dpbench.releases import (
    BinSums,
    Coefficients,
    Distribution,
    GlmStatistics,
    Marginals,
    Release,
    SufficientStatistics,
    SyntheticRows,
)
from dpbench.releases.offers import bounded_rows

Bits = NDArray[np.bool_]
LEAST_COINS = 20
COINS = (0, 2023)  # a seed that neither canaries nor mechanisms have: else coins would depend on them
SIZES = 8  # numbers of guesses that are tried, on either side
RIDGE = 1e-9  # added to the variances of the features, which are 1; so small that a feature without noise dominates


@dataclass(frozen=True)
class Canaries:
    """`records`: m canaries, whose coins are tossed. `rest`: the rows of every table. `blank`: one record, which has
    the place of a canary that is out where neighbours replace one.
    """

    records: Table
    rest: Table
    blank: Table

    @property
    def design(self) -> Design:
        """The last attribute from the others."""
        return Design(self.records.domain, target=self.records.domain.names[-1])

    def table(self, coins: Bits, relation: str) -> Table:
        """The rest, and the canaries whose coins (m,) are true."""
        out = np.zeros(int(np.sum(~coins)) if relation == "replace" else 0, dtype=np.int64)
        return joined(joined(self.rest, self.records.take(np.flatnonzero(coins))), self.blank.take(out))


def levels(count: int, rows: int, *, labels: bool = False) -> Canaries:
    """Canaries that have a level of a categorical attribute each for their own, one-hot corners with the largest y.

    The other rows, so many that about `rows` are expected in a table, have the first level and the smallest y, which is
    of two levels for `labels`.
    """
    names = ["none", *(f"canary_{i}" for i in range(count))]
    y = Attribute.categorical("y", ["no", "yes"]) if labels else Attribute.discrete("y", range(6))
    domain = Domain((Attribute.categorical("who", names), y))

    def table(who: NDArray[np.int64], code: int) -> Table:
        target = np.full(len(who), code)
        return Table(domain, np.stack([who, target], axis=1), {} if labels else {"y": target.astype(np.float64)})

    rest = table(np.zeros(max(rows - count // 2, 1), dtype=np.int64), 0)
    return Canaries(table(np.arange(1, count + 1), y.size - 1), rest, rest.take(np.arange(1)))


def corners(count: int, width: int, seed: int = 0) -> Canaries:
    """Canaries at random corners of `width` numeric attributes, all of norms at their bounds; there are no other rows.

    A mean of n of them has a product of about 1/n with each of its own, and of 1/sqrt(n width) with another one.
    """
    domain = Domain(tuple(Attribute.binned(f"x{j}", -1, 1, 2) for j in range(width)))
    codes = random_table(domain, count + 1, seed).codes
    both = Table(domain, codes, dict(zip(domain.names, np.where(codes == 1, 1.0, -1.0).T, strict=True)))
    none = both.take(np.arange(0))
    return Canaries(both.take(np.arange(count)), none, both.take(np.array([count])))


def one_run_audit(
    make: Make, canaries: Canaries, delta: float, *, relation: str = "add_remove", runs: int = 1, confidence: float
) -> Audit:
    """A lower bound on eps at `delta`, from the releases of `runs` tables with coins of their own, seeds 1 to `runs`.

    The coins of the first half of the runs are known to the attacker. From these, and the releases of these runs, it
    learns what tells a canary that is in (the linear discriminant of `features`) and how many to guess; it guesses the
    coins of the other runs. Given the first half, whose noise and coins are independent of the rest, the numbers of
    guesses are fixed, and the guesses are a function of the other releases: `one_run_bound` holds as it stands.

    In a single run every second coin is known. The others are still fair then, but the release that the numbers were
    learnt from is that which is guessed from. So the bound is that of a confidence at which it holds for all numbers
    that were tried at once (a union bound): 1 - (1 - confidence) / k for k of them.

    Where the ledger has nothing but Gaussian noise on all rows, `one_run_mu` takes the place of `one_run_bound`, as
    `mu_bound` does in `audit`.

    Raises `ValueError` for fewer than `LEAST_COINS` coins.
    """
    size = runs * len(canaries.records)
    if size < LEAST_COINS:
        raise ValueError(f"an audit takes {LEAST_COINS} coins at least, not {size}")
    coins = np.random.default_rng(COINS).random((runs, len(canaries.records))) < 0.5
    releases = [make(canaries.table(own, relation), seed) for seed, own in enumerate(coins, 1)]
    gaussian = all(isinstance(event, Gaussian) and event.rate == 1 for event in releases[0].ledger.events)

    def bound(correct: int, guesses: int, coins: int, level: float) -> float:
        if gaussian:
            return one_run_mu(correct, guesses, coins, level)
        return one_run_bound(correct, guesses, coins, delta, level)

    half = runs // 2 * len(canaries.records)
    known, guessed = (slice(half), slice(half, None)) if runs > 1 else (slice(0, None, 2), slice(1, None, 2))
    seen = _aligned([features(release, canaries) for release in releases], known)
    bits = coins.ravel()
    scores = _discriminant(seen[known], bits[known], seen)
    most, chosen = -1.0, (0, 0)
    tried = list(_numbers_of_guesses(len(bits[known])))
    for sizes in tried:
        shown = bound(_correct(scores[known], bits[known], sizes), sum(sizes), len(bits[known]), confidence)
        most, chosen = max((most, chosen), (shown, sizes))
    correct = _correct(scores[guessed], bits[guessed], chosen)
    held = confidence if runs > 1 else 1 - (1 - confidence) / len(tried)
    found = bound(correct, sum(chosen), len(bits[guessed]), held)
    what, cost = f"{correct} of {sum(chosen)} guesses right", spent(releases[0].ledger, delta)
    if gaussian:
        return Audit(cost, gaussian_epsilon(found, delta), found, what, runs, "one run")
    return Audit(cost, found, None, what, runs, "one run")


def features(release: Release, canaries: Canaries) -> dict[str, Floats]:
    """What a release says of each canary, (m,) each: how much of it there is in the release, and numbers of the whole.

    Counts of its cells, how near the synthetic rows are to it, what is predicted for it, its quadratic form in X'X, and
    how much its statistics have in common with those of a generalised linear model.
    """
    X, y = canaries.design.encode(canaries.records)
    found: dict[str, Floats] = {}
    tables: list[tuple[tuple[str, ...], Floats]] = []
    for part in release.parts:
        match part:
            case SyntheticRows():
                rows = canaries.design.encode(part.table)
                near = rows[0] @ X.T + np.outer(rows[1], y)
                found |= {"mean product": near.mean(axis=0), "nearest": near.max(axis=0)}
            case Coefficients():
                found["prediction"] = X @ part.values
            case SufficientStatistics():
                found |= {"X'X": np.sum((X @ part.xtx) * X, axis=1), "X'y": (X @ part.xty) * y}
            case GlmStatistics():  # those of a canary alone, in units of the noise of each
                bound = part.family, part.radius, part.largest_count, "scale"
                x, label = bounded_rows(canaries.records, canaries.design, *bound)
                own = [sum_statistics(x[[i]], label[[i]], part.family) for i in range(len(x))]
                found["statistics"] = np.stack(own) @ (part.values / part.variances)
            case BinSums():
                inside = ((part.lower[:, None] <= X) & (part.upper[:, None] >= X)).all(axis=2)
                found["bins"] = np.asarray(part.counts @ inside, dtype=np.float64)
            case Distribution():
                tables += part.answer([(name,) for name in release.domain.names]).items()
            case Marginals():
                tables += part.tables.items()
    cells = [table[tuple(canaries.records.column(name) for name in clique)] for clique, table in tables]
    found |= {"cells": np.mean(cells, axis=0), "empty": np.mean(np.equal(cells, 0), axis=0)} if cells else {}
    return found | {name: np.full(len(y), value) for name, value in _numbers(release)}


def _numbers(release: Release) -> Iterator[tuple[str, float]]:
    """Numbers that may tell how many canaries are in: sizes and sums of arrays, and the diagnostics."""
    for name, array in release.to_parts()[1].items():
        yield f"size of {name}", float(array.size)
        yield f"sum of {name}", float(np.sum(array))
    for name, value in release.diagnostics.items():
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield name, float(value)


def _aligned(seen: list[dict[str, Floats]], known: slice) -> Floats:
    """The features of all runs (runs m, f), of unit variance where coins are known; without those constant there."""
    names = sorted({name for one in seen for name in one})
    size = len(next(iter(seen[0].values())))
    table = np.concatenate(
        [np.stack([one.get(name, np.zeros(size)) for name in names], axis=1) for one in seen], dtype=np.float64
    )
    spread = table[known].std(axis=0)
    kept = spread > RIDGE * np.abs(table[known]).max(axis=0)
    scaled: Floats = (table[:, kept] - table[known][:, kept].mean(axis=0)) / spread[kept]
    return scaled


def _discriminant(known: Floats, coins: Bits, seen: Floats) -> Floats:
    """Fisher's linear discriminant of the features, learnt where the coins are known; large where a canary is in."""
    if coins.all() or not coins.any():
        return np.zeros(len(seen))
    means = np.stack([known[~coins].mean(axis=0), known[coins].mean(axis=0)])
    within = known - means[coins.astype(int)]
    covariance = within.T @ within / len(known) + RIDGE * np.eye(known.shape[1])
    return np.asarray(seen @ np.linalg.solve(covariance, means[1] - means[0]), dtype=np.float64)


def _numbers_of_guesses(coins: int) -> Iterator[tuple[int, int]]:
    """How many canaries to guess in, and how many out; the others are left open."""
    sizes = sorted({0, *np.geomspace(1, coins // 2, SIZES).astype(int).tolist()})
    return ((a, b) for a, b in product(sizes, sizes) if a + b)


def _correct(scores: Floats, coins: Bits, sizes: tuple[int, int]) -> int:
    """How many guesses are right, where the canaries of the largest scores are said to be in, of the smallest out."""
    order = np.argsort(scores, kind="stable")
    return int(np.sum(coins[order[len(order) - sizes[0] :]]) + np.sum(~coins[order[: sizes[1]]]))
