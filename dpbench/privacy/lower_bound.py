"""Lower bounds on what a mechanism costs, from how well a test tells two neighbours apart.

The test says "with" where its score is larger than a threshold. Its errors, counted on runs that did not choose the
threshold, bound the cost from below with a stated confidence (Nasr et al. 2023). Or it guesses which of many records
were in one table (`one_run_bound`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.data.domain import Floats

THRESHOLDS = 99  # quantiles of the scores, of which one is chosen


def epsilon_bound(without: Floats, with_record: Floats, delta: float, confidence: float) -> float:
    """eps is at least this, with this confidence. `without` (m,), `with_record` (m,): scores on the two neighbours.

    A test of an (eps, delta)-DP mechanism has rates a and b of false positives and negatives with
    a + e^eps b >= 1 - delta and e^eps a + b >= 1 - delta (Kairouz, Oh and Viswanath 2015).
    """

    def bound(positives: Floats, negatives: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            ratios = np.maximum([(1 - delta - positives) / negatives, (1 - delta - negatives) / positives], 1.0)
        logs: Floats = np.log(ratios.max(axis=0))
        return logs

    return _bound(without, with_record, confidence, bound)


def mu_bound(without: Floats, with_record: Floats, confidence: float) -> float:
    """mu of Gaussian DP is at least this, with this confidence: normal quantile(1 - a) - normal quantile(b).

    For a mechanism whose trade-off is Gaussian it is far closer than `epsilon_bound` at a small delta.
    """
    from scipy.stats import norm

    return _bound(without, with_record, confidence, lambda a, b: np.maximum(norm.isf(a) - norm.ppf(b), 0.0))


def one_run_bound(correct: int, guesses: int, coins: int, delta: float, confidence: float) -> float:
    """eps is at least this, with this confidence: so many `guesses` are correct of which of `coins` records are in.

    Each record was in the table with probability 1/2, independently, and the number of guesses was fixed beforehand:
    Steinke, Nasr and Jagielski (2023, arXiv 2305.08846v1), Corollary 5.4 of Theorem 5.2, which Appendix D computes.
    Under (eps, delta)-DP at least v of r guesses are correct with probability
    P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i at most, where m is `coins` and
    W ~ Binomial(r, e^eps / (1 + e^eps)). Guesses on several runs with coins of their own count together:
    a record is in one table alone. No more than log(r / log(1 / (1 - confidence))), about, can be found.
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    steps = np.arange(1, correct + 1)

    def excess(epsilon: float) -> float:
        accuracy = 1 / (1 + np.exp(-epsilon))
        most = binom.sf(correct - 1, guesses, accuracy)
        near = binom.sf(correct - steps - 1, guesses, accuracy) - most
        return float(most + 2 * coins * delta * np.max(near / steps, initial=0.0)) - (1 - confidence)

    largest = 50.0  # where accuracy is 1 in double precision
    return float(brentq(excess, 0.0, largest)) if correct and excess(0.0) < 0 < excess(largest) else 0.0


def _bound(without: Floats, with_record: Floats, confidence: float, bound: Callable[[Floats, Floats], Floats]) -> float:
    """The first half of the runs chooses the threshold, at which its own bound is largest; the second tests."""
    (chooses, tested), (chooses_with, tested_with) = (np.array_split(np.asarray(x), 2) for x in (without, with_record))
    thresholds = np.quantile(np.concatenate([chooses, chooses_with]), np.linspace(0, 1, THRESHOLDS + 2)[1:-1])
    chosen = np.argmax(bound(*_errors(chooses, chooses_with, thresholds, confidence)))
    return float(bound(*_errors(tested, tested_with, thresholds[[chosen]], confidence))[0])


def _errors(without: Floats, with_record: Floats, thresholds: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Upper limits of false positives and negatives at each threshold, which hold together (Clopper-Pearson)."""
    from scipy.stats import beta

    def limit(hits: Floats, runs: int) -> Floats:
        return np.where(hits < runs, beta.ppf(1 - (1 - confidence) / 2, hits + 1, np.maximum(runs - hits, 1)), 1.0)

    positives = (without[:, None] > thresholds).sum(axis=0)
    negatives = (with_record[:, None] <= thresholds).sum(axis=0)
    return limit(positives, len(without)), limit(negatives, len(with_record))
