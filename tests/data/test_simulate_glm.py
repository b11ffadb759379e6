"""Simulated rows of generalised linear models: their distribution, their parameters, and the prior of these."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpbench.config.composition import composed
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import card, load_dataset
from dpbench.data.simulate_glm import prior_draw
from dpbench.errors import UserError

NODE = composed(["dataset=simulation_glm"])["dataset"]


def drawn(n=50_000, seed=0, **change):
    rows = load_dataset(Dataset.of({**NODE, **change})).split(np.random.default_rng(seed), train_rows=n, test_rows=10)
    design = Design(rows.train.domain, "y", intercept=False, scaled=False, exact=True)
    X, y = design.encode(rows.train)
    return X, y, np.array([rows.truth[name] for name in design.columns])


def test_labels_have_the_mean_of_the_logistic_model():
    """sum x (y - tanh(x'theta / 2)) is within 5 standard errors of 0 in each entry (error rate below 1e-5)."""
    X, y, theta = drawn(theta=[-0.9, -0.5, 0.3])
    mean = np.tanh(X @ theta / 2)
    assert theta.tolist() == [-0.9, -0.5, 0.3]
    assert set(y) == {-1.0, 1.0}
    score = X.T @ (y - mean) / np.sqrt(X.T**2 @ (1 - mean**2))
    assert np.abs(score).max() < 5
    assert np.abs(X.T @ (y + mean)).min() > 50  # the other sign is seen


def test_counts_have_the_mean_and_the_variance_of_the_poisson_model():
    """Within 5 standard errors (error rate below 1e-5)."""
    X, y, theta = drawn(theta=[0.3, -0.6, 0.8], family="poisson")
    mean = np.logaddexp(0, X @ theta)
    assert np.abs(X.T @ (y - mean) / np.sqrt(X.T**2 @ mean)).max() < 5
    residual = (y - mean) ** 2 - mean
    assert abs(residual.mean()) < 5 * residual.std() / np.sqrt(len(y))


def test_features_are_inside_the_ball_with_the_variance_asked_for():
    X, _, theta = drawn(features=4, norm=2.5, sigma=0.2)
    assert np.linalg.norm(theta) == pytest.approx(2.5)
    assert np.linalg.norm(X, axis=1).max() <= 1
    assert np.mean(X**2) == pytest.approx(0.04, rel=0.03)  # hardly any row is outside
    wide, _, _ = drawn(n=2000, features=4, sigma=0.6)
    assert np.linalg.norm(wide, axis=1).max() <= 1


def test_repetitions_share_their_parameters_unless_these_come_from_the_prior():
    (X, _, one), (Z, _, two) = (drawn(100, seed) for seed in (0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(X, Z)
    (_, _, one), (_, _, two) = (drawn(100, seed, prior=True, norm=1.5) for seed in (0, 1))
    assert not np.array_equal(one, two)
    assert max(np.linalg.norm(one), np.linalg.norm(two)) <= 1.5


def test_the_prior_has_its_distribution():
    """Kolmogorov-Smirnov tests of 4,000 draws (error rate 1e-4 each)."""
    rng, d = np.random.default_rng(0), 4
    thetas, roots = zip(*(prior_draw(rng, d, 2.0, 0.3) for _ in range(4000)), strict=True)
    theta, sigma = np.stack(thetas), np.stack([root @ root.T for root in roots])
    squared = (theta**2).sum(axis=1)
    assert kstest(squared, lambda x: chi2.cdf(x, d) / chi2.cdf(4.0, d)).pvalue > 1e-4
    assert np.abs(np.mean(theta / np.sqrt(squared)[:, None], axis=0)).max() < 5 / np.sqrt(4000 * d)
    scale = np.sqrt(np.diagonal(sigma, axis1=1, axis2=2)) / 0.3
    assert kstest(scale[:, 2], "halfnorm").pvalue > 1e-4
    for i, j in [(0, 1), (1, 3), (2, 3)]:  # each correlation of LKJ(2) is 2 Beta(a, a) - 1, a = 2 - 1 + d / 2
        correlation = sigma[:, i, j] / np.sqrt(sigma[:, i, i] * sigma[:, j, j])
        assert kstest((correlation + 1) / 2, "beta", args=(1 + d / 2, 1 + d / 2)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": 0}, "dataset.sigma must be a number greater than 0"),
        ({"norm": -1.0}, "dataset.norm must be a number greater than 0"),
        ({"radius": 0}, "dataset.radius must be a number greater than 0"),
        ({"features": 0}, "dataset.features must be a whole number"),
        ({"theta": []}, "dataset.theta must be a list of numbers or null"),
        ({"theta": [float("nan")]}, "dataset.theta must be a list of numbers or null"),
        ({"family": "probit"}, "unknown dataset.family 'probit'"),
        ({"largest_count": 0}, "dataset.largest_count must be a whole number of at least 1"),
        ({"parameters_seed": -1}, "dataset.parameters_seed must be"),
        ({"prior": "yes"}, "dataset.prior must be true or false"),
        ({"sigma": 1000.0}, "lower sigma"),
    ],
)
def test_values_out_of_range_are_named(change, message):
    with pytest.raises(UserError, match=message):
        drawn(50, **change)


def test_one_feature_is_enough_and_the_card_is_shown():
    X, _, theta = drawn(100, theta=[0.5])
    assert (X.shape, theta.tolist()) == ((100, 1), [0.5])
    assert "sections 4.3 and 10" in card(Dataset.of(NODE))
