"""Intervals from unbiased marginals: the covariance of the noise is exact, and they cover what they say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.inference.residuals import centred
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.mechanisms.residual_planner import residual_planner
from dpbench.models import marginal_intervals
from dpbench.models.marginal_intervals import linear_marginals_intervals
from dpbench.privacy.budget import Budget

MECHANISMS = [gaussian_marginals, residual_planner]
DOMAIN = Domain(
    (
        Attribute.discrete("a", range(4)),
        Attribute.categorical("b", "uvw"),
        Attribute.categorical("c", "st"),
        Attribute.discrete("y", range(9)),
    )
)
DESIGN = Design(DOMAIN, "y", scaled=False)
BETA = np.array([1.0, -1.0, 0.5, 0.5, 2.0])  # a, b=v, b=w, c=t, intercept
LEVEL = 0.9


def simulate(n: int, rng: np.random.Generator) -> Table:
    """E[y | x] = x beta, and y is between 0 and 8."""
    a, b, c = rng.integers(0, 4, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    mean = 2.0 + a - (b == 1) + 0.5 * (b == 2) + 0.5 * c
    return Table(DOMAIN, np.stack([a, b, c, rng.binomial(8, mean / 8)], axis=1))


def made(mechanism, table, seed, epsilon=1.0, relation="add_remove", **settings):
    settings = {"reconstruction": "unbiased", **settings}
    return mechanism(table, Budget(epsilon, 1e-5, relation), np.random.default_rng([5, seed]), **settings)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("workload", [2, 3, [["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "y"], ["c", "y"]]])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_covariance_of_the_noise_is_exact(mechanism, workload, relation):
    """b - A theta is linear in the residuals: by noise on one cell of one of them at a time."""
    residuals = marginal_intervals._unbiased(
        made(mechanism, simulate(400, np.random.default_rng(0)), 0, relation=relation, workload=workload)
    )
    theta = np.array([0.7, -0.2, 1.5, 0.4, -3.0])

    def gap(values):
        found = replace(residuals, values=values)
        xtx, xty = DESIGN.moments({r: found.marginal(r) for r in pairs(DOMAIN)})
        return xty - xtx @ theta

    still, covariance = gap(residuals.values), np.zeros((5, 5))
    for r, variance in residuals.variances.items():
        for cell in np.ndindex(residuals.values[r].shape):
            noise = np.zeros(residuals.values[r].shape)
            noise[cell] = 1.0
            moved = gap({**residuals.values, r: residuals.values[r] + centred(noise)}) - still
            covariance += variance * np.outer(moved, moved)
    stated = marginal_intervals._noise(DESIGN, theta, residuals)
    np.testing.assert_allclose(stated, covariance, rtol=1e-8, atol=1e-6 * np.abs(covariance).max())
    assert np.linalg.eigvalsh(covariance)[0] > 0


@pytest.mark.parametrize(
    ("mechanism", "n", "epsilon"),
    [
        (gaussian_marginals, 20_000, 1.0),
        (residual_planner, 2_000, 1e4),
        pytest.param(gaussian_marginals, 2_000, 1e4, marks=pytest.mark.slow),
        pytest.param(residual_planner, 20_000, 1.0, marks=pytest.mark.slow),
    ],
)
def test_they_cover_where_noise_dominates_and_where_sampling_does(mechanism, n, epsilon):
    """400 tables: the mean share of coefficients covered is the level, but for 4 standard errors (odds below 1e-4)."""
    shares, widths = [], []
    for seed in range(400):
        table = simulate(n, np.random.default_rng([1, seed]))
        fit = linear_marginals_intervals(made(mechanism, table, seed, epsilon), design=DESIGN, level=LEVEL)
        low, high = fit.intervals.T
        shares.append(np.mean((low <= BETA) & (high >= BETA)))
        widths.append(high - low)
    assert abs(np.mean(shares) - LEVEL) < 4 * np.std(shares) / math.sqrt(len(shares))
    assert np.mean(widths, axis=0).max() < 1.5


def test_the_planner_has_narrower_intervals():
    table = simulate(5000, np.random.default_rng(0))
    half = [
        np.mean(
            [np.ptp(linear_marginals_intervals(made(m, table, s), design=DESIGN).intervals, axis=1) for s in range(20)]
        )
        for m in MECHANISMS
    ]
    assert half[1] < 0.9 * half[0]


def test_a_release_without_noise_of_a_known_distribution_is_refused(small_table):
    table = simulate(400, np.random.default_rng(0))
    with pytest.raises(UserError, match=r"needs unbiased marginals .*reconstruction=unbiased; .* by simplex"):
        linear_marginals_intervals(made(residual_planner, table, 0, reconstruction="simplex"), design=DESIGN)
    with pytest.raises(UserError, match="needs unbiased marginals"):
        linear_marginals_intervals(made(gaussian_marginals, table, 0, distribution="laplace"), design=DESIGN)
    with pytest.raises(UserError, match="by native"):
        linear_marginals_intervals(aim(table, Budget(1.0), np.random.default_rng(0)), design=DESIGN)
    with pytest.raises(UserError, match="level"):
        linear_marginals_intervals(made(residual_planner, table, 0), design=DESIGN, level=1.0)


def test_noise_that_leaves_no_estimate_says_so():
    table = simulate(20, np.random.default_rng(0))
    with pytest.raises(NoEstimateError, match="not positive definite"):
        linear_marginals_intervals(made(residual_planner, table, 0, epsilon=0.01), design=DESIGN)
