"""Composition of a ledger's events by privacy loss distributions (Koskela, Jalko, Honkela 2020; `dp-accounting`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.events import Event, Gaussian

Parts = tuple[tuple[Event, int], ...]
INTERVAL = 1e-4  # of the grid of privacy losses; the default of dp-accounting
LARGEST_EPSILON = 50.0  # a distribution on a grid of this interval takes memory in proportion
RELATIVE_INTERVAL = 0.1  # the same relative to the standard deviation of one step: eps comes out up to 0.1% too large
MOST_EVENTS = 10**6  # the grid's size grows with their number
LEAST_MULTIPLIER = 0.2  # of sampled Gaussians: below, no central limit is near, and the grid is far too coarse


def tractable(events: Sequence[Event], epsilon: float) -> bool:
    """Whether the distribution of these events, with the known bound `epsilon`, can be computed and is useful."""
    sampled = [event for event in events if isinstance(event, (Gaussian, BatchGaussian)) and event.rate < 1]
    if not sampled:
        return epsilon <= LARGEST_EPSILON
    few = sum(event.count for event in events) <= MOST_EVENTS
    return math.isfinite(epsilon) and few and min(event.multiplier for event in sampled) >= LEAST_MULTIPLIER


def composed_epsilon(events: Sequence[Event], delta: float) -> float:
    """eps at delta of all events together, rounded up; infinite where delta is below the precision of the arithmetic.

    Gaussian events in which all rows took part are one Gaussian. A sampled Gaussian is the mixture due to Poisson
    sampling, for a record that is added and for one that is removed. Selections enter as eps-DP.
    """
    return _epsilon(*_parts(events), delta)


def composed_delta(events: Sequence[Event], epsilon: float) -> float:
    """delta at eps of all events together: `composed_epsilon` is at most eps where this is at most delta."""
    return float(_distribution(*_parts(events)).get_delta_for_epsilon(epsilon))


def central_limit_mu(events: Sequence[Event]) -> float:
    """mu of the Gaussian DP to which many events tend (Bu, Dong, Long and Su 2020, for Poisson sampling).

    mu^2 = sum of rate^2 (exp(1 / multiplier^2) - 1) for sampled Gaussians, 2 rho for other events. An approximation,
    not a bound.
    """
    return math.sqrt(math.fsum(event.count * _squared_mu(event) for event in events))


def _squared_mu(event: Event) -> float:
    if isinstance(event, Gaussian) and event.rate < 1:
        return event.rate**2 * math.expm1(1 / event.multiplier**2)
    if isinstance(event, BatchGaussian):  # no more than if the record were in each batch
        return min(event.rate**2 * math.expm1(1 / event.multiplier**2), 1 / event.multiplier**2)
    return 2 * event.rho


def _parts(events: Sequence[Event]) -> tuple[Parts, float]:
    """The events, each with how often it occurs, and the interval of the grid."""
    parts: dict[Event, int] = {}
    rho = math.fsum(event.count * event.rho for event in events if _all_rows(event))
    if rho > 0:
        parts[Gaussian("", 1.0, 1 / math.sqrt(2 * rho))] = 1
    for event in events:
        if not _all_rows(event):
            parts[event.once] = parts.get(event.once, 0) + event.count
    interval = INTERVAL
    if any(event.rate < 1 for event in events):
        interval = RELATIVE_INTERVAL * central_limit_mu(events) / math.sqrt(sum(parts.values()))
    return tuple(parts.items()), interval


def _all_rows(event: Event) -> bool:
    return isinstance(event, Gaussian) and event.rate == 1


@lru_cache(maxsize=1024)
def _epsilon(parts: Parts, interval: float, delta: float) -> float:
    return float(_distribution(parts, interval).get_epsilon_for_delta(delta))


@lru_cache(maxsize=16)
def _distribution(parts: Parts, interval: float) -> Any:
    """The distribution, by dp-accounting, of all parts, each composed `count` times.

    Neighbours are composed, then these pairs, and so on: hundreds of parts one after another, as DualQuery has them,
    would each be convolved with all before it.
    """
    level = [event.loss(interval).self_compose(count) for event, count in parts]
    while len(level) > 1:
        last = level[-1:] if len(level) % 2 else []
        level = [one.compose(two) for one, two in zip(level[::2], level[1::2], strict=False)] + last
    return level[0]
