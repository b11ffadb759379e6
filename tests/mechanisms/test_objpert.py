"""Objective perturbation: where theta lies, its noise, its sensitivities, its ledger, and its limits."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact_table
from dpbench.mechanisms.objpert import objpert
from dpbench.models.logistic import logistic_rows
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import record
from dpbench.releases import Coefficients, Release

DELTA = 1e-5
CALIBRATIONS = ["tight", "paper"]


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "sex")


def release(table: Table, design: Design, epsilon: float = 1.0, seed: int = 0, **parameters) -> Release:
    return objpert(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


def solved(table: Table, design: Design, epsilon: float = 1.0, seed: int = 0, **parameters):
    """The release, where the solver ended, and the b whose objective has its minimum there."""
    with record() as tape:
        made = release(table, design, epsilon, seed, **parameters)
    (X, y), theta = design.encode(table), tape[0].answer
    return made, theta, X.T @ (y * expit(-y * (X @ theta))) - made.diagnostics["ridge"] * theta


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_theta_is_the_minimum_of_the_objective_with_the_noise_that_was_drawn(small_table, design, calibration, epsilon):
    made, _, found = solved(small_table, design, epsilon, seed=3, calibration=calibration)
    sd = made.diagnostics["noise_sd"]
    b = np.random.default_rng(3).normal(0.0, sd, len(design.columns))
    assert np.linalg.norm(found - b) <= 1.01e-10 * sd
    assert made.offers == ("coefficients",)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_noise_is_normal_of_the_size_in_the_ledger(small_table, design, calibration):
    """The mean and the deviation of 300 draws in 9 directions lie within 5 standard errors (error rate below 2e-5)."""
    rows = small_table.take(np.arange(50))
    made = [solved(rows, design, seed=seed, calibration=calibration) for seed in range(300)]
    b, error = made[0][0].ledger.events
    z = np.array([found for _, _, found in made]) / (b.multiplier * b.sensitivity)
    w = np.array([one[Coefficients].values - theta for one, theta, _ in made]) / (error.multiplier * error.sensitivity)
    for values in (z, w):
        assert abs(values.mean()) < 5 / math.sqrt(values.size)
        assert abs(values.std() - 1) < 5 / math.sqrt(2 * values.size)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_noise_for_the_solver_s_error_covers_where_two_runs_to_the_tolerance_may_end(
    small_table, design, calibration
):
    """Half of the declared sensitivity on either side of the exact minimum, which a solve to 1e-13 stands for.

    At the largest tolerance that is allowed, so that the error is not lost in rounding.
    """
    for tolerance in (0.5, 1e-3):
        made, theta, _ = solved(small_table.take(np.arange(5)), design, tolerance=tolerance, calibration=calibration)
        exact = solved(small_table.take(np.arange(5)), design, tolerance=1e-13, calibration=calibration)[1]
        _, error = made.ledger.events
        assert 0 < np.linalg.norm(theta - exact) <= error.sensitivity / 2
        ridge, sd = made.diagnostics["ridge"], made.diagnostics["noise_sd"]
        assert error.sensitivity == pytest.approx(2 * tolerance * sd / ridge)


def test_the_noise_for_the_solver_s_error_costs_next_to_nothing(small_table, design):
    """About a thousandth of sigma, and less than 1e-4 of what b does to the coefficients (200 draws)."""
    made, _, _ = solved(small_table, design)
    assert made.diagnostics["noise_sd"] < 1.0015 * design.x_bound / gaussian_mu(1.0, DELTA)
    spread = np.std([release(small_table, design, seed=seed)[Coefficients].values for seed in range(200)], axis=0)
    assert made.diagnostics["solver_noise_sd"] < 1e-4 * spread.min()


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_ledger_covers_the_worst_record_of_the_domain(small_domain, small_table, design, calibration):
    made = release(small_table, design, calibration=calibration)
    event, _ = made.ledger.events
    X, _ = design.encode(
        Table(small_domain, np.array(list(itertools.product(*map(range, small_domain.sizes.values())))))
    )
    largest = np.linalg.norm(X, axis=1).max()  # of a gradient, on the far wrong side; of a Hessian, 1/4 of its square
    assert event.sensitivity == pytest.approx(largest)
    assert event.offset == pytest.approx(math.log(1 + largest**2 / 4 / made.diagnostics["ridge"]))
    assert made.diagnostics["noise_sd"] == pytest.approx(event.multiplier * largest)


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [(0.05, 0.0374), (0.1, 0.0763), (0.5, 0.3835), (1.0, 0.7431), (2.0, 1.3972), (20.0, 9.4524)],
)
def test_tight_spends_its_budget_and_the_published_constants_about_three_quarters(
    small_table, design, epsilon, published
):
    """`published`: of the perturbed objective alone; the noise for the solver's error adds a thousandth of epsilon."""
    tight = spent(release(small_table, design, epsilon).ledger, DELTA).epsilon
    assert tight == pytest.approx(epsilon, rel=1e-6)
    assert tight <= epsilon * (1 + 1e-9)
    paper = spent(release(small_table, design, epsilon, calibration="paper").ledger, DELTA).epsilon
    assert published - 1e-4 < paper < published + 1.1e-3 * epsilon + 1e-4


def test_paper_is_as_published_and_tight_has_the_gaussian_mechanism_s_noise(small_table, design):
    bound = design.x_bound
    paper = release(small_table, design, 0.5, calibration="paper").diagnostics
    assert paper["ridge"] == pytest.approx(bound**2 / (2 * 0.5))
    assert paper["noise_sd"] == pytest.approx(bound * math.sqrt(8 * math.log(2 / DELTA) + 4 * 0.5) / 0.5)
    made = release(small_table, design, 0.5).diagnostics
    rest = 0.999 * 0.5, 0.999 * DELTA
    assert made["ridge"] == pytest.approx(bound**2 / rest[0])
    assert made["noise_sd"] == pytest.approx(bound / gaussian_mu(*rest))


def test_a_large_budget_gives_the_fit_with_the_ridge_alone(small_table, design):
    made = release(small_table, design, 200.0)
    rows = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    ridge = made.diagnostics["ridge"] / len(small_table)
    np.testing.assert_allclose(
        made[Coefficients].values, logistic_rows(rows, design=design, ridge=ridge).coefficients, atol=3e-3
    )


SMALL = Domain((Attribute.discrete("a", [0, 1, 2, 3]), Attribute.categorical("y", "no")))


@pytest.mark.parametrize(
    "codes", [[(0, 0), (1, 0), (2, 1), (3, 1)] * 50, [(0, 1), (2, 1)] * 50, np.empty((0, 2), dtype=np.int64)]
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_labels_that_a_plane_separates_one_label_and_no_row_have_a_finite_minimum(codes, epsilon):
    table, design = Table(SMALL, np.array(codes)), Design(SMALL, "y")
    made, _, found = solved(table, design, epsilon)
    assert np.isfinite(made[Coefficients].values).all()
    b = np.random.default_rng(0).normal(0.0, made.diagnostics["noise_sd"], 2)
    np.testing.assert_allclose(found, b, atol=1.01e-10 * made.diagnostics["noise_sd"])


def test_a_minimum_that_is_not_reached_is_not_released(small_table, design):
    with pytest.raises(ArithmeticError, match="after 100 steps the gradient has norm"):
        release(small_table, design, tolerance=1e-30)


@pytest.mark.parametrize(
    ("target", "epsilon", "parameters", "message"),
    [
        ("grade", 1.0, {}, "two levels, -1 and \\+1; 'grade' has other values"),
        ("sex", math.inf, {}, "epsilon must lie between .* it is inf. For a fit without privacy .* exact_table"),
        ("sex", math.inf, {"calibration": "paper"}, "epsilon must lie between 4.4e-16 and 9e\\+15"),
        ("sex", 1e17, {}, "epsilon must lie between 8.9e-16 and 1.8e\\+16"),
        ("sex", 1e-20, {}, "epsilon must lie between"),
        ("sex", 1.0, {"tolerance": 1.0}, "tolerance must lie between 0 and 1, both excluded, not 1"),
        ("sex", 1.0, {"tolerance": 0.0}, "tolerance must lie"),
        ("sex", 1.0, {"tolerance": math.nan}, "tolerance must lie"),
        ("sex", 1.0, {"solver_share": 1.0}, "solver_share must lie between 0 and 1, both excluded, not 1"),
        ("sex", 1.0, {"calibration": "papre"}, "unknown calibration 'papre'; did you mean 'paper'"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_drawn(
    small_table, small_domain, target, epsilon, parameters, message
):
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match=message):
        objpert(small_table, Budget(epsilon, DELTA), rng, design=Design(small_domain, target), **parameters)
    assert rng.normal() == np.random.default_rng(0).normal()
