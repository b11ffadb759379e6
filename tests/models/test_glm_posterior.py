"""The posterior of Bayesian GLMs given noisy statistics: its density, its prior, and its calibration."""

import numpy as np
import pytest
from scipy.stats import beta, chi2, chisquare, halfnorm, kstest, multivariate_normal, norm

from dpbench.data.simulate_glm import prior_draw
from dpbench.inference.glm_statistics import sum_statistics
from dpbench.models import glm_posterior
from dpbench.models.glm_moments import moments
from dpbench.models.glm_posterior import SCALE, annealed, gaussian, start_of, statistics_density, theta_of
from dpbench.models.nuts import laplace, nuts, prepared_jax

D, BOUND = 2, 9.0  # features, and the largest ||theta||^2 of the prior
ONE = {"chains": 1, "draws": 500, "warmup": 300}
SETS, BINS, LEVEL = 100, 10, 1e-4  # data sets, bins of their ranks, and the false alarms of a test of one quantity


def simulated(rng, n, sd, theta, root, family="logistic"):
    """Statistics of n rows with noise of standard deviation `sd`, as data of the density."""
    X = rng.normal(size=(n, len(theta))) @ root.T
    u = X @ theta
    if family == "logistic":
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-u)), 1.0, -1.0)
    else:
        y = rng.poisson(np.logaddexp(0, u)).astype(float)
    values = sum_statistics(X, y, family)
    return values + sd * rng.normal(size=len(values)), np.full(len(values), sd**2), float(n), 0.0, BOUND, SCALE


def fitted(data, rng, variances=None, family="logistic", method="quadrature", **settings):
    """Draws (chains, draws, p) of the posterior, which has `variances` for those of the noise if they are given."""
    values, given, *rest = data
    variances = given if variances is None else variances
    d = int((np.sqrt(9 + 8 * len(values) / (1 if family == "logistic" else 2)) - 3) / 2)
    density = statistics_density(family, d, method)
    data = (values, variances, *rest)
    around = laplace(density, start_of(values, variances, rest[0], BOUND, SCALE, family, d), data)
    return nuts(density, around, data, rng, **(ONE | settings))[0], around


def test_the_gaussian_density_and_its_gradient():
    jax = prepared_jax()
    rng = np.random.default_rng(0)
    W, r, s = rng.normal(size=(4, 8)), rng.normal(size=4), rng.normal(size=4)
    C = W @ W.T
    distribution = multivariate_normal(np.zeros(4), C)
    assert float(gaussian(r, C) - gaussian(s, C)) == pytest.approx(distribution.logpdf(r) - distribution.logpdf(s))
    towards = jax.grad(gaussian, argnums=(0, 1))(r, C)
    step = W @ np.diag(rng.normal(size=8)) @ W.T
    np.testing.assert_allclose(towards[0], -np.linalg.solve(C, r))
    change = (gaussian(r, C + 1e-5 * step) - gaussian(r, C - 1e-5 * step)) / 2e-5
    assert float((towards[1] * step).sum()) == pytest.approx(float(change), rel=1e-6)


@pytest.mark.parametrize(("family", "d"), [("logistic", 1), ("logistic", 3), ("poisson", 2)])
def test_the_density_is_the_prior_times_the_normal_distribution_of_the_noisy_statistics(family, d):
    """Of two points with the same Sigma: tau = 1, no correlation, and n known."""
    rng = np.random.default_rng(1)
    data = simulated(rng, 500, 20.0, np.full(d, 0.4), np.eye(d), family)
    values, compiled = [], prepared_jax().jit(statistics_density(family, d, "quadrature"))
    for w in rng.normal(size=(2, d)):
        theta = theta_of(w, BOUND)
        mean, covariance = moments(theta, np.eye(d), family, "quadrature")
        distribution = multivariate_normal(500 * mean, 500 * covariance + 400 * np.eye(len(mean)))
        prior = norm.logpdf(theta).sum() - (d + 2) / 2 * np.log(1 + w @ w / BOUND)
        point = np.concatenate([w, np.zeros(d + d * (d - 1) // 2 + 1)])
        density = float(compiled(point, *data))
        values.append((density, distribution.logpdf(data[0]) + prior))
    (one, wanted), (two, wanted_two) = values
    assert one - two == pytest.approx(wanted - wanted_two)


def test_a_private_number_of_rows_is_a_parameter_in_units_of_its_noise():
    """500 rows + 1.5 * 40 have the density of 560 rows that are known, but for the flat prior's noise."""
    rng = np.random.default_rng(1)
    values, variances, rows, _, *rest = simulated(rng, 500, 20.0, np.array([0.4, -0.2]), np.eye(2))
    density = prepared_jax().jit(statistics_density("logistic", 2, "quadrature"))
    point = np.append(rng.normal(size=5) / 4, 1.5)
    private, known = (float(density(point, values, variances, *of, *rest)) for of in ((rows, 40.0), (rows + 60, 0.0)))
    assert private == pytest.approx(known)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_theta_keeps_within_its_bound(d):
    w = np.random.default_rng(0).normal(size=(100, d)) * 1e3
    assert (np.linalg.norm(theta_of(w, 4.0), axis=1) < 2).all()
    assert theta_of(w, np.inf) == pytest.approx(w)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_the_start_has_a_density_even_where_noise_is_all_there_is(family):
    rng = np.random.default_rng(5)
    density = prepared_jax().jit(statistics_density(family, 2, "quadrature"))
    for sd in (0.0, 1.0, 1e3, 1e6):
        values, variances, *rest = simulated(rng, 300, sd, np.array([1.0, -1.0]), np.eye(2) * 0.3, family)
        point = start_of(values, variances, 300.0, BOUND, SCALE, family, 2)
        assert np.isfinite(float(density(point, values, variances, *rest)))


def test_the_noise_naive_mode_is_found_where_noisy_moments_are_those_of_no_rows():
    """BFGS finds nothing higher from there, and ends far below from the noise-naive start."""
    rng, d = np.random.default_rng(0), 5
    density = statistics_density("logistic", d, "quadrature")
    for _ in range(3):
        values, variances, *rest = *simulated(rng, 1000, 150.0, rng.normal(size=d), 0.3 * np.eye(d))[:-1], 0.3
        i, j = np.triu_indices(d)
        moment = np.zeros((d, d))
        moment[i, j] = moment[j, i] = values[d:]
        assert np.linalg.eigvalsh(moment)[0] < 0
        naive = values, 0 * variances, *rest
        settled = [start_of(values, one, rest[0], BOUND, 0.3, "logistic", d) for one in (0 * variances, variances)]
        direct, found = laplace(density, settled[0], naive), annealed(density, settled[1], naive, variances)
        height = density(found.mode, *naive)
        assert density(laplace(density, found.mode, naive).mode, *naive) - height < 1
        assert height - density(direct.mode, *naive) > 1e5


@pytest.mark.slow
def test_without_information_the_draws_are_the_prior():
    """Kolmogorov-Smirnov on about independent draws, false alarms 1e-4 each: the Jacobians are all there."""
    rng = np.random.default_rng(2)
    data = simulated(rng, 100, 1e7, np.zeros(D), np.eye(D))
    draws, _ = fitted(data, rng, chains=8)
    draws = draws[:, ::5].reshape(-1, draws.shape[-1])
    norm2 = (theta_of(draws[:, :D], BOUND) ** 2).sum(axis=1)
    angle = np.arctan2(draws[:, 0], draws[:, 1]) / (2 * np.pi) + 0.5
    assert kstest(chi2.cdf(norm2, D) / chi2.cdf(BOUND, D), "uniform").pvalue > LEVEL
    assert kstest(angle, "uniform").pvalue > LEVEL
    assert kstest(np.exp(draws[:, D]), halfnorm(scale=SCALE).cdf).pvalue > LEVEL
    correlation = np.tanh(draws[:, 2 * D])  # LKJ(2) of two features: (r + 1) / 2 ~ Beta(2, 2)
    assert kstest(correlation, beta(2, 2, loc=-1, scale=2).cdf).pvalue > LEVEL


def p_values(seed, sets=SETS, noise_known=True):
    """Of uniform ranks of theta_1, theta_2 and tau_1 among 99 draws, over data sets drawn from the prior (SBC).

    500 rows; noise of sd 200, some three times as wide as what the rows leave open.
    """
    rng = np.random.default_rng(seed)
    ranks = []
    for _ in range(sets):
        theta, root = prior_draw(rng, D, np.sqrt(BOUND), SCALE)
        data = simulated(rng, 500, 200.0, theta, root)
        draws, _ = fitted(data, rng, None if noise_known else np.zeros(5))
        kept = draws[0, 4::5][:99]
        found = np.column_stack([theta_of(kept[:, :D], BOUND), kept[:, D]])
        ranks.append((found < [*theta, np.log(np.linalg.norm(root[0]))]).sum(axis=0))
    counts = np.stack([np.bincount(one * BINS // 100, minlength=BINS) for one in np.transpose(ranks)])
    return chisquare(counts, axis=1).pvalue


@pytest.mark.slow
def test_the_noise_aware_posterior_is_calibrated():
    """Ranks are uniform; each of the three tests has false alarms of 1e-4."""
    assert p_values(0).min() > LEVEL


@pytest.mark.slow
def test_a_posterior_that_does_not_know_the_noise_is_caught():
    assert p_values(0, sets=40, noise_known=False)[:D].max() < LEVEL


@pytest.mark.slow
def test_the_sign_of_the_papers_equation_6_is_caught(monkeypatch):
    def turned(theta, Sigma, family, method):
        return moments(-theta, Sigma, family, method)  # E[y | x] = -tanh(x'theta / 2)

    monkeypatch.setattr(glm_posterior, "moments", turned)
    statistics_density.cache_clear()
    try:
        assert p_values(0, sets=40)[:D].max() < LEVEL
    finally:
        statistics_density.cache_clear()
