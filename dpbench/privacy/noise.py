"""The only place where noise is drawn. Each call writes what it drew into the ledger.

Noise is sampled in double precision: the guarantee is that of the real-valued mechanism, not of its last bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpbench.data.domain import Floats
from dpbench.privacy.budget import Event, Ledger


def gaussian(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + N(0, (multiplier * sensitivity)^2) in each entry: 1/multiplier-Gaussian DP.

    `sensitivity` bounds the l2 norm of the change of the whole `value` between neighbours.
    """
    ledger.record(Event("gaussian", label, sensitivity, multiplier))
    exact = np.asarray(value, dtype=float)
    return exact + rng.normal(0.0, multiplier * sensitivity, size=exact.shape)


def laplace(
    rng: np.random.Generator, ledger: Ledger, value: ArrayLike, *, sensitivity: float, multiplier: float, label: str
) -> Floats:
    """value + Laplace(multiplier * sensitivity) in each entry: (1/multiplier)-DP; `sensitivity` is in the l1 norm."""
    ledger.record(Event("laplace", label, sensitivity, multiplier))
    exact = np.asarray(value, dtype=float)
    return exact + rng.laplace(0.0, multiplier * sensitivity, size=exact.shape)


def exponential_mechanism(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index drawn with weight exp(epsilon score / (2 sensitivity)): epsilon-DP and epsilon^2/8-zCDP.

    Drawn in log space as the largest of the scores with Gumbel noise. `sensitivity` bounds the change of any score.
    """
    ledger.record(Event("exponential", label, sensitivity, 2 / epsilon))
    logits = np.asarray(scores, dtype=float) * (epsilon / (2 * sensitivity))
    return int(np.argmax(logits + rng.gumbel(size=logits.shape)))


def permute_and_flip(
    rng: np.random.Generator, ledger: Ledger, scores: ArrayLike, *, sensitivity: float, epsilon: float, label: str
) -> int:
    """An index by permute-and-flip (McKenna and Sheldon 2020): epsilon-DP, hence epsilon^2/2-zCDP, and no better.

    Equal in law to the largest of the scores with exponential noise (Ding et al. 2021).
    """
    ledger.record(Event("permute_and_flip", label, sensitivity, 2 / epsilon))
    logits = np.asarray(scores, dtype=float) * (epsilon / (2 * sensitivity))
    return int(np.argmax(logits + rng.exponential(size=logits.shape)))


def objective_noise(
    rng: np.random.Generator,
    ledger: Ledger,
    size: int,
    *,
    sensitivity: float,
    multiplier: float,
    offset: float,
    label: str,
) -> Floats:
    """b (size,) ~ N(0, (multiplier * sensitivity)^2 I), the linear term of a perturbed objective.

    `sensitivity` bounds the l2 norm of the gradient of one record's loss; `accounting.objective_epsilon` says what
    the whole costs.
    """
    ledger.record(Event("objective", label, sensitivity, multiplier, offset=offset))
    return rng.normal(0.0, multiplier * sensitivity, size=size)


def unperturbed(ledger: Ledger, value: ArrayLike, *, label: str) -> Floats:
    """The value itself, with its infinite cost in the ledger: for the non-private reference."""
    ledger.record(Event("exact", label, 1.0, 0.0))
    return np.asarray(value, dtype=float)
