"""AMP: where theta lies, its noise and its sensitivities, its budget, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.amp import amp
from dpbench.mechanisms.objpert import objpert
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import record
from dpbench.releases import Coefficients

DELTA = 1e-5
TARGETS = ["grade", "sex"]  # a number, and a label


def run(table, design, epsilon=1.0, seed=0, mechanism=amp, **parameters):
    return mechanism(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


def solved(table, design, epsilon=1.0, seed=0, *, clip=0.5, **parameters):
    """The release, where the solver ended, and the b whose objective has its minimum there, by hand."""
    if not design.binary:
        parameters["clip"] = clip
    with record() as tape:
        made = run(table, design, epsilon, seed, **parameters)
    (X, y), theta = design.encode(table), tape[0].answer
    if design.binary:
        each = -(y * expit(-y * (X @ theta)))[:, None] * X
    else:
        each = (X @ theta - y)[:, None] * X
        each *= np.minimum(1, clip * design.x_bound * design.y_bound / np.linalg.norm(each, axis=1))[:, None]
    return made, theta, -each.sum(axis=0) - made.diagnostics["ridge"] * theta


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("clip", [0.05, 1.0])
def test_theta_is_the_minimum_with_the_noise_that_was_drawn(small_table, small_domain, target, epsilon, clip):
    design = Design(small_domain, target)
    made, _, found = solved(small_table, design, epsilon, seed=3, clip=clip)
    sd = made.diagnostics["noise_sd"]
    b = np.random.default_rng(3).normal(0.0, sd, len(design.columns))
    event, _ = made.ledger.events
    assert event.sensitivity == pytest.approx(design.x_bound * (1 if design.binary else clip * design.y_bound))
    assert np.linalg.norm(found - b) <= 1.01e-8 * event.sensitivity
    beta = design.x_bound**2 / (4 if design.binary else 1)
    assert event.offset == pytest.approx(math.log(1 + beta / made.diagnostics["ridge"]))
    assert sd == pytest.approx(event.multiplier * event.sensitivity)


@pytest.mark.parametrize("target", TARGETS)
def test_the_noise_for_the_solver_s_error_covers_where_two_runs_to_the_tolerance_may_end(
    small_table, small_domain, target
):
    rows, design = small_table.take(np.arange(5)), Design(small_domain, target)
    for tolerance in (0.5, 1e-3):
        made, theta, _ = solved(rows, design, tolerance=tolerance)
        exact = solved(rows, design, tolerance=1e-12)[1]
        _, error = made.ledger.events
        assert np.linalg.norm(theta - exact) <= error.sensitivity / 2
        bound = made.ledger.events[0].sensitivity
        assert error.sensitivity == pytest.approx(2 * tolerance * bound / made.diagnostics["ridge"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 20.0])
def test_tight_spends_its_budget_and_paper_less(small_table, small_domain, target, epsilon):
    design = Design(small_domain, target)
    made = run(small_table, design, epsilon)
    assert spent(made.ledger, DELTA).epsilon == pytest.approx(epsilon, rel=1e-6)
    assert spent(made.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)
    paper = run(small_table, design, epsilon, calibration="paper")
    assert spent(paper.ledger, DELTA).epsilon < epsilon
    beta = design.x_bound**2 / (4 if design.binary else 1)
    assert paper.diagnostics["ridge"] == pytest.approx(made.diagnostics["ridge"] + beta)


def test_for_labels_objpert_needs_less_noise(small_table, small_domain):
    """At epsilon 1: 1.3 times the noise with about the same ridge."""
    design = Design(small_domain, "sex")
    ours, theirs = (run(small_table, design, mechanism=one).diagnostics for one in (amp, objpert))
    assert ours["noise_sd"] == pytest.approx(1.3 * theirs["noise_sd"])
    assert ours["ridge"] == pytest.approx(1.045 * theirs["ridge"], rel=0.01)
    assert ours["noise_sd"] == pytest.approx(1.3 * design.x_bound / gaussian_mu(0.999, 0.999 * DELTA))


NUMBERS = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in ("x", "z", "y")))
DESIGN = Design(NUMBERS, "y", exact=True)


def of_numbers(x, z, y):
    numbers = {"x": x, "z": z, "y": y}
    return Table(NUMBERS, np.stack([NUMBERS[name].code(v) for name, v in numbers.items()], axis=1), numbers)


def test_a_large_budget_gives_least_squares_and_a_small_one_has_less_error_than_adassp():
    """The mean squared error of 20 runs each, which differ fivefold: 4 standard errors are 40 % of it at most."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(-1, 1, (2, 3000))
    table = of_numbers(x, z, 0.3 * x - 0.2 * z + 0.1 + rng.uniform(-0.3, 0.3, 3000))
    X, y = DESIGN.encode(table)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    assert run(table, DESIGN, 1000.0)[Coefficients].values == pytest.approx(exact, abs=1e-3)
    ours, theirs = [], []
    for seed in range(20):
        ours.append(run(table, DESIGN, 0.5, seed)[Coefficients].values - exact)
        theirs.append(
            linear_statistics(run(table, DESIGN, 0.5, seed, mechanism=adassp), design=DESIGN).coefficients - exact
        )
    assert np.mean(np.square(ours)) < 0.5 * np.mean(np.square(theirs))


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
def test_few_rows_collinear_columns_and_a_constant_target_have_an_estimate(epsilon):
    for rows in (0, 1, 2, 50):
        x = np.linspace(-1, 1, rows)
        assert np.isfinite(run(of_numbers(x, x, np.full(rows, 0.5)), DESIGN, epsilon)[Coefficients].values).all()


def test_a_row_of_zeros_has_no_say():
    x = np.linspace(-1, 1, 21)
    table, design = of_numbers(x, x, np.full(21, 0.5)), Design(NUMBERS, "y", exact=True, intercept=False)
    assert np.isfinite(run(table, design)[Coefficients].values).all()


def test_a_minimum_that_is_not_reached_is_not_released(small_table, small_domain):
    with pytest.raises(ArithmeticError, match="after 200 steps the gradient has norm"):
        run(small_table, Design(small_domain, "grade"), tolerance=1e-30)


@pytest.mark.parametrize(
    ("target", "epsilon", "given", "message"),
    [
        ("grade", 1.0, {"loss": "logistic"}, "loss=logistic needs a target of two levels"),
        ("grade", math.inf, {}, "amp needs a finite epsilon; for a fit without privacy"),
        ("grade", 1e-13, {}, "no ridge is known to be enough"),
        ("grade", 1.0, {"noise_factor": 1.0}, "with noise_factor = 1 at epsilon = 1 no ridge .* raise noise_factor"),
        ("grade", 1.0, {"clip": 0.0}, "amp: clip must be greater than 0"),
        ("grade", 1.0, {"tolerance": 1.0}, "amp: tolerance must lie between 0 and 1"),
        ("sex", 1.0, {"solver_share": 0.0}, "amp: solver_share must lie between 0 and 1"),
        ("sex", 1.0, {"calibration": "papre"}, "unknown calibration 'papre'; did you mean 'paper'"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_drawn(
    small_table, small_domain, target, epsilon, given, message
):
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match=message):
        amp(small_table, Budget(epsilon, DELTA), rng, design=Design(small_domain, target), **given)
    assert rng.normal() == np.random.default_rng(0).normal()
