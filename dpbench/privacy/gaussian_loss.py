"""The privacy loss distribution of Gaussian noise on a grid, in a fraction of the time that dp-accounting takes for it.

It is the same: Algorithm 1 of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the Dots", arXiv
2207.04380, composed with itself by a fast Fourier transform, its tails cut by Chernoff bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution, privacy_loss_mechanism
from scipy import fft

from dpbench.data.domain import Floats

Adjacency = privacy_loss_mechanism.AdjacencyType
ORDERS = 20  # of the Chernoff bounds of a tail
ROUNDING = 1e-12  # by which deltas may rise
SPARSE = 1000  # losses of a grid, up to which dp-accounting keeps a dictionary


def gaussian_loss(multiplier: float, rate: float, interval: float) -> Any:
    """What `from_gaussian_mechanism` of dp-accounting gives, to the bit.

    There a dictionary holds the probabilities, and without sampling each place is computed by Python, though the loss
    is linear in the answer.
    """
    both = (Adjacency.REMOVE, Adjacency.ADD) if rate < 1 else (Adjacency.REMOVE,)
    return privacy_loss_distribution.PrivacyLossDistribution(*(_pmf(multiplier, rate, interval, one) for one in both))


def _pmf(multiplier: float, rate: float, interval: float, adjacency: Any) -> Any:
    noise = privacy_loss_mechanism.GaussianPrivacyLoss(multiplier, sampling_prob=rate, adjacency_type=adjacency)
    bounds = noise.connect_dots_bounds()
    lower, upper = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    epsilons = np.arange(lower, upper + 1) * interval
    if rate < 1:
        deltas = noise.get_delta_for_epsilon(epsilons)
    else:
        at = noise.inverse_privacy_loss(epsilons)
        deltas = np.clip(noise.mu_upper_cdf(at) - np.exp(epsilons + noise.mu_lower_log_cdf(at)), 0, 1)
    return connected(interval, lower, deltas)


def connected(interval: float, lower: int, deltas: Floats) -> Any:
    """The probabilities of the losses `lower * interval` and on, of a distribution with these deltas there.

    What `create_pmf_pessimistic_connect_dots_fixed_gap` of dp-accounting gives, to the bit.
    """
    if len(deltas) == 1:
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, lower, deltas)
    if np.any(np.diff(deltas) > ROUNDING) or deltas.min() < 0 or deltas.max() > 1:
        raise ValueError("the deltas of a privacy loss must fall, and lie between 0 and 1")
    deltas = np.minimum.accumulate(deltas)
    steps = np.diff(deltas)
    first = 1 - deltas[0] + steps[0] / math.expm1(interval)
    inner = (steps[1:] - steps[:-1] * math.exp(interval)) / math.expm1(interval)
    probabilities = np.maximum(0.0, np.concatenate([[first], inner, [steps[-1] / math.expm1(-interval)]]))
    return (_Sparse if len(deltas) <= SPARSE else _Dense)(interval, lower, probabilities, deltas[-1])


class _Dense(pld_pmf.DensePLDPmf):  # type: ignore[misc]  # it has no types
    """Probabilities from the loss `lower * interval` on."""

    def __init__(self, interval: float, lower: int, probabilities: Floats, infinity: float) -> None:
        super().__init__(interval, lower, probabilities, infinity, pessimistic_estimate=True)
        self.given = interval, lower, probabilities, infinity

    def self_compose(self, num_times: int, tail_mass_truncation: float = 1e-15) -> Any:
        interval, lower, probabilities, infinity = self.given
        first, last = tails(probabilities, num_times, tail_mass_truncation)
        length = fft.next_fast_len(max(last - first + 1, len(probabilities)))
        composed = np.real(fft.ifft(fft.fft(probabilities, length) ** num_times))
        kept = np.roll(composed, -first)[: last - first + 1]
        infinite = tail_mass_truncation - math.expm1(num_times * math.log1p(-infinity))
        return pld_pmf.DensePLDPmf(interval, lower * num_times + first, kept, infinite, pessimistic_estimate=True)


class _Sparse(pld_pmf.SparsePLDPmf):  # type: ignore[misc]
    """The same as a dictionary, as whose products few of them are composed."""

    def __init__(self, interval: float, lower: int, probabilities: Floats, infinity: float) -> None:
        by_loss = dict(enumerate(probabilities, lower))
        super().__init__(by_loss, interval, infinity, pessimistic_estimate=True)
        self.given = interval, lower, probabilities, infinity

    def to_dense_pmf(self) -> _Dense:
        return _Dense(*self.given)


def tails(probabilities: Floats, count: int, mass: float) -> tuple[int, int]:
    """The first and last index of the distribution composed `count` times, outside of which there is at most `mass`.

    By Chernoff's bound at several orders k / n. Its sums over i of p_i exp(k i / n) are made one from another by a
    product here, not by the logarithm of a sum of exponentials for each.
    """
    n, first, last = len(probabilities), 0, (len(probabilities) - 1) * count
    for sign in (1, -1):
        step = np.exp(sign * np.arange(n) / n)
        weighted = np.asarray(probabilities)
        for k in range(1, ORDERS + 1):
            weighted = weighted * step
            bound = (count * math.log(weighted.sum()) + math.log(2 / mass)) * n / k
            if sign > 0:
                last = min(last, math.ceil(bound))
            else:
                first = max(first, math.floor(-bound))
    return first, last
