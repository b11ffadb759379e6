"""The least noise for a budget where no closed form gives it: sampled Gaussians, random searches, Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpbench.errors import UserError
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.events import Gaussian, Laplace
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import LARGEST_EPSILON, LEAST_MULTIPLIER, MOST_EVENTS, composed_delta
from dpbench.privacy.renyi import RandomSearch, random_search_epsilon, random_search_orders

Plan = tuple[float, int]  # the sampling rate of a run of DP-SGD and the number of its steps
PRECISION = 1e-4  # relative, of a multiplier; it is rounded up
MOST_MULTIPLIER = 1e9  # the largest that is tried


def advanced_composition(epsilon: float, delta: float, k: int) -> tuple[float, float]:
    """(eps0, delta0) of each of k mechanisms that together are (eps, delta)-DP (Steinke 2022, Theorem 22).

    eps = k eps0^2 / 2 + eps0 sqrt(2 k log(1/delta')) and delta = k delta0 + delta', where delta' = delta / 2.

    >>> eps0, delta0 = advanced_composition(1.0, 1e-5, 108)
    >>> round(eps0, 5), round(108 * eps0**2 / 2 + eps0 * math.sqrt(2 * 108 * math.log(1 / 5e-6)), 9)
    (0.01909, 1.0)
    """
    slope = math.sqrt(2 * k * math.log(2 / delta))
    return 2 * epsilon / (slope + math.sqrt(slope**2 + 2 * k * epsilon)), delta / (2 * k)


@lru_cache(maxsize=512)
def sampled_multiplier(epsilon: float, delta: float, rate: float, count: int) -> float:
    """The least noise multiplier, up to `PRECISION`, with which `count` sampled Gaussians are (eps, delta)-DP.

    At rate 1, and for an eps or a count out of the range of privacy loss distributions, it is the closed form of
    `count` Gaussians in which all rows take part. It is at least `LEAST_MULTIPLIER` otherwise.

    Raises `UserError` for an infinite eps, or if no multiplier is known to give (eps, delta).
    """
    check_finite(epsilon)
    mu = gaussian_mu(epsilon, delta)
    if rate == 1 or epsilon > LARGEST_EPSILON or count > MOST_EVENTS:
        return math.sqrt(count) / mu

    def excess(multiplier: float) -> float:
        least = composed_delta([Gaussian("", 1.0, multiplier, count, rate)], epsilon)
        return math.log(max(least, 1e-300) / delta)

    return _least(excess, _central_limit(mu, rate, count), f"epsilon = {epsilon:g} and delta = {delta:g}")


@lru_cache(maxsize=512)
def least_multiplier(epsilon: float, delta: float, event: Laplace | BatchGaussian) -> float:
    """The least multiplier, up to `PRECISION`, with which `event` is (eps, delta)-DP by `accounting.spent`.

    It is at least `LEAST_MULTIPLIER`. Raises `UserError` for an infinite eps, or if there is none.
    """
    check_finite(epsilon)

    def excess(multiplier: float) -> float:
        cost = spent(Ledger([replace(event, multiplier=multiplier)]), delta).epsilon
        return math.log(max(cost, 1e-300) / epsilon)

    guess = event.rate * math.sqrt(event.count) / gaussian_mu(epsilon, delta)
    return _least(excess, guess, f"epsilon = {epsilon:g} and delta = {delta:g}")


@lru_cache(maxsize=64)
def search_multipliers(
    epsilon: float, delta: float, plans: tuple[Plan, ...], *, eta: float, gamma: float, score_share: float
) -> tuple[tuple[float, ...], float]:
    """The multipliers of the steps of each plan, and of the score, with which a random search is (eps, delta)-DP.

    A search over mu-Gaussian-DP releases gives the mu^2 of one run, of which the share `score_share` goes to the score.
    The steps of a plan get the least multiplier at which they cost no more than the rest of mu^2 at the two orders that
    attain the search's eps (`random_search_orders`).

    Raises `UserError` for parameters out of range, an infinite eps, or if there are no such multipliers.
    """
    check_finite(epsilon)
    if not (eta > -1 and 0 < gamma < 1 and 0 < score_share < 1):
        raise UserError(
            "a random search needs eta greater than -1, and gamma and score_share between 0 and 1, both excluded; "
            f"they are {eta:g}, {gamma:g} and {score_share:g}"
        )

    def search(multiplier: float) -> RandomSearch:
        return RandomSearch("", eta, gamma, ((Gaussian("", 1.0, multiplier),),))

    target = f"epsilon = {epsilon:g} and delta = {delta:g} in a random search with E[K] = {search(1.0).mean:.3g}"
    of_search = _least(
        lambda m: random_search_epsilon(search(m), delta) - epsilon, 1 / gaussian_mu(epsilon, delta), target
    )
    orders = np.array(random_search_orders(search(of_search), delta))
    mu = math.sqrt(1 - score_share) / of_search

    def steps(rate: float, count: int) -> float:
        def excess(multiplier: float) -> float:
            rdp = Gaussian("", 1.0, multiplier, count, rate).rdp(orders)
            return math.log((rdp / orders).max() / (mu**2 / 2))

        return math.sqrt(count) / mu if rate == 1 else _least(excess, _central_limit(mu, rate, count), target)

    return tuple(steps(rate, count) for rate, count in plans), of_search / math.sqrt(score_share)


@lru_cache(maxsize=64)
def grid_multipliers(epsilon: float, delta: float, runs: tuple[tuple[Plan, int], ...]) -> tuple[float, ...]:
    """The multipliers of runs of several plans with which all of them together are (eps, delta)-DP.

    `runs` has each plan and its number of runs, in parallel on the same samples: their releases in a step are one
    sampled Gaussian of sensitivity sqrt(k). All runs have the same share of mu^2, by the central limit for
    sampled ones; their multipliers are then scaled together to the least, but for `PRECISION`. For an eps or a count
    out of the range of privacy loss distributions, it is the closed form of steps in which all rows take part.

    Raises `UserError` for an infinite eps, or if there are no such multipliers.
    """
    check_finite(epsilon)
    share = gaussian_mu(epsilon, delta) / math.sqrt(sum(k for _, k in runs))
    if epsilon > LARGEST_EPSILON or sum(count for (_, count), _ in runs) > MOST_EVENTS:
        return tuple(math.sqrt(count) / share for (_, count), _ in runs)
    even = [math.sqrt(count) / share if rate == 1 else _central_limit(share, rate, count) for (rate, count), _ in runs]

    def excess(scale: float) -> float:
        of_each = zip(runs, even, strict=True)
        steps = [Gaussian("", 1.0, scale * one / math.sqrt(k), count, rate) for ((rate, count), k), one in of_each]
        return math.log(max(composed_delta(steps, epsilon), 1e-300) / delta)

    scale = _least(excess, 1.0, f"epsilon = {epsilon:g} and delta = {delta:g}")
    return tuple(scale * one for one in even)


def check_finite(epsilon: float) -> None:
    """Raises `UserError` for an infinite eps."""
    if math.isinf(epsilon):
        raise UserError("this mechanism needs a finite epsilon; use a large one, such as 1e3, to see its limit")


def _central_limit(mu: float, rate: float, count: int) -> float:
    """The multiplier at which `pld.central_limit_mu` is mu."""
    return 1 / math.sqrt(math.log1p((mu / rate) ** 2 / count))


def _least(excess: Callable[[float], float], guess: float, target: str) -> float:
    """The least multiplier at which a falling `excess` is at most 0, up to `PRECISION`, on the safe side."""
    from scipy.optimize import brentq

    low = high = max(guess, LEAST_MULTIPLIER)
    while excess(high) > 0:
        low, high = high, 1.2 * high
        if high > MOST_MULTIPLIER:
            raise UserError(
                f"no noise multiplier up to {MOST_MULTIPLIER:g} is known to give {target}; raise one of them"
            )
    while low == high or excess(low) <= 0:
        if low == LEAST_MULTIPLIER:
            return low
        low, high = max(low / 1.2, LEAST_MULTIPLIER), low
    root = math.exp(brentq(lambda x: excess(math.exp(x)), math.log(low), math.log(high), xtol=PRECISION))
    while excess(root) > 0:
        root *= 1 + PRECISION
    return float(root)
