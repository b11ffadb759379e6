"""Intervals from noisy second moments cover what they say. Each test uses a fixed seed and states its error rate."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.exact import exact
from dpbench.mechanisms.jlt import jlt
from dpbench.mechanisms.ssp import ssp
from dpbench.models.linear_intervals import linear_statistics_intervals
from dpbench.privacy.budget import Budget
from dpbench.releases import Release, SufficientStatistics

BETA = np.array([1.5, -1.0, 0.5])
NAMES = ("a", "b", "c")
DOMAIN = Domain((*(Attribute.from_edges(name, [-1, 0, 1]) for name in NAMES), Attribute.from_edges("y", [-4, 0, 4])))
DESIGN = Design(DOMAIN, "y", intercept=False, scaled=False, exact=True)
LEVEL = 0.9


def simulate(n: int, rng: np.random.Generator) -> Table:
    """X ~ U[-1, 1]^3, y = X beta + U[-1, 1]: no row is outside its bounds."""
    X = rng.uniform(-1, 1, size=(n, 3))
    y = X @ BETA + rng.uniform(-1, 1, size=n)
    numbers = dict(zip((*NAMES, "y"), [*X.T, y], strict=True))
    codes = np.stack([(column >= 0).astype(np.int64) for column in numbers.values()], axis=1)
    return Table(DOMAIN, codes, numbers)


def covered(release: Release, n: int, truth=BETA) -> tuple[float, dict]:
    """The share of coefficients within their intervals."""
    fit = linear_statistics_intervals(release, design=DESIGN, level=LEVEL, expected_rows=n)
    return float(np.mean((fit.intervals[:, 0] <= truth) & (truth <= fit.intervals[:, 1]))), dict(fit.notes)


def check(shares: list[float]) -> None:
    """The mean is the level, but for 4 standard errors (error rate below 1e-4)."""
    assert abs(np.mean(shares) - LEVEL) < 4 * np.std(shares) / math.sqrt(len(shares))


@pytest.mark.parametrize(
    ("n", "epsilon", "runs"), [pytest.param(20_000, 1.0, 2000, marks=pytest.mark.slow), (2_000, 1e5, 400)]
)
def test_ssp_covers_where_noise_dominates_and_where_sampling_does(n, epsilon, runs):
    shares = []
    for seed in range(runs):
        rng = np.random.default_rng([1, seed])
        release = ssp(simulate(n, rng), Budget(epsilon), rng, design=DESIGN, intervals=True)
        shares.append(covered(release, n)[0])
    check(shares)


def test_without_noise_the_interval_is_the_classical_one():
    shares = []
    for seed in range(600):
        table = simulate(200, np.random.default_rng([9, seed]))
        release = exact(table, Budget(math.inf), np.random.default_rng(0), design=DESIGN)
        shares.append(covered(release, 200)[0])
    check(shares)


def test_the_variance_of_the_errors_is_unbiased_on_few_rows():
    table = simulate(12, np.random.default_rng(0))
    X, y = DESIGN.encode(table)
    release = exact(table, Budget(math.inf), np.random.default_rng(0), design=DESIGN)
    fit = linear_statistics_intervals(release, design=DESIGN, expected_rows=12)
    assert fit.notes["sigma2"] == pytest.approx(np.sum((y - X @ fit.coefficients) ** 2) / (12 - 3))


def test_ssp_estimates_the_variance_of_the_errors():
    """Noise of y'y: 0.5% of n sigma^2; sampling: 0.7%."""
    rng = np.random.default_rng(4)
    release = ssp(simulate(20_000, rng), Budget(10.0), rng, design=DESIGN, intervals=True)
    assert covered(release, 20_000)[1]["sigma2"] == pytest.approx(1 / 3, rel=0.04)


@pytest.mark.parametrize("ratio", [0.05, 1.0])
def test_jlt_without_a_ridge_covers_the_coefficients(ratio):
    n, shares = 2000, []
    for seed in range(400):
        rng = np.random.default_rng([2, seed])
        release = jlt(
            simulate(n, rng),
            Budget(400.0),
            rng,
            design=DESIGN,
            calibration="paper",
            expected_rows=n,
            ratio=ratio,
        )
        share, notes = covered(release, n)
        assert notes["altered"] is False
        shares.append(share)
    check(shares)


def test_jlt_with_a_ridge_covers_ridge_regression_exactly_and_not_the_truth():
    """Few projections, where Student's t differs from the normal; the table is fixed, so n is treated as infinite."""
    rng = np.random.default_rng(3)
    table = simulate(500, rng)
    X, y = DESIGN.encode(table)
    shares, of_truth = [], []
    for seed in range(600):
        release = jlt(table, Budget(1.0), np.random.default_rng([3, seed]), design=DESIGN, expected_rows=10, ratio=0.7)
        assert release.diagnostics["projections"] == 7
        ridge = np.linalg.solve(X.T @ X + release[SufficientStatistics].ridge * np.eye(3), X.T @ y)
        share, notes = covered(release, 10**9, ridge)
        assert notes["altered"] is True
        shares.append(share)
    for seed in range(100):
        release = jlt(table, Budget(1.0), np.random.default_rng(seed), design=DESIGN, expected_rows=500, ratio=1.0)
        of_truth.append(covered(release, 500)[0])
    check(shares)
    assert np.mean(of_truth) < LEVEL / 2


def test_an_indefinite_matrix_gives_no_interval():
    release = ssp(simulate(500, np.random.default_rng(0)), Budget(1.0), np.random.default_rng(0), design=DESIGN)
    statistics = replace(
        release[SufficientStatistics], xtx=release[SufficientStatistics].xtx - 1e6 * np.eye(3), yty=100.0
    )
    with pytest.raises(NoEstimateError, match="not positive definite"):
        covered(replace(release, parts=(statistics,)), 500)


def test_what_cannot_be_used_is_named():
    table, rng = simulate(500, np.random.default_rng(0)), np.random.default_rng(0)
    plain = adassp(table, Budget(1.0), rng, design=DESIGN)
    release = ssp(table, Budget(10.0), rng, design=DESIGN, intervals=True)
    with pytest.raises(
        UserError, match=r"the release has no y'y, .* release it: ssp_intervals, analyze_gauss, jlt, exact"
    ):
        covered(plain, 500)
    with pytest.raises(UserError, match="expected_rows must be greater than 3"):
        covered(release, 3)
    with pytest.raises(UserError, match="level must lie between 0 and 1"):
        linear_statistics_intervals(release, design=DESIGN, level=1.0, expected_rows=500)
