"""Regression on noisy bins: its bias, its intervals, and when there is no estimate. Seeds are fixed."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.binagg import binagg
from dpbench.models.bin_regression import bin_regression, bin_regression_naive
from dpbench.privacy.accounting import gaussian_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import BinSums, Release

DELTA = 1000**-1.1
D = 5
DOMAIN = Domain((*(Attribute.binned(f"x{i}", 0, 1, 4) for i in range(D)), Attribute.binned("y", 0, 7, 4)))
DESIGN = Design(DOMAIN, "y", intercept=False, scaled=False, exact=True)
BETA = np.array([1.2, 1.9, 1.4, 1.6, 1.1])


def release_of(bins):
    return Release(DOMAIN, Budget(1.0), Ledger(), (bins,))


def noiseless(K=40, seed=0, units=1.0):
    """Bins of d = 3 features whose targets are S beta + N(0, c)."""
    rng = np.random.default_rng(seed)
    c = rng.integers(5, 60, K)
    S = c[:, None] * rng.random((K, 3)) * units
    t = S @ (np.array([1.0, 2.0, 3.0]) / units) + rng.normal(0, np.sqrt(c))
    return BinSums(np.zeros((K, 3)), np.ones((K, 3)), c, S, t, np.zeros((K, 3)), 0.0)


@pytest.mark.parametrize("correction", ["sum", "published", "authors"])
def test_without_noise_it_is_weighted_least_squares_with_a_sandwich(correction):
    units = np.array([1.0, 1e-6, 1e5])  # as those of real features do, they differ
    bins = noiseless(units=units)
    root = 1 / np.sqrt(bins.counts)
    S, t = bins.sums / units * root[:, None], bins.targets * root
    beta = np.linalg.lstsq(S, t, rcond=None)[0]
    fit = bin_regression(release_of(bins), design=DESIGN, level=0.9, correction=correction)
    np.testing.assert_allclose(fit.coefficients * units, beta, rtol=1e-8)
    inverse, scores = np.linalg.inv(S.T @ S), S * (t - S @ beta)[:, None]
    half = 1.6448536 * np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse) * 40 / 37)
    np.testing.assert_allclose(fit.intervals * units[:, None], np.stack([beta - half, beta + half], axis=1), rtol=1e-6)
    naive = bin_regression_naive(release_of(bins), design=DESIGN, level=0.9, sigma=2.0)
    np.testing.assert_allclose(naive.coefficients * units, beta, rtol=1e-8)
    half = 1.6448536 * 2 * np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(naive.intervals[:, 1] * units - beta, half, rtol=1e-6)


def test_the_covariance_is_that_of_theorem_42():
    """With the symbols and the loops of the paper, where noise on S dominates."""
    exact = noiseless()
    K, d, Delta = 40, 3, np.array([5.0, 1.0, 3.0])
    rng = np.random.default_rng(2)
    S = exact.sums + rng.normal(size=(K, d)) * Delta
    bins = BinSums(exact.lower, exact.upper, exact.counts, S, exact.targets, np.tile(Delta, (K, 1)), 0.0)
    fit = bin_regression(release_of(bins), design=DESIGN, level=0.9)
    w, t, D_k, beta = 1 / bins.counts, bins.targets, np.diag(Delta**2), fit.coefficients
    D = sum(w[k] * D_k for k in range(K)) / K
    M = S.T @ np.diag(w) @ S / K - D
    np.testing.assert_allclose(K * M @ beta, S.T @ (w * t), rtol=1e-9)
    Q = [S[k] * w[k] * (t[k] - S[k] @ beta) + w[k] * D_k @ beta for k in range(K)]
    H = sum(np.outer(q, q) for q in Q) / (K * (K - d))
    half = 1.6448536 * np.sqrt(np.diag(np.linalg.inv(M) @ H @ np.linalg.inv(M)))
    np.testing.assert_allclose(fit.intervals, np.stack([beta - half, beta + half], axis=1), rtol=1e-6)


def test_the_authors_have_the_mean_in_the_estimate_and_the_sum_in_its_covariance():
    exact = noiseless(12)
    noisy = exact.sums + np.random.default_rng(2).normal(size=(12, 3)) * 5
    bins = BinSums(exact.lower, exact.upper, exact.counts, noisy, exact.targets, np.full((12, 3), 5.0), 0.0)
    authors, published = (
        bin_regression(release_of(bins), design=DESIGN, correction=name) for name in ("authors", "published")
    )
    np.testing.assert_array_equal(authors.coefficients, published.coefficients)
    w, S, D_k, beta = 1 / bins.counts, noisy, np.diag([25.0] * 3), authors.coefficients
    M = S.T @ np.diag(w) @ S - w.sum() * D_k
    Q = w[:, None] * (S * (bins.targets - S @ beta)[:, None] + D_k @ beta)
    variance = np.linalg.inv(M) @ Q.T @ Q @ np.linalg.inv(M) * 12 / 9
    half = authors.intervals[:, 1] - beta
    np.testing.assert_allclose(half, 1.959964 * np.sqrt(np.diag(variance)), rtol=1e-6)


@pytest.mark.parametrize("correction", ["sum", "authors"])
def test_an_indefinite_matrix_is_solved_where_that_is_asked_for(correction):
    """The equations hold whatever the sign of their least eigenvalue, with no more bins than features too."""
    for K in (3, 40):
        exact = noiseless(K)
        sd = 10 * exact.sums
        bins = BinSums(exact.lower, exact.upper, exact.counts, exact.sums, exact.targets, sd, 1.0)
        with pytest.raises(NoEstimateError):
            bin_regression(release_of(bins), design=DESIGN, correction="sum")
        fit = bin_regression(release_of(bins), design=DESIGN, correction=correction, definite=False)
        w, S = 1 / bins.counts, bins.sums
        M = (S * w[:, None]).T @ S - np.diag((w[:, None] * sd**2).sum(axis=0)) / (K if correction == "authors" else 1)
        assert np.linalg.eigvalsh(M)[0] < 0
        np.testing.assert_allclose(M @ fit.coefficients, S.T @ (w * bins.targets), rtol=1e-6)
        assert np.isfinite(fit.intervals).all()


def test_no_bins_give_no_estimate_even_where_an_indefinite_matrix_would():
    with pytest.raises(NoEstimateError, match="singular"):
        bin_regression(release_of(noiseless(0)), design=DESIGN, definite=False)


def test_the_sum_takes_out_the_bias_and_the_published_mean_does_not():
    """Means of 1,500 fits to the same bins under fresh noise, in standard errors of the mean."""
    K, rng = 150, np.random.default_rng(1)
    exact = noiseless(K)
    beta, sd = np.array([1.0, 2.0, 3.0]), np.array([6.0, 3.0, 4.0])
    fits = {"sum": [], "published": []}
    for _ in range(1500):
        t = exact.sums @ beta + rng.normal(0, np.sqrt(exact.counts + 4))
        noisy = exact.sums + rng.normal(size=(K, 3)) * sd
        bins = BinSums(exact.lower, exact.upper, exact.counts, noisy, t, np.tile(sd, (K, 1)), 2.0)
        for correction, found in fits.items():
            found.append(bin_regression(release_of(bins), design=DESIGN, correction=correction).coefficients)
    off = {name: (np.mean(f, axis=0) - beta) / np.std(f, axis=0) * math.sqrt(1500) for name, f in fits.items()}
    assert np.abs(off["sum"]).max() < 4
    assert np.abs(off["published"]).max() > 10


def simulate(repetitions, seed=0, **settings):
    """Estimates, standard errors and naive intervals over repetitions of BinAgg's Table 1: n = 1000, mu = 1."""
    rng = np.random.default_rng(seed)
    asked = Budget(gaussian_epsilon(1.0, DELTA), DELTA)
    fits, naive = [], []
    for _ in range(repetitions):
        X = rng.random((1000, D))
        y = np.clip(X @ BETA + rng.normal(size=1000), 0, 7)
        numbers = dict(zip(DOMAIN.names, [*X.T, y], strict=True))
        codes = [DOMAIN[name].code(column) for name, column in numbers.items()]
        table = Table(DOMAIN, np.stack(codes, axis=1), numbers)
        release = binagg(table, asked, rng, design=DESIGN, **settings)
        fits.append(bin_regression(release, design=DESIGN))
        naive.append(bin_regression_naive(release, design=DESIGN).intervals)
    estimates = np.array([fit.coefficients for fit in fits])
    se = np.array([fit.intervals[:, 1] - fit.coefficients for fit in fits]) / 1.959964
    return estimates, se, np.array(naive)


@pytest.mark.parametrize("settings", [{"calibration": "paper"}, {"allocation": "centred"}], ids=str)
def test_intervals_hold_the_truth_as_often_as_they_say(settings):
    """BinAgg, Table 1, in 400 repetitions.

    A coefficient's coverage has a standard error of 1.1%: four around 95%. The standard deviation has one of 3.5%.
    """
    estimates, se, naive = simulate(400, **settings)
    covered = (np.abs(estimates - BETA) < 1.959964 * se).mean(axis=0)
    assert np.abs(covered - 0.95).max() < 4 * 0.011
    assert se.mean(axis=0) == pytest.approx(estimates.std(axis=0), rel=0.15)
    assert np.abs(estimates.mean(axis=0) - BETA).max() < 4 * estimates.std(axis=0).max() / 20
    naive_covered = ((naive[:, :, 0] <= BETA) & (naive[:, :, 1] >= BETA)).mean(axis=0)
    assert naive_covered.max() < 0.9


def test_centred_sums_need_half_the_noise():
    """The error at d = 5 with the same guarantee: 200 repetitions, standard error of each mean about 3%."""
    error = {
        allocation: np.linalg.norm(simulate(200, allocation=allocation)[0] - BETA, axis=1).mean()
        for allocation in ("proportional", "centred")
    }
    assert error["centred"] < 0.5 * error["proportional"]


@pytest.mark.parametrize("model", [bin_regression, bin_regression_naive])
@pytest.mark.parametrize("K", [0, 3])
def test_too_few_bins_give_no_estimate(model, K):
    with pytest.raises(NoEstimateError, match=f"{K} bins"):
        model(release_of(noiseless(K)), design=DESIGN)


def test_noise_that_outweighs_the_bins_gives_no_estimate():
    exact = noiseless()
    bins = BinSums(exact.lower, exact.upper, exact.counts, exact.sums, exact.targets, exact.sums, 1.0)
    with pytest.raises(NoEstimateError, match="minus its correction is not positive definite"):
        bin_regression(release_of(bins), design=DESIGN)
    bin_regression_naive(release_of(bins), design=DESIGN)


def test_collinear_or_empty_columns_give_no_estimate():
    exact = noiseless()
    for column in (exact.sums[:, 1], np.zeros(40)):
        S = np.column_stack([exact.sums[:, :2], column])
        bins = BinSums(exact.lower, exact.upper, exact.counts, S, exact.targets, exact.sums_sd, 0.0)
        for model in (bin_regression, bin_regression_naive):
            with pytest.raises(NoEstimateError, match="not positive definite"):
                model(release_of(bins), design=DESIGN)


def test_settings_that_cannot_be_used_are_named():
    release = release_of(noiseless())
    with pytest.raises(UserError, match="level must lie"):
        bin_regression(release, design=DESIGN, level=1.0)
    with pytest.raises(UserError, match="authors, published, sum"):
        bin_regression(release, design=DESIGN, correction="mean")
    with pytest.raises(UserError, match="sigma"):
        bin_regression_naive(release, design=DESIGN, sigma=0.0)
