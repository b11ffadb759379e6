"""The mean of the target: without noise by hand, its noise, and tables that have none."""

import math

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact_mean
from dpbench.mechanisms.mean_target import mean_target
from dpbench.models.released import released_coefficients
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Coefficients

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


@pytest.fixture
def labels(small_domain):
    return Design(small_domain, "sex")


def theta(table, design, epsilon=1.0, seed=0, relation="add_remove", mechanism=mean_target, **parameters):
    budget = Budget(epsilon, DELTA, relation)
    release = mechanism(table, budget, np.random.default_rng(seed), design=design, **parameters)
    assert released_coefficients(release, design=design).coefficients is release[Coefficients].values
    return release[Coefficients].values


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_all_predictions_are_the_mean_of_the_training_target_as_epsilon_grows(relation, small_table, design):
    X, y = design.encode(small_table)
    for found in (
        theta(small_table, design, 1e6, relation=relation),
        theta(small_table, design, math.inf, mechanism=exact_mean),
    ):
        assert X @ found == pytest.approx(np.full(len(y), y.mean()), abs=1e-4)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_of_two_classes_it_is_the_log_odds_of_the_more_frequent_one(relation, small_table, labels):
    y = labels.encode(small_table)[1]
    odds = math.log(((y > 0).sum() + 0.5) / ((y < 0).sum() + 0.5))
    for found in (
        theta(small_table, labels, 1e6, relation=relation),
        theta(small_table, labels, math.inf, mechanism=exact_mean),
    ):
        assert found[-1] == pytest.approx(odds, abs=1e-3)
        assert not found[:-1].any()
    assert theta(small_table, labels, 1e6, loss="squared")[-1] == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_its_error_is_that_of_the_gaussian_mechanism(relation, small_table, design):
    """Of 300 draws, the deviation lies within 5 standard errors of the one to first order (error rate below 1e-5).

    Add/remove: of low + (high - low) U / (U + V) with noise of deviation 1 / mu in each. Replace: in U alone.
    """
    y = design.encode(small_table)[1]
    low, high = design.target_range
    part, n = (y.mean() - low) / (high - low), len(y)
    sd = (high - low) / (n * gaussian_mu(1.0, DELTA))
    sd *= 1.0 if relation == "replace" else math.hypot(part, 1 - part)
    draws = np.array([theta(small_table, design, seed=seed, relation=relation)[-1] for seed in range(300)])
    assert abs(draws.mean() - y.mean()) < 5 * sd / math.sqrt(300)
    assert abs(draws.std() / sd - 1) < 5 / math.sqrt(600) + 0.01


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_whole_budget_is_spent_on_one_answer(relation, small_table, design):
    release = mean_target(small_table, Budget(1.0, DELTA, relation), np.random.default_rng(0), design=design)
    assert spent(release.ledger, DELTA).epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [1e-4, 1e6])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_rows_or_much_noise_leave_a_prediction_within_the_bounds(epsilon, relation, small_table, design, labels):
    for rows in (0, 1, 3):
        table = small_table.take(np.arange(rows))
        found = theta(table, design, epsilon, relation=relation)[-1]
        assert design.target_range[0] <= found <= design.target_range[1]
        assert math.isfinite(theta(table, labels, epsilon, relation=relation)[-1])
    assert (
        theta(small_table.take(np.arange(0)), design, math.inf, mechanism=exact_mean)[-1]
        == sum(design.target_range) / 2
    )


@pytest.mark.parametrize("mechanism", [mean_target, exact_mean])
def test_a_design_without_an_intercept_is_refused(mechanism, small_table, small_domain):
    design = Design(small_domain, "grade", intercept=False)
    with pytest.raises(UserError, match=f"{mechanism.__name__} is the intercept of a fit; set design.intercept=true"):
        theta(small_table, design, mechanism=mechanism)
