"""The posterior given rows: against sums over a grid, under its prior alone, and with rows that say much."""

import numpy as np
import pytest
from scipy.stats import chi2, ks_1samp, poisson

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UnconvergedError, UserError
from dpbench.models.bayesian_rows import bayesian_rows, metropolis
from dpbench.models.posterior_fit import ess_bulk, r_hat
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows

FAMILIES = ("logistic", "poisson")
X = Attribute.binned("x", -1, 1, 8)
LABEL, COUNT = Attribute.categorical("y", "ab"), Attribute.discrete("y", range(8))


def simulated(family, n, theta, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, len(theta)))
    s = features @ theta
    if family == "logistic":
        return features, np.where(rng.random(n) < 1 / (1 + np.exp(-s)), 1.0, -1.0)
    return features, rng.poisson(np.logaddexp(0, s)).astype(float)


def on_grid(features, y, family, largest):
    """Mean (2,) and standard deviation (2,) of the posterior of theta, by a sum over a fine grid of the disc."""
    side = np.linspace(-largest, largest, 181)
    theta = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = theta[(theta**2).sum(axis=1) <= largest**2]
    s = theta @ features.T
    if family == "logistic":
        log = -np.log1p(np.exp(-y * s)).sum(axis=1)
    else:
        log = poisson.logpmf(y, np.log1p(np.exp(s))).sum(axis=1)
    log = log - (theta**2).sum(axis=1) / 2
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ theta
    return mean, np.sqrt(weight @ (theta - mean) ** 2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "largest"), [(30, 3.0), (30, 0.8), (400, 3.0)])
def test_moments_are_those_of_sums_over_a_grid(family, n, largest):
    """Means and deviations of 40,000 draws, whose effective number is above 5,000: within 5 standard errors."""
    features, y = simulated(family, n, np.array([0.5, -0.3]))
    rng = np.random.default_rng(1)
    draws, _ = metropolis(features, y, family, rng, largest_norm=largest, chains=4, draws=10_000)
    assert ess_bulk(draws).min() > 5000
    mean, sd = on_grid(features, y, family, largest)
    assert np.abs(draws.mean(axis=(0, 1)) - mean).max() < 5 * sd.max() / np.sqrt(5000)
    assert draws.std(axis=(0, 1)) == pytest.approx(sd, rel=5 / np.sqrt(2 * 5000))
    assert np.linalg.norm(draws, axis=2).max() <= largest


def test_without_rows_it_is_the_prior():
    """||theta||^2 is chi^2(3) cut off at 4 (Kolmogorov-Smirnov on every fourth draw, error rate 1e-4)."""
    rng = np.random.default_rng(0)
    draws, _ = metropolis(np.empty((0, 3)), np.empty(0), "logistic", rng, largest_norm=2.0, chains=2, draws=8000)
    squared = (draws[:, ::4] ** 2).sum(axis=2).ravel()
    assert ks_1samp(squared, lambda x: chi2.cdf(x, 3) / chi2.cdf(4, 3)).pvalue > 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_proposals_fit_ten_coefficients_of_many_rows(family):
    theta = np.linspace(-0.5, 0.5, 10)
    features, y = simulated(family, 2000, theta)
    draws, accepted = metropolis(features, y, family, np.random.default_rng(0), largest_norm=3.0, chains=4, draws=1000)
    assert accepted > 0.5
    assert r_hat(draws).max() < 1.02
    assert np.all(np.abs(draws.mean(axis=(0, 1)) - theta) < 5 * draws.std(axis=(0, 1)))


def release(codes, target=LABEL):
    table = Table(Domain((X, target)), np.asarray(codes))
    return Release(table.domain, Budget(np.inf), Ledger(), (SyntheticRows(table),)), Design(table.domain, "y")


def test_one_class_only_has_a_posterior_and_others_of_the_target_are_named():
    given, design = release([[k % 8, 1] for k in range(40)])
    fit = bayesian_rows(given, design=design, rng=np.random.default_rng(0))
    assert fit.coefficients[1] > 1  # the intercept: all labels are +1
    assert fit.notes["r_hat"] < 1.01
    assert np.linalg.norm(fit.draws, axis=1).max() <= 3 + 1e-6
    for family, message in [("poisson", "whole numbers"), ("probit", "unknown family")]:
        with pytest.raises(UserError, match=message):
            bayesian_rows(given, design=design, rng=np.random.default_rng(0), family=family)
    counted, design = release([[k % 8, k % 3] for k in range(40)], COUNT)
    assert bayesian_rows(counted, design=design, rng=np.random.default_rng(0), family="poisson").draws.shape == (
        4000,
        2,
    )


def test_a_bound_that_shuts_out_the_mode_is_unconverged():
    features, y = simulated("logistic", 5000, np.array([2.0, -1.0]))
    table = np.column_stack([np.clip((features[:, 0] + 2) * 2, 0, 7).astype(int), y > 0])
    given, design = release(table)
    with pytest.raises(UnconvergedError, match="have not converged"):
        bayesian_rows(given, design=design, rng=np.random.default_rng(0), largest_norm=0.3)
