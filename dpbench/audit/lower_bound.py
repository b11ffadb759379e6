"""Lower bounds on the epsilon of a mechanism, from how well a test distinguishes two neighbours.

The test says "with" where its score is larger than a threshold. Its errors, counted on runs that were not used to
choose the threshold, bound the cost from below with a stated confidence (Nasr et al. 2023). Or it guesses which of many
records were in one table (`one_run_bound`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.data.domain import Floats

THRESHOLDS = 99  # quantiles of the scores, of which one is chosen
ROUNDING = 1  # the seed of the numbers at which values are rounded
CAPS = 25  # that are tried
LARGEST_LOG = 700.0  # of a weight: larger ones are clipped, which only lowers the bound
DIGITS = 1e-6  # absolute precision of an eps
LARGEST_MU = 50.0


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
    """eps is at least this, with this confidence: `correct` of `guesses` on which of `coins` records are in are right.

    Each record was in the table with probability 1/2, independently, and the number of guesses was fixed in advance:
    Steinke, Nasr and Jagielski (2023, arXiv 2305.08846v1), Corollary 5.4 of Theorem 5.2, which Appendix D computes.
    Under (eps, delta)-DP at least v of r guesses are correct with probability
    P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i at most, where m is `coins` and
    W ~ Binomial(r, e^eps / (1 + e^eps)). Guesses on several runs with coins of their own count together:
    a record is in one table alone. The bound is at most about log(r / log(1 / (1 - confidence))).
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


def one_run_mu(correct: int, guesses: int, coins: int, confidence: float) -> float:
    """mu of Gaussian DP is at least this, with this confidence: `one_run_bound` for the entire trade-off function.

    Mahloujifar, Melis and Chaudhuri (2025, arXiv 2410.22235), by the recursion of their Algorithm 3. Let r of m coins
    be guessed, P_i be the probability of i right guesses, A_i = sum over j >= i of j P_j / m, and B_i the same of
    (r - j) P_j / m. A guess that is right among j right ones is wrong among j - 1 where its coin is tossed the other
    way, so that f-DP, averaged over the coins, gives A_i <= 1 - f(B_(i-1)). If as many as `correct` are right with
    probability 1 - confidence, this bounds the probabilities of all smaller numbers from below, one after another. A mu
    at which they add up to more than 1 is refuted.
    """
    from scipy.special import ndtr, ndtri

    def refutes(mu: float) -> bool:
        share = guesses / coins
        right, wrong = ((1 - confidence) * part / coins for part in (correct, guesses - correct))
        for i in range(correct - 1, -1, -1):
            least = float(ndtr(ndtri(right) - mu))
            if least > wrong:
                right, wrong = right + i / (guesses - i) * (least - wrong), least
            if right + wrong > share:
                return True
        return False

    return _last(refutes, LARGEST_MU) if correct else 0.0


def tilted_bound(losses: Floats, cumulants: Floats, tilt: float, delta: float, confidence: float) -> float:
    """eps is at least this, with this confidence. `losses`, `cumulants` (m,): of runs drawn at a tilt (`tilted_audit`).

    At any eps, delta is the mean of (1 - exp(eps - loss))_+ exp(cumulant - tilt loss). The first quarter of the runs
    chooses a cap; the values of the others, over the cap and at most 1, are rounded to 0 or 1 at random, each with its
    own uniform number. The number of ones is binomial, of a mean at most that of the values, and Clopper-Pearson bounds
    it from below. It falls in eps, so that the bound holds for the largest eps that it refutes.
    """
    from scipy.stats import beta

    first = len(losses) // 4
    chooses, tested = slice(first), slice(first, None)
    rounding = np.random.default_rng(ROUNDING).random(len(losses))
    largest = float(np.max(losses, initial=0.0))

    def values(epsilon: float, runs: slice) -> Floats:
        with np.errstate(over="ignore"):
            weights = np.exp(np.minimum(cumulants - tilt * losses, LARGEST_LOG)[runs])
        return weights * np.maximum(-np.expm1(epsilon - losses[runs]), 0.0)

    def bound(cap: float, runs: slice) -> float:
        def refutes(epsilon: float) -> bool:
            ones = int(np.sum(rounding[runs] * cap < values(epsilon, runs)))
            size = len(rounding[runs])
            return ones > 0 and cap * float(beta.ppf(1 - confidence, ones, size - ones + 1)) > delta

        return _last(refutes, largest)

    near = _last(lambda epsilon: float(np.mean(values(epsilon, chooses))) > delta, largest)
    seen = np.concatenate([values(part * near, chooses) for part in (0.8, 0.9, 1.0)])
    caps = np.unique(np.quantile(seen[seen > 0], np.linspace(0, 1, CAPS))).tolist() if seen.any() else []
    return bound(max(caps, key=lambda cap: bound(cap, chooses)), tested) if caps else 0.0


def _last(holds: Callable[[float], bool], largest: float) -> float:
    """The largest number from 0 to `largest` at which a monotone condition holds; 0 if it holds nowhere."""
    low, high = 0.0, largest
    while high - low > DIGITS:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _bound(without: Floats, with_record: Floats, confidence: float, bound: Callable[[Floats, Floats], Floats]) -> float:
    """The first half of the runs chooses the threshold that maximises its own bound; the second half tests."""
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
