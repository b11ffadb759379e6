"""Metrics of posteriors: by hand, against one another, and on fits that have no posterior."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from dpbench.config.composition import composed
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.metrics import posterior
from dpbench.metrics.classification import auc, log_loss
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.models.posterior_fit import posterior_fit
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release

NODE = composed(["dataset=simulation_glm"])["dataset"]
PRIOR = {"family": "logistic", "largest_norm": 3.0}


def evaluated(fit, rows=300, seed=0, **change):
    split = load_dataset(Dataset.of({**NODE, "features": 2, **change})).split(
        np.random.default_rng(seed), train_rows=rows, test_rows=200
    )
    design = Design(split.train.domain, "y", intercept=False, scaled=False, exact=True)
    return Evaluation(fit, Release(split.train.domain, Budget(1.0), Ledger()), Reference(split, design))


def drawn(centre, sd=0.1, seed=0, notes=PRIOR):
    draws = np.asarray(centre) + np.random.default_rng(seed).normal(0, sd, (4, 1000, len(centre)))
    return posterior_fit(draws, notes=notes)


def test_the_non_private_posterior_is_at_no_distance_from_itself_and_others_are_far():
    evaluation = evaluated(Fit(np.zeros(2)))
    exact = evaluation.reference.posterior("logistic", 3.0)
    same = replace(evaluation, fit=replace(exact, notes={**exact.notes, **PRIOR}))
    assert posterior.ks_distance(same).value == 0
    assert posterior.posterior_mean_error(same).value == 0
    halves = exact.draws.reshape(4, 1000, 2)[:2].reshape(-1, 2)
    assert posterior.ks_distance(replace(same, fit=replace(exact, draws=halves))).value < 0.05
    away = drawn(exact.coefficients + np.array([3.0, -4.0]))
    found = posterior.ks_distance(replace(evaluation, fit=away))
    assert found.value == pytest.approx(1, abs=1e-3)
    assert posterior.posterior_mean_error(replace(evaluation, fit=away)).value == pytest.approx(5, abs=0.02)


def test_the_non_private_posterior_is_that_of_the_rows_that_the_mechanism_saw():
    evaluation = evaluated(Fit(np.zeros(2)))
    whole = evaluation.reference.posterior("logistic", 3.0, whole=True)
    leaked = Reference(replace(evaluation.reference.split, protocol="authors"), evaluation.reference.design)
    seen = replace(evaluation, reference=leaked, fit=replace(whole, notes={**whole.notes, **PRIOR}))
    assert posterior.ks_distance(seen).value == posterior.posterior_mean_error(seen).value == 0


def test_a_shift_by_a_deviation_has_the_known_distance():
    """Two normals of unit variance one apart: 2 Phi(1/2) - 1 = 0.383."""
    evaluation = evaluated(Fit(np.zeros(2)))
    exact = evaluation.reference.posterior("logistic", 3.0)
    sds = np.sqrt(np.diag(exact.covariance))
    moved = replace(exact, draws=(exact.draws + sds).astype(np.float32))
    found = posterior.ks_distance(replace(evaluation, fit=moved))
    assert found.value == pytest.approx(0.383, abs=0.03)
    assert found.detail["distances"] == pytest.approx([found.value] * 2, abs=0.03)
    assert len(found.detail["levels"]) == len(found.detail["posterior"][1]) == 101
    assert found.detail["nonprivate"][0][50] == pytest.approx(np.median(exact.draws[:, 0]), abs=1e-6)


def test_predictions_are_means_over_the_draws():
    evaluation = evaluated(drawn([2.0, -1.0], sd=1.5))
    X, y = evaluation.reference.test
    chances = (1 / (1 + np.exp(-X @ evaluation.fit.draws[::4].T))).mean(axis=1)
    loss = -np.log(np.where(y > 0, chances, 1 - chances)).mean()
    assert posterior.predictive_log_loss(evaluation).value == pytest.approx(loss, abs=0.005)
    larger = (chances[y > 0][:, None] > chances[y < 0]).mean()
    assert posterior.predictive_auc(evaluation).value == pytest.approx(larger, abs=0.005)
    single = replace(evaluation, fit=Fit(np.array([2.0, -1.0])))
    assert posterior.predictive_log_loss(single).value == pytest.approx(log_loss(single).value)
    assert posterior.predictive_auc(single).value == pytest.approx(auc(single).value)


def test_intervals_of_each_level_cover_what_lies_inside():
    truth = evaluated(Fit(np.zeros(2))).reference.truth
    # 0.5 is within 0.674 deviations, 0.8 within 1.28 and 0.95 within 1.96
    for deviations, inside in [(0.4, (1, 1, 1)), (1.0, (0, 1, 1)), (1.6, (0, 0, 1)), (2.4, (0, 0, 0))]:
        evaluation = evaluated(drawn(truth + 0.1 * deviations))
        found = [one(evaluation) for one in (posterior.coverage_50, posterior.coverage_80, posterior.coverage_95)]
        assert tuple(score.value for score in found) == inside
        assert found[0].detail == {"columns": ["x1", "x2"], "inside": [bool(inside[0])] * 2}
    assert posterior.credible_width(evaluation).value == pytest.approx(2 * 1.96 * 0.1, rel=0.05)


def test_of_real_rows_the_population_is_the_whole_table():
    evaluation = evaluated(drawn([0.0, 0.0]), rows=2000)
    real = replace(
        evaluation, reference=Reference(replace(evaluation.reference.split, truth={}), evaluation.reference.design)
    )
    centre = real.reference.posterior("logistic", 3.0, whole=True).coefficients
    assert not np.allclose(centre, real.reference.posterior("logistic", 3.0).coefficients)
    assert posterior.coverage_50(replace(real, fit=drawn(centre))).value == 1
    assert posterior.coverage_95(replace(real, fit=drawn(centre + 0.5))).value == 0


def test_the_non_private_posterior_is_that_of_the_prior_of_the_fit():
    reference = evaluated(Fit(np.zeros(2)), rows=20).reference
    wide, narrow = (np.linalg.norm(reference.posterior("logistic", norm).draws, axis=1).max() for norm in (3.0, 1.5))
    assert narrow <= 1.5 + 1e-6 < wide


def test_ranks_count_the_draws_below_the_truth():
    truth = evaluated(Fit(np.zeros(2))).reference.truth
    found = posterior.sbc_rank(evaluated(drawn(truth + np.array([1.0, -1.0]))))
    assert found.detail == {"columns": ["x1", "x2"], "ranks": [0, 99], "draws": 99}
    assert found.value == 0.5


@pytest.mark.slow
def test_the_posterior_given_all_rows_is_calibrated_and_a_shifted_one_is_not():
    """120 repetitions from the prior: ranks are uniform (Kolmogorov-Smirnov, error rate 1e-4); a shift is seen."""
    right, wrong = [], []
    for seed in range(120):
        evaluation = evaluated(Fit(np.zeros(2)), rows=60, seed=seed, prior=True, norm=3.0, sigma=0.3)
        exact = evaluation.reference.posterior("logistic", 3.0)
        shifted = replace(exact, draws=exact.draws + np.sqrt(np.diag(exact.covariance)).astype(np.float32) / 2)
        for found, fit in ((right, exact), (wrong, shifted)):
            found.extend(posterior.sbc_rank(replace(evaluation, fit=fit)).detail["ranks"])
    jitter = np.random.default_rng(0).random(240)
    assert kstest((np.array(right) + jitter) / 100, "uniform").pvalue > 1e-4
    assert kstest((np.array(wrong) + jitter) / 100, "uniform").pvalue < 1e-6


def test_the_diagnostics_are_reported():
    found = posterior.chain_r_hat(evaluated(drawn([0.0, 0.0])))
    assert 1 <= found.value < 1.01
    assert found.detail["divergences"] is None
    assert found.detail["ess_bulk"] > 3000


@pytest.mark.parametrize(
    ("metric", "fit", "message"),
    [
        ("ks_distance", Fit(np.zeros(2)), "has no draws"),
        ("ks_distance", drawn([0.0, 0.0], notes={}), "does not give the family"),
        ("posterior_mean_error", Fit(np.zeros(2)), "does not give the family"),
        ("coverage_95", Fit(np.zeros(2)), "has no draws"),
        ("sbc_rank", Fit(np.zeros(2)), "has no draws"),
        ("chain_r_hat", Fit(np.zeros(2)), "has no chains"),
    ],
)
def test_fits_without_a_posterior_are_named(metric, fit, message):
    with pytest.raises(ValueError, match=message):
        getattr(posterior, metric)(evaluated(fit))


def test_counts_have_a_posterior_too():
    fit = drawn([0.1, 0.2], notes={**PRIOR, "family": "poisson"})
    evaluation = evaluated(fit, family="poisson", rows=2000)
    assert 0 < posterior.ks_distance(evaluation).value <= 1
    assert math.isfinite(posterior.posterior_mean_error(evaluation).value)
    with pytest.raises(ValueError, match="two levels"):
        posterior.predictive_auc(evaluation)


def test_a_model_without_coefficients_has_no_mean_to_compare_with_the_posterior():
    """Beside a design of one column, its empty array would count as no error at all."""
    tree = evaluated(Fit(predictor=lambda X: X[:, 0], notes=PRIOR), features=1)
    with pytest.raises(ValueError, match="no coefficients; leave posterior_mean_error out"):
        posterior.posterior_mean_error(tree)
