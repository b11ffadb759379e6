"""The posterior given noisy statistics: its limits without noise and with nothing but noise, and invalid input."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.config.composition import composed
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.pass_glm import pass_glm
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.posterior import ks_distance
from dpbench.models.bayesian_statistics import bayesian_statistics
from dpbench.models.fit import check_fit
from dpbench.privacy.budget import Budget
from dpbench.releases import GlmStatistics

NODE = composed(["dataset=simulation_glm"])["dataset"]
SMALL = {"draws": 500, "warmup": 300, "chains": 2}


def posterior_of(X, y, epsilon=1e9, **settings):
    """The posterior given noisy statistics of these rows."""
    features = [Attribute.binned(f"x{j}", -1, 1, 8) for j in range(X.shape[1])]
    domain = Domain((*features, Attribute.categorical("y", ["-1", "1"])))
    numbers = {one.name: x for one, x in zip(features, X.T, strict=True)}
    codes = [one.code(numbers[one.name]) for one in features]
    table = Table(domain, np.column_stack([*codes, (y > 0).astype(np.int64)]), numbers)
    design = Design(domain, "y", intercept=False, scaled=False, exact=True)
    release = pass_glm(table, Budget(epsilon, 1e-5, "replace"), np.random.default_rng(0), design=design)
    return bayesian_statistics(release, design=design, rng=np.random.default_rng(1), **settings)


def evaluated(epsilon, family="logistic", relation="replace", rows=2000, seed=0, **settings):
    """A release of simulated rows, and the metrics' view of its posterior."""
    split = load_dataset(Dataset.of({**NODE, "theta": [-0.9, 0.5], "family": family})).split(
        np.random.default_rng(seed), train_rows=rows, test_rows=100
    )
    design = Design(split.train.domain, "y", intercept=False, scaled=False, exact=True)
    budget = Budget(epsilon, 1e-5, relation)
    release = pass_glm(split.train, budget, np.random.default_rng(seed), design=design, family=family, radius=1.0)
    given = {"sampler": "laplace"} | settings
    fit = check_fit(bayesian_statistics(release, design=design, rng=np.random.default_rng(1), **given), 2)
    return Evaluation(fit, release, Reference(split, design))


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_without_noise_it_is_the_posterior_given_the_rows(family):
    """The normal approximation of 2,000 rows' statistics costs little, and so does Laplace's of their posterior."""
    for noise in ("aware", "naive"):
        found = evaluated(1e9, family, noise=noise)
        assert ks_distance(found).value < 0.12
        assert (found.fit.notes["noise"], found.fit.notes["divergences"]) == (noise, None)


@pytest.mark.slow
def test_nuts_draws_from_the_posterior_given_the_rows():
    found = evaluated(1e9, sampler="nuts", **SMALL)
    assert ks_distance(found).value < 0.06
    assert found.fit.notes["r_hat"] < 1.02
    assert found.fit.notes["divergences"] <= 5
    assert found.fit.draws.shape == (1000, 2)


@pytest.mark.slow
def test_annealed_chains_converge_where_noisy_moments_are_those_of_no_rows():
    """At d = 5 and epsilon = 0.1; those of nuts, which start far from the mode, do not on this data set."""
    rng = np.random.default_rng(5)
    X = np.clip(rng.normal(0, 0.3, (1000, 5)), -1, 1)
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(-X.sum(axis=1))), 1.0, -1.0)
    found = posterior_of(X, y, 0.1, noise="naive", sampler="annealed_nuts", feature_scale=0.3, **SMALL)
    assert found.notes["r_hat"] < 1.05
    assert found.notes["divergences"] < 0.05 * 1000
    assert found.notes["sampler"] == "annealed_nuts"


def test_noise_widens_the_posterior_that_knows_it_and_not_the_one_that_does_not():
    fits = (evaluated(1e9), evaluated(0.5), evaluated(0.5, noise="naive"))
    sharp, noisy, naive = (np.sqrt(np.diag(one.fit.covariance)).mean() for one in fits)
    assert noisy > 1.5 * sharp
    assert naive < 1.3 * sharp


def test_a_private_number_of_rows_is_its_noisy_one():
    found = evaluated(1e9, relation="add_remove")
    assert found.release[GlmStatistics].rows == pytest.approx(2000, abs=0.1)
    assert ks_distance(found).value < 0.12
    statistics = replace(found.release[GlmStatistics], rows=-3.0)
    release = replace(found.release, parts=(statistics,))
    with pytest.raises(NoEstimateError, match="noisy number of rows is -3"):
        bayesian_statistics(release, design=found.reference.design, rng=np.random.default_rng(0))


def test_the_naive_posterior_takes_the_noisy_number_of_rows_for_the_true_one():
    found = evaluated(1e9, relation="add_remove")
    statistics, means = found.release[GlmStatistics], {}
    for noise in ("aware", "naive"):
        for sd in (0.0, 0.3 * statistics.rows):
            release = replace(found.release, parts=(replace(statistics, rows_sd=sd),))
            settings = {"rng": np.random.default_rng(0), "sampler": "laplace", "noise": noise}
            fit = bayesian_statistics(release, design=found.reference.design, **settings)
            means.setdefault(noise, set()).add(fit.coefficients.tobytes())
    assert (len(means["aware"]), len(means["naive"])) == (2, 1)


RNG = np.random.default_rng(0)
ONE = RNG.uniform(-1, 1, 500)
ANSWER = np.where(RNG.random(500) < 1 / (1 + np.exp(-2 * ONE)), 1.0, -1.0)


def test_one_class_and_features_that_say_nothing_have_a_posterior():
    for noise in ("aware", "naive"):
        twice = posterior_of(np.column_stack([ONE, ONE]), ANSWER, noise=noise, sampler="laplace")
        assert twice.coefficients.sum() == pytest.approx(2, abs=0.6)
        assert np.sqrt(np.diag(twice.covariance)).min() > 0.4  # only the sum is known
        nothing = posterior_of(np.column_stack([ONE, 0 * ONE]), ANSWER, noise=noise, sampler="laplace")
        assert np.sqrt(nothing.covariance[1, 1]) > 0.6  # little but the prior
    alone = posterior_of(np.column_stack([ONE, RNG.uniform(-1, 1, 500)]), np.ones(500), sampler="laplace")
    assert np.abs(alone.coefficients).max() < 1


@pytest.mark.slow
def test_one_feature_is_enough():
    assert posterior_of(ONE[:, None], ANSWER, **SMALL).coefficients == pytest.approx([2], abs=0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": "none"}, "unknown noise 'none'"),
        ({"sampler": "gibbs"}, "unknown sampler 'gibbs'"),
        ({"expectations": "exact"}, "unknown expectations 'exact'"),
        ({"sampler": "annealed_nuts"}, "which is for noise=naive alone"),
        ({"largest_norm": 0.0}, "largest_norm must be greater than 0"),
        ({"feature_scale": -1.0}, "feature_scale must be greater than 0"),
        ({"sampler": "metropolis", "step": 0.0}, "step must be greater than 0"),
        ({"draws": 0}, "draws must be greater than 0"),
        ({"chains": 1}, "needs at least 2 chains"),
    ],
)
def test_settings_out_of_range_are_named(change, message):
    with pytest.raises(UserError, match=message):
        evaluated(1.0, rows=20, **change)


def test_an_intercept_is_refused():
    found = evaluated(1.0, rows=20)
    design = replace(found.reference.design, intercept=True)
    with pytest.raises(UserError, match=r"set design\.intercept=false"):
        bayesian_statistics(found.release, design=design, rng=np.random.default_rng(0))
