"""Renyi DP of sampled Gaussians, and of a random search over runs of them (Papernot and Steinke 2021)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpbench.data.domain import Floats
from dpbench.privacy.budget import Event, RandomSearch

# Orders of the Renyi divergence. Whole numbers, for which the divergence of a sampled Gaussian is a finite sum; up to
# more than 2 log(1/delta) / eps, where the conversion to (eps, delta) has its minimum, for eps = 0.005.
ORDERS: Floats = np.unique(np.round(np.geomspace(2, 1e4, 120)))


def random_search_epsilon(search: RandomSearch, delta: float) -> float:
    """eps at delta of the released run (Papernot and Steinke 2021, Theorem 2).

    If one run is (lambda, eps)-RDP and (l, e)-RDP, what is released is (lambda, eps')-RDP with

        eps' = eps + (1 + eta) (1 - 1/l) e + (1 + eta) log(1/gamma) / l + log(E[K]) / (lambda - 1).

    One run draws a setting first, then its noise: at each order its eps is at most the largest of its alternatives'.
    """
    return _search(search, delta)[0]


def random_search_orders(search: RandomSearch, delta: float) -> tuple[float, float]:
    """The orders (lambda, l) of Theorem 2 at which `random_search_epsilon` is attained."""
    return _search(search, delta)[1:]


@lru_cache(maxsize=64)
def _search(search: RandomSearch, delta: float) -> tuple[float, float, float]:
    run = np.max(
        [
            sum((gaussian_rdp(event, ORDERS) for event in events), np.zeros(len(ORDERS)))
            for events in search.alternatives
        ],
        axis=0,
    )
    penalties = (1 + search.eta) * ((1 - 1 / ORDERS) * run - math.log(search.gamma) / ORDERS)
    rdp = run + penalties.min() + math.log(search.mean) / (ORDERS - 1)
    # RDP to (eps, delta): Canonne, Kamath, Steinke 2020, Proposition 12
    epsilons = rdp + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    return max(float(epsilons.min()), 0.0), float(ORDERS[epsilons.argmin()]), float(ORDERS[penalties.argmin()])


def gaussian_rdp(event: Event, orders: Floats) -> Floats:
    """The RDP of a Gaussian event at whole orders, for an added and for a removed record.

    At order a and rate q < 1 one draw has 1 / (a - 1) times the logarithm of the sum over k = 0 .. a of
    binomial(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 multiplier^2)) (Mironov, Talwar, Zhang 2019, section 3.3).
    """
    from scipy.special import gammaln, logsumexp

    if event.rate == 1:
        return event.count * event.rho * orders
    found = []
    for a in orders:
        k = np.arange(a + 1)
        logs = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
        logs += (a - k) * math.log1p(-event.rate) + k * math.log(event.rate) + (k**2 - k) / (2 * event.multiplier**2)
        found.append(event.count * logsumexp(logs) / (a - 1))
    return np.array(found)
