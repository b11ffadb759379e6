"""Objective perturbation in one dimension, where theta's distribution is known: what its audits share.

Theta solves b(theta) = b, where b ~ N(0, sigma^2) and b(theta) falls, so that its density is that of b at b(theta),
times |b'(theta)|.
"""

import numpy as np
from scipy.stats import norm


def theta_of(b, b_of, reach, *, halvings):
    """The theta between -reach and reach at each b, by bisection."""
    low, high = np.full(b.shape, -reach), np.full(b.shape, reach)
    for _ in range(halvings):
        middle = (low + high) / 2
        above = b_of(middle) > b
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def delta_of(z, loss, epsilon):
    """E max(0, 1 - exp(epsilon - loss)), loss the log ratio of two densities of theta at each b / sigma = z."""
    return np.trapezoid(norm.pdf(z) * np.maximum(1 - np.exp(epsilon - loss), 0), z)
