"""Composition of a ledger's events by privacy loss distributions (Koskela, Jalko, Honkela 2020; `dp-accounting`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dpbench.privacy.budget import Event

Part = tuple[str, float, float]  # gaussian, laplace or pure; multiplier; rate
INTERVAL = 1e-4  # of the grid of privacy losses; the default of dp-accounting
LARGEST_EPSILON = 50.0  # a distribution on a grid of this interval takes memory in proportion
RELATIVE_INTERVAL = 0.1  # the same beside the standard deviation of one step: eps comes out up to 0.1% too large
MOST_EVENTS = 10**6  # the grid's size grows with their number
LEAST_MULTIPLIER = 0.2  # of sampled Gaussians: below, no central limit is near, and the grid is far too coarse


def tractable(events: Sequence[Event], epsilon: float) -> bool:
    """Whether a distribution of these events, of which `epsilon` is a bound at hand, can be had and is of use."""
    sampled = [event for event in events if event.rate < 1]
    if not sampled:
        return epsilon <= LARGEST_EPSILON
    few = sum(event.count for event in events) <= MOST_EVENTS
    return math.isfinite(epsilon) and few and min(event.multiplier for event in sampled) >= LEAST_MULTIPLIER


def composed_epsilon(events: Sequence[Event], delta: float) -> float:
    """eps at delta of all events together, rounded up; infinite where delta is below what the arithmetic can tell.

    Gaussian events in which all rows took part are one Gaussian. A sampled Gaussian is the mixture that Poisson
    sampling makes of it, for a record that is added and for one that is removed. Selections enter as eps-DP.
    """
    return float(_composed(events).get_epsilon_for_delta(delta))


def composed_delta(events: Sequence[Event], epsilon: float) -> float:
    """delta at eps of all events together: `composed_epsilon` is at most eps where this is at most delta."""
    return float(_composed(events).get_delta_for_epsilon(epsilon))


def central_limit_mu(events: Sequence[Event]) -> float:
    """mu of the Gaussian DP to which many events tend (Bu, Dong, Long and Su 2020, for Poisson sampling).

    mu^2 = sum of rate^2 (exp(1 / multiplier^2) - 1) for sampled Gaussians, 2 rho for other events. No bound: a guide.
    """
    return math.sqrt(math.fsum(event.count * _squared_mu(event) for event in events))


def _squared_mu(event: Event) -> float:
    return 2 * event.rho if event.rate == 1 else event.rate**2 * math.expm1(1 / event.multiplier**2)


def _composed(events: Sequence[Event]) -> Any:
    """The privacy loss distribution of all events."""
    parts: dict[Part, int] = {}
    rho = math.fsum(event.count * event.rho for event in events if event.kind == "gaussian" and event.rate == 1)
    if rho > 0:
        parts["gaussian", 1 / math.sqrt(2 * rho), 1.0] = 1
    for event in events:
        if event.kind != "gaussian" or event.rate < 1:
            part = _part(event)
            parts[part] = parts.get(part, 0) + event.count
    interval = INTERVAL
    if any(event.rate < 1 for event in events):
        interval = RELATIVE_INTERVAL * central_limit_mu(events) / math.sqrt(sum(parts.values()))
    return _distribution(tuple(parts.items()), interval)


def _part(event: Event) -> Part:
    if event.kind in ("gaussian", "laplace", "pure"):
        return event.kind, event.multiplier, event.rate
    return "pure", event.multiplier / 2, 1.0


@lru_cache(maxsize=16)
def _distribution(parts: tuple[tuple[Part, int], ...], interval: float) -> Any:
    """The distribution of dp-accounting of all parts, each so many times."""
    whole, *others = (_single(part, interval).self_compose(count) for part, count in parts)
    for other in others:
        whole = whole.compose(other)
    return whole


def _single(part: Part, interval: float) -> Any:
    """The distribution of one event."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    kind, multiplier, rate = part
    if kind == "gaussian":
        return pld.from_gaussian_mechanism(multiplier, sampling_prob=rate, value_discretization_interval=interval)
    if kind == "laplace":
        return pld.from_laplace_mechanism(multiplier, value_discretization_interval=interval)
    pure = pld.common.DifferentialPrivacyParameters(1 / multiplier, 0.0)
    return pld.from_privacy_parameters(pure, value_discretization_interval=interval)
