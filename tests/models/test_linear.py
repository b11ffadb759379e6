"""Linear regression: the three ways to the same fit, and rank deficiency."""

import math

import numpy as np
import pytest

from dpbench.data.encode import Design, pairs
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.models.linear import linear_marginals, linear_rows, linear_statistics, solve
from dpbench.privacy.budget import Budget, Ledger


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def test_statistics_marginals_and_rows_of_the_same_table_agree(small_table, small_domain, design):
    budget = Budget(math.inf)
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)}
    fits = [
        linear_statistics(exact(small_table, budget, np.random.default_rng(0), design=design), design=design),
        linear_marginals(Release(small_domain, budget, Ledger(), marginals=marginals), design=design),
        linear_rows(Release(small_domain, budget, Ledger(), rows=small_table), design=design),
    ]
    X, y = design.encode(small_table)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    for fit in fits:
        assert np.allclose(fit.coefficients, expected)
        assert fit.notes["rank"] == len(expected)


@pytest.mark.parametrize("workload", [3, 4, [("work", "sex", "grade"), ("grade", "age", "work"), ("sex", "age")]])
def test_larger_marginals_serve_as_well_as_pairs(small_table, design, workload):
    one, two = (
        linear_marginals(
            exact_table(small_table, Budget(math.inf), np.random.default_rng(0), workload=k), design=design
        )
        for k in (2, workload)
    )
    np.testing.assert_allclose(two.moments[0], one.moments[0], rtol=1e-12)
    np.testing.assert_allclose(two.coefficients, one.coefficients, rtol=1e-9)


def test_a_pair_that_is_released_comes_before_the_sums(small_table, small_domain, design):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)}
    marginals[small_domain.names] = np.zeros(small_domain.shape(small_domain.names))
    fit = linear_marginals(Release(small_domain, Budget(math.inf), Ledger(), marginals=marginals), design=design)
    X, y = design.encode(small_table)
    np.testing.assert_allclose(fit.moments[1][:-1], X[:, :-1].T @ y)  # the last entry is from one-way sums


def test_ridge_is_added(small_domain, design):
    statistics = SufficientStatistics(np.diag([1.0, 3.0]), np.array([2.0, 8.0]), 0.0, 0.0, ridge=1.0)
    fit = linear_statistics(Release(small_domain, Budget(1.0), Ledger(), statistics), design=design)
    assert np.allclose(fit.coefficients, [1.0, 2.0])


def test_collinear_columns_give_the_shortest_solution_and_are_recorded():
    X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
    y = np.array([2.0, 5.0, 3.0])
    fit = solve(X.T @ X, X.T @ y)
    assert np.allclose(fit.coefficients, np.linalg.pinv(X) @ y)
    assert fit.notes["rank"] == 2
    assert fit.notes["solver"] == "eigenvalue cut-off"


def test_directions_that_noise_made_negative_are_left_out():
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    xtx = rotation @ np.diag([5.0, 2.0, -1.0]) @ rotation.T
    fit = solve(xtx, rotation @ np.array([10.0, 2.0, 7.0]))
    assert np.allclose(rotation.T @ fit.coefficients, [2.0, 1.0, 0.0])
    assert fit.notes["negative_eigenvalues"] == 1


def test_no_positive_direction_is_an_error():
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        solve(-np.eye(2), np.ones(2))


def test_a_missing_pair_is_named(small_table, small_domain, design):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)[1:]}
    with pytest.raises(Exception, match="no marginal of"):
        linear_marginals(Release(small_domain, Budget(1.0), Ledger(), marginals=marginals), design=design)
