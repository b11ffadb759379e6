"""X'X and X'y with Gaussian noise: as it should be. The others here are this one, with one thing wrong."""

from dataclasses import replace

from dpbench.data.encode import second_moments
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_cross, of_gram
from dpbench.releases import Release, SufficientStatistics


def honest(train, budget, rng, *, design, scale=1.0, dear=1.0, label="X'X", diagnostics=None, unpaid=()):
    """`scale`: of the sensitivities. `dear`: how many times too much of Gaussian DP is spent."""
    ledger, (xtx, xty) = Ledger(), second_moments(*design.encode(train))
    multiplier = 2**0.5 / (dear * gaussian_mu(budget.epsilon, budget.delta))
    one, two = scale * of_gram(design, budget.relation), scale * of_cross(design, budget.relation)
    noisy = gaussian(rng, ledger, xtx, sensitivity=one, multiplier=multiplier, label=label)
    noisy_y = gaussian(rng, ledger, xty, sensitivity=two, multiplier=multiplier, label="X'y")
    part = SufficientStatistics((noisy + noisy.T) / 2, noisy_y, one * multiplier, two * multiplier)
    return Release(train.domain, budget, ledger, (part,), diagnostics or {}, tuple(unpaid))


def with_statistics(release, **arrays):
    """The release with these arrays in place of its own."""
    return replace(release, parts=(replace(release.parts[0], **arrays),))
