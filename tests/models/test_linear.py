"""Linear regression: the three ways to the same fit, and rank deficiency."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.models.linear import linear_marginals, linear_rows, linear_statistics, solve
from dpbench.models.sandwich import linear_rows_sandwich
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import BinSums, Marginals, Release, SufficientStatistics, SyntheticRows

RNG = np.random.default_rng(0)  # for models that draw only from releases of bins


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def test_statistics_marginals_and_rows_of_the_same_table_agree(small_table, small_domain, design):
    budget = Budget(math.inf)
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)}
    fits = [
        linear_statistics(exact(small_table, budget, np.random.default_rng(0), design=design), design=design),
        linear_marginals(Release(small_domain, budget, Ledger(), (Marginals(marginals),)), design=design),
        linear_rows(Release(small_domain, budget, Ledger(), (SyntheticRows(small_table),)), design=design, rng=RNG),
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
    fit = linear_marginals(Release(small_domain, Budget(math.inf), Ledger(), (Marginals(marginals),)), design=design)
    X, y = design.encode(small_table)
    np.testing.assert_allclose(fit.moments[1][:-1], X[:, :-1].T @ y)  # the last entry is from one-way sums


def test_ridge_is_added(small_domain, design):
    statistics = SufficientStatistics(np.diag([1.0, 3.0]), np.array([2.0, 8.0]), 0.0, 0.0, ridge=1.0)
    fit = linear_statistics(Release(small_domain, Budget(1.0), Ledger(), (statistics,)), design=design)
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


@pytest.mark.parametrize("collinear", [False, True])
def test_the_unit_of_a_column_does_not_decide_whether_it_counts(collinear):
    """Parkinsons has a jitter in seconds, about 1e-5, and columns of 100: X'X from 1e-10 to 1e4 a row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1e-5, 1.0, 1e3]
    if collinear:
        X = np.column_stack([X, 2 * X[:, 0]])
    y = X @ np.array([3e5, -2.0, 1e-3, 0.0][: X.shape[1]])
    fit = solve(X.T @ X, X.T @ y, scaled=False)
    np.testing.assert_allclose(X @ fit.coefficients, y, rtol=0, atol=1e-7)
    assert fit.notes["rank"] == 3
    assert solve(X.T @ X, X.T @ y).notes["rank"] == 2


def test_every_way_to_the_fit_sees_a_design_in_its_own_units_as_such():
    domain = Domain(
        (Attribute.binned("tiny", 0, 1e-5, 4), Attribute.binned("y", 0, 1, 4), Attribute.binned("huge", 0, 1e3, 4))
    )
    table = Table(domain, np.random.default_rng(0).integers(0, 4, (100, 3)))
    design, budget = Design(domain, "y", scaled=False), Budget(math.inf)
    fits = [
        linear_statistics(exact(table, budget, RNG, design=design), design=design),
        linear_marginals(exact_table(table, budget, RNG), design=design),
        linear_rows(exact_table(table, budget, RNG), design=design, rng=RNG),
        linear_rows_sandwich(exact_table(table, budget, RNG), design=design, rng=RNG),
    ]
    assert [fit.notes["rank"] for fit in fits] == [3] * 4


def test_a_column_of_zeros_has_no_coefficient_in_any_unit():
    fit = solve(np.diag([4e8, 0.0]), np.array([2e8, 0.0]), scaled=False)
    assert fit.coefficients.tolist() == [0.5, 0.0]


@pytest.mark.parametrize("model", [linear_rows, linear_rows_sandwich])
def test_a_design_in_own_units_gives_the_fit_of_the_scaled_one(small_table, small_domain, model):
    release = Release(small_domain, Budget(math.inf), Ledger(), (SyntheticRows(small_table),))
    own, scaled = (Design(small_domain, "grade", scaled=value) for value in (False, True))
    a, b = (model(release, design=one, rng=RNG) for one in (own, scaled))
    predicted = a.predict(own.encode(small_table)[0]), b.predict(scaled.encode(small_table)[0])
    np.testing.assert_allclose(predicted[0], 3 + 2 * predicted[1], rtol=1e-9)  # grades 1 to 5
    if a.intervals is not None:
        width = np.diff(a.intervals)[:, 0], np.diff(b.intervals)[:, 0]
        np.testing.assert_allclose(width[0][:3] / width[1][:3], [4 / 84, 2, 2], rtol=1e-9)  # ages 16 to 100


def test_rows_are_drawn_from_bins(small_domain):
    """Without noise the rows of a bin are its mean."""
    design = Design(small_domain, "grade", intercept=False)
    rng = np.random.default_rng(0)
    S, c = rng.normal(size=(20, 4)), rng.integers(2, 9, 20)
    t = S @ np.array([1.0, -2.0, 3.0, 0.5])
    bins = BinSums(S, S, c, S, t, np.zeros_like(S), 0.0)
    fit = linear_rows(Release(small_domain, Budget(1.0), Ledger(), (bins,)), design=design, rng=rng)
    np.testing.assert_allclose(fit.coefficients, [1.0, -2.0, 3.0, 0.5])


def test_noise_alike_in_all_entries_is_left_out_in_its_own_unit(small_domain):
    design = Design(small_domain, "grade", scaled=False)
    statistics = SufficientStatistics(np.array([[9e6, 3e3], [3e3, -2.0]]), np.array([9e6, 1.0]), 1.0, 1.0)
    fit = linear_statistics(Release(small_domain, Budget(1.0), Ledger(), (statistics,)), design=design)
    np.testing.assert_allclose(fit.coefficients, solve(statistics.xtx, statistics.xty).coefficients, rtol=1e-12)


def test_no_positive_direction_is_an_error():
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        solve(-np.eye(2), np.ones(2))


def test_a_missing_pair_is_named(small_table, small_domain, design):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)[1:]}
    with pytest.raises(Exception, match="no marginal of"):
        linear_marginals(Release(small_domain, Budget(1.0), Ledger(), (Marginals(marginals),)), design=design)
