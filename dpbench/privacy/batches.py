"""Gaussian noise on queries of batches of a fixed size, between tables of which one record is replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpbench.data.domain import Floats
from dpbench.privacy.events import Event
from dpbench.privacy.root_finding import root

TAIL = math.exp(-50)  # of a privacy loss distribution, given up to infinity; the default of dp-accounting


@dataclass(frozen=True)
class BatchGaussian(Event):
    """N(0, (multiplier * sensitivity)^2) in each entry of a query of `batch` of n = `rows` rows, drawn uniformly.

    With `replacement` or without it. One record is replaced, so that n is public. The query changes by k times the
    sensitivity at most, in the l2 norm, where the record was drawn k times. `rate` is the probability that it was.
    """

    kind, norm = "gaussian_batch", "l2"
    sensitivity: float
    multiplier: float
    rows: int
    batch: int
    replacement: bool
    count: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.rows >= 1 and self.batch >= 1 and (self.replacement or self.batch <= self.rows)):
            raise ValueError(f"{self.label}: no batch of {self.batch} can be drawn from {self.rows} rows")

    @property
    def rate(self) -> float:
        """1 - (1 - 1/n)^batch; batch / n without replacement."""
        return 1 - (1 - 1 / self.rows) ** self.batch if self.replacement else self.batch / self.rows

    @property
    def mu(self) -> float:
        """1 / multiplier, for each place of a batch that one record may take."""
        return (self.batch if self.replacement else 1) / self.multiplier

    @property
    def once(self) -> BatchGaussian:
        """With its batch."""
        return replace(self, label="", sensitivity=1.0, count=1)

    def loss(self, interval: float) -> Any:
        """That of a pair of distributions with this `profile`, which dominates a step (Zhu, Dong and Wang 2022)."""
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        def excess(epsilon: float) -> float:
            return float(self.profile(np.array([epsilon]))[0]) - TAIL

        top = math.ceil(root(excess, 0.0, 1.0, rising=False) / interval)
        epsilons = np.linspace(0.0, top * interval, top + 1)
        above = self.profile(epsilons)
        below = 1 - np.exp(-epsilons[:0:-1]) * (1 - above[:0:-1])  # the relation is symmetric
        deltas = np.concatenate([below, above])
        return PrivacyLossDistribution(
            pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -top, top, deltas)
        )

    def profile(self, epsilons: Floats) -> Floats:
        """A bound on delta at eps' >= 0 for one step (Balle, Barthe and Gaboardi 2018). The record is drawn K times:

            delta(eps') <= sum over k >= 1 of P(K = k) delta_k(eps),     e^eps' = 1 + q (e^eps - 1), q = P(K >= 1),

        with delta_k that of a Gaussian whose mean moves by k sensitivities. Proof. The distributions of the answer are
        (1 - q) P0 + q P1 and (1 - q) P0 + q Q1, and (1 - q) P0 + q P1 - e^eps' ((1 - q) P0 + q Q1) = q (P1 - e^eps R)
        with R = (1 - b) P0 + b Q1, b = e^(eps' - eps). Given K = k, batches of P1 differ from the corresponding ones of
        P0 and Q1 in k places.
        """
        inner = epsilons + np.log1p(-np.expm1(-epsilons) * (1 / self.rate - 1))
        total: Floats = np.sum([p * _gaussian_deltas(inner, k / self.multiplier) for k, p in self._draws], axis=0)
        return total

    @property
    def _draws(self) -> Sequence[tuple[int, float]]:
        """k and P(K = k) for k >= 1; K is binomial, or at most 1 without replacement."""
        return _times_drawn(self.batch, self.rows) if self.replacement else ((1, self.rate),)


@lru_cache(maxsize=64)
def _times_drawn(batch: int, rows: int) -> Sequence[tuple[int, float]]:
    """k and P(K = k) for k >= 1, K binomial; the calibration of the noise asks for them hundreds of times."""
    from scipy.stats import binom

    found, k = [], 1
    while k <= batch and (rest := float(binom.sf(k - 1, batch, 1 / rows))) > TAIL:
        found.append((k, float(binom.pmf(k, batch, 1 / rows))))
        k += 1
    if k <= batch:
        found.append((batch, rest))  # the largest of the others bounds them
    return tuple(found)


def _gaussian_deltas(epsilons: Floats, mu: float) -> Floats:
    """`accounting.gaussian_delta` of many eps, with a small relative error in the tails too."""
    from scipy.special import log_ndtr

    upper, lower = log_ndtr(mu / 2 - epsilons / mu), log_ndtr(-mu / 2 - epsilons / mu)
    deltas: Floats = -np.exp(upper) * np.expm1(np.minimum(epsilons + lower - upper, 0.0))
    return deltas
