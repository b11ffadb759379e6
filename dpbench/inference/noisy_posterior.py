"""The posterior of a maximum-entropy distribution given noisy sums of its canonical queries (NAPSU-MQ)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .max_entropy import MaxEntropy
from .measurements import Array

MOST_STEPS, ENOUGH = 100, 1e-4  # of Fisher scoring; it ends where a step would gain less than this, in log density
LEAST_STEP = 2.0**-20


@dataclass(frozen=True)
class NoisyPosterior:
    """log p(theta | s), up to a constant: -r' C^-1 r / 2 - ||theta||^2 / (2 scale^2), r = s - n E b.

    s (k,) is the sum of b over n rows, plus noise of these `variances` (k,); n has an error of the variance
    `n_variance`, 0 where it is public. C is the covariance of s given theta, n Cov b + diag(variances) + n_variance (E
    b)(E b)', at the distribution `at`.
    """

    family: MaxEntropy
    s: Array
    variances: Array
    n: float
    n_variance: float
    scale: float
    at: Array

    @cached_property
    def covariance(self) -> Array:
        """Cov b (k, k) at `at`."""
        return self.family.covariance(self.at)

    @cached_property
    def precision(self) -> Array:
        """C^-1 (k, k)."""
        mean = self.family.mean(self.at)
        total = self.n * self.covariance + np.diag(self.variances) + self.n_variance * np.outer(mean, mean)
        return np.linalg.inv(total).astype(np.float64, copy=False)

    @cached_property
    def information(self) -> Array:
        """n^2 Cov b C^-1 Cov b (k, k), the expected information on theta at `at`."""
        return self.n**2 * self.covariance @ self.precision @ self.covariance

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The log density and its gradient, whose first part is n Cov(b, u'b) with u = C^-1 r."""
        p = self.family.distribution(theta)
        mean = self.family.mean(p)
        r = self.s - self.n * mean
        u = self.precision @ r
        weighted = p * self.family.logits(u)
        slope = self.n * (self.family.mean(weighted) - mean * weighted.sum()) - theta / self.scale**2
        return -float(r @ u + theta @ theta / self.scale**2) / 2, slope

    def mode(self) -> tuple[Array, NoisyPosterior]:
        """theta (k,) by Fisher scoring from 0, and the density whose C is that at this theta."""
        theta, density = np.zeros(len(self.s)), self
        for _ in range(MOST_STEPS):
            density = replace(self, at=self.family.distribution(theta))
            value, slope = density(theta)
            step = np.linalg.solve(density.information + np.eye(len(theta)) / self.scale**2, slope)
            gain, size = float(slope @ step), 1.0
            while size > LEAST_STEP and not density(theta + size * step)[0] >= value + 1e-4 * size * gain:
                size /= 2
            theta = theta + size * step
            if gain <= ENOUGH:
                break
        return theta, replace(self, at=self.family.distribution(theta))
