"""Events that are accounted by Renyi DP: a random search over runs (Papernot and Steinke 2021), and a curve of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from dpbench.data.domain import Floats
from dpbench.files import Json
from dpbench.privacy.events import ZCDP, Event, Gaussian

# Orders of the Renyi divergence. Integers, for which the divergence of a sampled Gaussian is a finite sum; up to
# more than 2 log(1/delta) / eps, where the conversion to (eps, delta) has its minimum, for eps = 0.005.
ORDERS: Floats = np.unique(np.round(np.geomspace(2, 1e4, 120)))


@dataclass(frozen=True)
class RandomSearch(Event):
    """K independent runs, of which the one with the best private score was released (Papernot and Steinke 2021).

    K has the truncated negative binomial distribution of Definition 1 there: P(K = k) is in proportion to
    (1 - gamma)^k prod_{l < k} (l + eta) / (l + 1), k = 1, 2, ..., eta > -1, 0 < gamma < 1 (eta = 0: the logarithmic
    distribution, k's weight being (1 - gamma)^k / k). Each run drew the noise of one of the `alternatives`. Which of
    them, and K, are not recorded: the theorem's guarantee is that of an output whose number of runs stays secret.
    """

    kind, composes_with = "random_search", ()
    eta: float
    gamma: float
    alternatives: tuple[tuple[Gaussian | ZCDP, ...], ...]

    def __post_init__(self) -> None:
        if not (self.eta > -1 and 0 < self.gamma < 1):
            raise ValueError(f"{self.label}: eta > -1 and 0 < gamma < 1 are needed, not {self.eta} and {self.gamma}")
        if not all(isinstance(event, (Gaussian, ZCDP)) for events in self.alternatives for event in events):
            raise ValueError(f"{self.label}: a run must be Gaussian noise, or zCDP in total")

    @property
    def mean(self) -> float:
        """E[K] (Papernot and Steinke 2021, Definition 1)."""
        if self.eta == 0:
            return (1 / self.gamma - 1) / -math.log(self.gamma)
        return self.eta * (1 - self.gamma) / (self.gamma * -math.expm1(self.eta * math.log(self.gamma)))

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        alternatives = [[event.to_dict() for event in events] for events in self.alternatives]
        return {**super().to_dict(), "alternatives": alternatives}

    @classmethod
    def from_dict(cls, data: Json) -> Self:
        """The event that `to_dict` wrote."""
        kinds: dict[str, type[Gaussian | ZCDP]] = {Gaussian.kind: Gaussian, ZCDP.kind: ZCDP}
        alternatives = tuple(
            tuple(kinds[event["kind"]].from_dict(event) for event in events) for events in data["alternatives"]
        )
        return cls(data["label"], data["eta"], data["gamma"], alternatives)


@dataclass(frozen=True)
class RenyiCurve(Event):
    """A step of (orders[i], epsilons[i])-Renyi DP for every i.

    A curve that depends on the private rows, as PATE's does, is private itself: it must be smoothed before it enters a
    ledger that is published.
    """

    kind = "renyi_curve"
    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.orders or len(self.orders) != len(self.epsilons):
            raise ValueError(f"{self.label}: {len(self.orders)} orders, but {len(self.epsilons)} epsilons")
        if not (min(self.orders) > 1 and min(self.epsilons) >= 0):
            raise ValueError(f"{self.label}: orders must be greater than 1, and their epsilons not negative")

    def rdp(self, orders: Floats) -> Floats:
        """At its own orders; infinite at others."""
        known = dict(zip(self.orders, self.epsilons, strict=True))
        return np.array([known.get(float(order), math.inf) for order in orders])


def renyi_epsilon(events: Sequence[Event], delta: float) -> float:
    """eps at delta of all events together, by their Renyi DP at the orders that all curves share; infinite without one.

    Sampled Gaussians need integer orders.
    """
    curves = [set(event.orders) for event in events if isinstance(event, RenyiCurve)]
    orders = np.array(sorted(set.intersection(*curves)) if curves else [], dtype=float)
    if not orders.size:
        return math.inf
    rdp = np.sum([event.rdp(orders) for event in events], axis=0)
    return max(float(_epsilons(rdp, orders, delta).min()), 0.0)


def random_search_epsilon(search: RandomSearch, delta: float) -> float:
    """eps at delta of the released run (Papernot and Steinke 2021, Theorem 2).

    If one run is (lambda, eps)-RDP and (l, e)-RDP, the released one is (lambda, eps')-RDP with

        eps' = eps + (1 + eta) (1 - 1/l) e + (1 + eta) log(1/gamma) / l + log(E[K]) / (lambda - 1).

    One run draws a setting first, then its noise: at each order its eps is at most the largest of its alternatives'.
    """
    return _search(search, delta)[0]


def random_search_orders(search: RandomSearch, delta: float) -> tuple[float, float]:
    """The orders (lambda, l) of Theorem 2 at which `random_search_epsilon` is attained."""
    return _search(search, delta)[1:]


@lru_cache(maxsize=64)
def _search(search: RandomSearch, delta: float) -> tuple[float, float, float]:
    runs = [sum((event.rdp(ORDERS) for event in run), np.zeros(len(ORDERS))) for run in search.alternatives]
    run = np.max(runs, axis=0)
    penalties = (1 + search.eta) * ((1 - 1 / ORDERS) * run - math.log(search.gamma) / ORDERS)
    rdp = run + penalties.min() + math.log(search.mean) / (ORDERS - 1)
    epsilons = _epsilons(rdp, ORDERS, delta)
    return max(float(epsilons.min()), 0.0), float(ORDERS[epsilons.argmin()]), float(ORDERS[penalties.argmin()])


def _epsilons(rdp: Floats, orders: Floats, delta: float) -> Floats:
    """eps at delta by each of the orders (Canonne, Kamath, Steinke 2020, Proposition 12)."""
    epsilons: Floats = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return epsilons
