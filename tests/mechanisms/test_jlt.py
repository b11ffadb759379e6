"""JLT: its two branches, what each costs, and the distribution of what it releases."""

import math

import numpy as np
import pytest

from dpbench.audit.replay import check_replay
from dpbench.data.encode import Design
from dpbench.errors import UserError
from dpbench.mechanisms.jlt import jlt
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.projections import projection_delta
from dpbench.privacy.recording import record
from dpbench.releases import SufficientStatistics

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(table, design, epsilon, seed=0, **parameters):
    parameters = {"expected_rows": 3000, **parameters}
    return jlt(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_tight_calibration_spends_its_budget_and_no_more(epsilon, small_table, design):
    cost = spent(run(small_table, design, epsilon).ledger, DELTA).epsilon
    assert cost == pytest.approx(epsilon, rel=1e-6)
    assert cost <= epsilon * (1 + 1e-9)


def test_no_row_is_longer_than_the_declared_bound(small_table, design):
    X, y = design.encode(small_table)
    (event,) = run(small_table, design, 1.0).ledger.events
    assert np.sqrt((X**2).sum(axis=1) + y**2).max() <= event.sensitivity * (1 + 1e-12)
    assert event.sensitivity == math.hypot(design.x_bound, design.y_bound)


@pytest.mark.parametrize(("epsilon", "altered"), [(1.0, True), (100.0, False)])
def test_published_constants_in_either_branch(epsilon, altered, small_table, design):
    release = run(small_table, design, epsilon, calibration="paper", ratio=0.01)
    laplace, projection = release.ledger.events
    log = math.log(8 / DELTA)
    published = 8 / epsilon * (math.sqrt(2 * 30 * log) + 2 * log)  # w^2 / B^2
    assert laplace.sensitivity == pytest.approx(projection.sensitivity**2)
    assert (laplace.multiplier, projection.delta) == (4 / epsilon, DELTA / 2)
    assert release.diagnostics == {"projections": 30, "altered": altered}
    assert projection.multiplier**2 == pytest.approx(published - 1)  # of the dearer branch, whichever was taken
    assert release[SufficientStatistics].ridge == pytest.approx(
        published * projection.sensitivity**2 if altered else 0.0
    )
    assert spent(release.ledger, DELTA).epsilon < epsilon


def test_the_published_test_is_passed_beyond_its_margin_only(small_table, design):
    """R A is drawn where sigma_min(A)^2 is above w^2 + Z + 4 B^2 log(1/delta) / eps."""
    answers = {True: [], False: []}
    for epsilon in np.geomspace(1.0, 100.0, 60):
        with record() as tape:
            made = run(small_table, design, float(epsilon), calibration="paper", ratio=0.01)
        event = made.ledger.events[1]
        squared = event.sensitivity**2
        limit = (event.multiplier**2 + 1) * squared + 4 * squared * math.log(1 / DELTA) / epsilon
        assert made.diagnostics["altered"] == (float(tape[0].answer) <= limit)
        answers[made.diagnostics["altered"]].append(epsilon)
    assert answers[True] and answers[False]


def test_unaltered_rows_pay_for_a_neighbour_whose_smallest_value_is_lower():
    """N(0, M) against N(0, M - v v') with M = w^2 I: the pair that the ledger's multiplier stands for."""
    m2, r = 6.0, 20
    smaller, larger = 1 - 1 / m2, 1.0  # variances along v, in units of w^2
    assert larger / smaller - 1 == pytest.approx(1 / (m2 - 1))
    assert projection_delta(0.5, math.sqrt(m2 - 1), r) > projection_delta(0.5, math.sqrt(m2), r)


def test_released_moments_are_unbiased_with_the_noise_of_a_projection(small_table, design):
    """Means of 300 draws within 5 standard errors, which are known (error rate below 1e-4 for all entries)."""
    A = np.column_stack(design.encode(small_table))
    gram, draws = A.T @ A, 300
    released = [run(small_table, design, 1.0, seed) for seed in range(draws)]
    ridge, r = released[0][SufficientStatistics].ridge, released[0].diagnostics["projections"]
    whole = gram + ridge * np.eye(len(gram))
    sd = np.sqrt((np.outer(np.diag(whole), np.diag(whole)) + whole**2) / r)
    means = {
        "xtx": (np.mean([x[SufficientStatistics].xtx for x in released], axis=0), gram[:-1, :-1], sd[:-1, :-1]),
        "xty": (np.mean([x[SufficientStatistics].xty for x in released], axis=0), gram[:-1, -1], sd[:-1, -1]),
        "yty": (np.mean([x[SufficientStatistics].yty for x in released]), gram[-1, -1], sd[-1, -1]),
    }
    for mean, expected, one in means.values():
        assert np.all(np.abs(mean - expected) < 5 * one / math.sqrt(draws))
    spread = np.std([x[SufficientStatistics].xtx[0, 1] for x in released], ddof=1)
    assert abs(spread / sd[0, 1] - 1) < 5 / math.sqrt(2 * draws)
    assert released[0][SufficientStatistics].xtx_sd <= sd.min() * (1 + 1e-12)


def test_least_squares_of_the_release_is_ridge_regression_of_the_rows(small_table, design):
    """With 10^6 projections the noise is about 0.001 of the moments."""
    release = run(small_table, design, 1.0, ratio=1e6 / 3000)
    X, y = design.encode(small_table)
    ridge = np.linalg.solve(X.T @ X + release[SufficientStatistics].ridge * np.eye(X.shape[1]), X.T @ y)
    assert np.allclose(linear_statistics(release, design=design).coefficients, ridge, atol=0.02)


def test_projections_follow_the_declared_rows_and_exceed_the_columns(small_table, design):
    assert run(small_table, design, 1.0, expected_rows=1001).diagnostics["projections"] == 51
    assert run(small_table, design, 1.0, expected_rows=1).diagnostics["projections"] == len(design.columns) + 2


@pytest.mark.parametrize("given", [{"ratio": 0.0}, {"expected_rows": 0}])
def test_bad_parameters_are_named(given, small_table, design):
    with pytest.raises(UserError, match=r"jlt: (ratio|expected_rows) must be greater than 0"):
        run(small_table, design, 1.0, **given)


def test_an_epsilon_at_which_the_published_test_protects_nothing_is_refused(small_table, design):
    with pytest.raises(UserError, match="calibration: paper gives w <= B"):
        run(small_table, design, 1000.0, calibration="paper")


def test_which_branch_is_taken_does_not_show_in_the_cost(small_table, design):
    """The test's answer may go either way on one table: the ledger says the dearer cost of both."""
    few, many = (
        run(rows, design, 100.0, calibration="paper", ratio=0.01)
        for rows in (small_table.take(np.arange(20)), small_table)
    )
    assert (few.diagnostics["altered"], many.diagnostics["altered"]) == (True, False)
    assert spent(few.ledger, DELTA) == spent(many.ledger, DELTA)


@pytest.mark.parametrize("rows", [20, 3000])
def test_each_branch_reads_the_rows_through_its_noise_only(rows, small_table, design):
    def make(table, rng=0):
        return run(table, design, 100.0, rng, calibration="paper", ratio=0.01)

    assert make(small_table.take(np.arange(rows))).diagnostics["altered"] == (rows == 20)
    assert check_replay(make, small_table.take(np.arange(rows))) == []
