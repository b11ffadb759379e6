"""Histograms over levels that nobody knows beforehand: only those with a noisy count above a threshold are released.

**Source** Korolova, Kenthapadi, Mishra and Ntoulas (WWW 2009, doi 10.1145/1526709.1526733); stability-based histograms:
Bun, Nissim and Stemmer (2016), arXiv 1511.08552.

**Privacy** Neighbours add or remove one row. A row is counted once in each of d histograms of a stage, at most, and
there are k stages; the histograms of a later one may depend on what earlier ones released. Each count above 0 gets
N(0, m^2), where m differs from stage to stage, and is released with its level if it is above 1 + m z(failure), where
P[N(0, 1) > z(f)] = f. With mu^2 the sum of d / m^2 over the stages, and b = k d failure, all of it is (eps,
gaussian_delta(eps, mu) + b)-DP for every eps.

Proof. Let D' be D and one row more. Call a level new if its count is 0 in D and 1 in D': there is one at most in each
histogram. Let N be the same algorithm, for which no new level is released: N(D) has the distribution of M(D), and N(D')
is M(D') unless a new level passes its threshold, which has the probability `failure` each: b at most in all.
Both N(D) and N(D') add Gaussian noise to counts of the same levels, of which in each stage at most d differ, by 1, so
that they differ by sqrt(d) at most in the l2 norm, and are processed further without the rows; the stages compose
adaptively (Dong, Roth and Su 2019, arXiv 1905.02383). With g = gaussian_delta(eps, mu),

    P[M(D') in S] <= P[N(D') in S] + b <= e^eps P[N(D) in S] + g + b = e^eps P[M(D) in S] + g + b.

For the other direction let G be the event that the noise of no new level, which is independent of all other noise,
passes; let the same noise be drawn with N(D), unused. Then G belongs to what both draw in the same way, and

    P[M(D) in S] <= P[N(D) in S, G] + b <= e^eps P[N(D') in S, G] + g + b <= e^eps P[M(D') in S] + g + b,

since N(D') is M(D') on G.

**Departures** Noise is continuous, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpbench.privacy import noise
from dpbench.privacy.accounting import Spent, gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger

K = TypeVar("K")
FAILURES = 0.5  # of delta, for new levels that pass the threshold


@dataclass(frozen=True)
class Stage:
    """`columns` histograms with noise N(0, multiplier^2), in which a level of one row passes with `failure`."""

    name: str
    columns: int
    multiplier: float
    failure: float

    @property
    def threshold(self) -> float:
        """Above which a noisy count is released."""
        from scipy.special import ndtri

        return 1 - self.multiplier * float(ndtri(self.failure))


def stages(budget: Budget, columns: int, shares: Mapping[str, float]) -> tuple[Stage, ...]:
    """Stages of as many histograms each that spend the budget together, by their shares of mu^2.

    Their names are those of `shares`, which add up to 1.
    """
    mu = gaussian_mu(budget.epsilon, (1 - FAILURES) * budget.delta)
    failure = FAILURES * budget.delta / (len(shares) * columns)
    return tuple(Stage(name, columns, math.sqrt(columns / share) / mu, failure) for name, share in shares.items())


def stable_histograms(
    rng: np.random.Generator, ledger: Ledger, stage: Stage, counts: Mapping[str, Mapping[K, int]]
) -> dict[str, dict[K, float]]:
    """The noisy counts of each of the stage's histograms that are above its threshold.

    `counts`: by the name of the histogram, level -> rows, in each of which a row is counted once at most.
    """
    if len(counts) != stage.columns:
        raise ValueError(f"the stage {stage.name} is calibrated for {stage.columns} histograms, not {len(counts)}")
    released: dict[str, dict[K, float]] = {}
    for name, own in counts.items():
        there = {level: count for level, count in own.items() if count > 0}
        label = f"{stage.name} {name}"
        noisy = noise.gaussian(
            rng, ledger, [*there.values()], sensitivity=1.0, multiplier=stage.multiplier, label=label
        )
        released[name] = {
            level: float(count) for level, count in zip(there, noisy, strict=True) if count > stage.threshold
        }
    return released


def stable_cost(ledger: Ledger, budget: Budget) -> Spent:
    """What stages of this budget spent: the eps of their noise, at the whole delta.

    It composes with other releases by its sum alone, since the ledger does not know of the threshold.
    """
    noisy = spent(ledger, (1 - FAILURES) * budget.delta)
    return Spent(noisy.epsilon, budget.delta, math.inf, None)
