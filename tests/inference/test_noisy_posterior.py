"""The density of NAPSU-MQ: its gradient, mode and calibration."""

from itertools import combinations

import numpy as np
import pytest

from dpbench.inference.hamiltonian import hamiltonian
from dpbench.inference.max_entropy import MaxEntropy
from dpbench.inference.noisy_posterior import NoisyPosterior

SIZES = {"a": 3, "b": 2, "c": 2}
FAMILY = MaxEntropy(SIZES, tuple(combinations(SIZES, 2)))
UNIFORM = FAMILY.distribution(np.zeros(FAMILY.parameters))


def posterior(theta, rng, *, n=1000, sd=5.0, n_sd=0.0, scale=1.0):
    """That of n rows of the distribution at theta, with noise on their sums and on n."""
    counts = rng.multinomial(n, FAMILY.distribution(theta).ravel()).reshape(UNIFORM.shape)
    s = FAMILY.mean(counts.astype(float)) + rng.normal(0, sd, FAMILY.parameters)
    variances = np.full(FAMILY.parameters, sd**2)
    return NoisyPosterior(FAMILY, s, variances, n + n_sd * rng.normal(), n_sd**2, scale, UNIFORM)


def test_the_gradient_is_that_of_the_density():
    rng = np.random.default_rng(0)
    density = posterior(rng.normal(size=FAMILY.parameters), rng, n_sd=30.0)
    theta, towards = rng.normal(size=(2, FAMILY.parameters))
    step = 1e-5 * towards
    difference = (density(theta + step)[0] - density(theta - step)[0]) / 2e-5
    assert density(theta)[1] @ towards == pytest.approx(difference, rel=1e-6)


def test_at_the_mode_the_gradient_is_zero_and_without_noise_it_has_the_moments():
    rng = np.random.default_rng(1)
    density = posterior(np.zeros(FAMILY.parameters), rng, n=100_000, sd=1e-3, scale=1e3)
    mode, found = density.mode()
    assert np.abs(found(mode)[1]).max() < 1e-3
    np.testing.assert_allclose(100_000 * FAMILY.mean(FAMILY.distribution(mode)), density.s, atol=1e-2)


@pytest.mark.slow
def test_ranks_of_parameters_drawn_from_the_prior_are_uniform():
    """Simulation-based calibration (Talts et al. 2018): 150 parameters from the prior, each with a chain of 99 draws.

    The ranks in ten bins have a chi-squared distribution with nine degrees of freedom: by chance it is above 27.9 with
    a probability of 0.001, for each of the three quantities, 0.003 in all. Without the privacy noise in C they are not
    uniform.
    """
    assert max(_chi_squared(blind=False)) < 27.9
    assert max(_chi_squared(blind=True)) > 100


def _chi_squared(*, blind):
    rng, k, runs = np.random.default_rng(2), FAMILY.parameters, 150
    ranks = np.empty((runs, 3), dtype=int)
    probe = rng.normal(size=k) / np.sqrt(k)
    for i in range(runs):
        theta = 0.5 * rng.normal(size=k)
        density = posterior(theta, rng, n=2000, sd=30.0, n_sd=20.0, scale=0.5)
        if blind:
            density = NoisyPosterior(FAMILY, density.s, 1e-6 * density.variances, density.n, 0.0, 0.5, UNIFORM)
        mode, fixed = density.mode()
        root = np.linalg.inv(np.linalg.cholesky(fixed.information + np.eye(k) / 0.5**2)).T
        draws = hamiltonian(fixed, mode, root, rng, warmup=40, count=99, steps=5).draws
        for j, of in enumerate((lambda x: x[..., 0], lambda x: x @ probe, lambda x: x[..., -1])):
            ranks[i, j] = (of(draws) < of(theta)).sum()
    counts = np.stack([np.bincount(ranks[:, j] // 10, minlength=10) for j in range(3)])
    return ((counts - runs / 10) ** 2 / (runs / 10)).sum(axis=1)
