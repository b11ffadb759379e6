"""Sketches with a private least eigenvalue: their cost, by the theorem and between two tables, and their estimates."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpbench.audit.exact_audit import exact_audit
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.gaussmix import gaussmix
from dpbench.mechanisms.hessian_mixing import iterative_hessian_mixing
from dpbench.mechanisms.sketches import sketch
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.projections import projection_delta
from dpbench.releases import Coefficients, SufficientStatistics

DELTA = 1e-5
MECHANISMS = [gaussmix, iterative_hessian_mixing]


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(mechanism, table, design, epsilon=1.0, seed=0, **parameters):
    return mechanism(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


def least_squares(table, design):
    X, y = design.encode(table)
    return np.linalg.lstsq(X, y, rcond=None)[0]


# --- cost ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_tight_calibration_spends_its_budget_and_the_published_one_less(mechanism, epsilon, small_table, design):
    tight, paper = (
        spent(run(mechanism, small_table, design, epsilon, calibration=name).ledger, DELTA).epsilon
        for name in ("tight", "paper")
    )
    assert tight == pytest.approx(epsilon, rel=1e-6) and tight <= epsilon * (1 + 1e-9)
    assert 0.3 * epsilon < paper < 0.9 * epsilon


GAMMA, S, FAILURE, COUNT = 12.0, 2.0, 0.02, 40


def hockey_sticks(epsilon, failure, draws=400_000):
    """Of z and the rows of a sketch, in both orders, on a table of one column without a record and with one of norm 1.

    From the exact densities of what the mechanism releases: where lambda is 0 or 1, and where it is 20 or 21, about as
    much as is asked for, so that eta^2 is often all of it or none. Each with 5 standard errors.
    """
    rng, tau = np.random.default_rng(5), -ndtri(failure)
    for least in (0.0, 20.0):
        for own, other in ((least, least + 1), (least + 1, least)):
            z = own + S * rng.normal(size=draws)
            squares = rng.chisquare(COUNT, size=draws)
            ridge = np.maximum(GAMMA - np.maximum(z - tau * S, 0), 0)
            ratio = (own + ridge) / (other + ridge)
            of_rows = (ratio - 1) * squares / 2 - COUNT * np.log(ratio) / 2
            of_least = ((z - other) ** 2 - (z - own) ** 2) / (2 * S**2)
            part = np.maximum(-np.expm1(epsilon - of_rows - of_least), 0)
            yield part.mean(), 5 * part.std() / math.sqrt(draws)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_no_two_neighbours_tell_more_apart_than_the_theorem_says(epsilon):
    """400,000 draws at a fixed seed; the error rate is below 1e-5."""
    stated = projection_delta(epsilon, math.sqrt(GAMMA - 1), COUNT, 1 / S)
    found = list(hockey_sticks(epsilon, FAILURE))
    assert all(mean <= stated + FAILURE + slack for mean, slack in found)
    assert max(mean for mean, _ in found) > 0.6 * stated, "the bound is far from what two tables show"


def test_an_overestimate_that_is_not_paid_for_tells_more():
    """With tau = 0 half of the sketches have less than gamma; the theorem without its first term would not hold."""
    stated = projection_delta(2.0, math.sqrt(GAMMA - 1), COUNT, 1 / S)
    assert any(mean - slack > stated for mean, slack in hockey_sticks(2.0, 0.5))


@pytest.mark.parametrize(("mechanism", "more"), [(gaussmix, {}), (iterative_hessian_mixing, {"iterations": 1})])
def test_an_exact_audit_finds_almost_all_that_the_ledger_says_and_no_more(mechanism, more):
    """On one column, where a record is all of X'X: it lacks only what gamma lacks of gamma - 1."""
    domain = Domain((Attribute.binned("x", -1, 1, 2), Attribute.binned("y", -1, 1, 2)))
    design = Design(domain, "y", intercept=False)
    table = Table(domain, np.ones((1, 2), dtype=np.int64), {"x": np.ones(1), "y": np.ones(1)})

    def make(table, seed):
        return run(mechanism, table, design, 1.0, seed, **more)

    exact = exact_audit({"one row": (make, table)}, DELTA, relation="add_remove")
    assert 0.93 < exact.epsilon / exact.spent.epsilon <= 1.0


def test_the_regularisation_is_what_the_noisy_eigenvalue_lacks():
    """Of 500 draws, at most 25 (5 %, of 1 % expected; odds below 1e-6) leave an eigenvalue below gamma B^2."""
    gram, squared, below, ridges = np.diag([300.0, 60.0]), 4.0, 0, []
    for seed in range(500):
        rng, ledger = np.random.default_rng(seed), Ledger()
        options = {"squared": squared, "gamma": 20.0, "multiplier": 3.0, "failure": 0.01, "count": 3}
        rows, ridge = sketch(rng, ledger, gram, **options)
        assert rows.shape == (3, 2)
        below += bool(60.0 + ridge < 20.0 * squared)
        ridges.append(ridge)
    assert below <= 25
    z = np.random.default_rng(0).normal(60.0, 12.0)
    assert ridges[0] == pytest.approx(max(80.0 - max(z + 12 * ndtri(0.01), 0), 0))
    events = {event.label: event for event in ledger.events}
    assert events["least eigenvalue"].sensitivity == squared and events["least eigenvalue"].multiplier == 3.0
    assert events["sketch"].multiplier == pytest.approx(math.sqrt(19.0)) and events["sketch"].delta == 0.01


# --- estimates -----------------------------------------------------------------------------------------------------


def test_moments_of_gaussmix_are_unbiased_with_the_noise_of_a_sketch(small_table, design):
    """Means of 300 draws within 5 standard errors, which are those of a projection (error rate below 1e-4)."""
    A = np.column_stack(design.encode(small_table))
    gram, draws = A.T @ A, 300
    released = [run(gaussmix, small_table, design, 1.0, seed) for seed in range(draws)]
    whole = gram + max(one.diagnostics["ridge"] for one in released) * np.eye(len(gram))
    sd = np.sqrt((np.outer(np.diag(whole), np.diag(whole)) + whole**2) / released[0].diagnostics["sketch_rows"])
    xtx, xty = (np.mean([getattr(x[SufficientStatistics], name) for x in released], axis=0) for name in ("xtx", "xty"))
    assert np.all(np.abs(xtx - gram[:-1, :-1]) < 5 * sd[:-1, :-1] / math.sqrt(draws))
    assert np.all(np.abs(xty - gram[:-1, -1]) < 5 * sd[:-1, -1] / math.sqrt(draws))
    assert released[0][SufficientStatistics].xtx_sd <= sd.min() * (1 + 1e-9)


def test_large_budgets_give_least_squares(small_table, design):
    """A sketch of many rows; steps of Hessian mixing contract to it whatever the sketches are."""
    exact = least_squares(small_table, design)
    mixed = linear_statistics(
        run(gaussmix, small_table, design, 1e6, rows_per_column=4000.0), design=design
    ).coefficients
    assert mixed == pytest.approx(exact, abs=0.05)
    steps = run(iterative_hessian_mixing, small_table, design, 1e9, iterations=12)[Coefficients].values
    assert steps == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_sketch_has_more_rows_than_columns(mechanism, small_table, design):
    made = run(mechanism, small_table, design, rows_per_column=1e-3)
    assert made.diagnostics["sketch_rows"] == len(design.columns) + 2


def test_less_noise_is_left_the_larger_the_least_eigenvalue(small_table, design):
    few, many = (
        run(mechanism, small_table.take(np.tile(np.arange(len(small_table)), times)), design).diagnostics["ridge"]
        for mechanism in MECHANISMS[1:]
        for times in (1, 8)
    )
    assert many < few


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_few_rows_collinear_columns_and_a_constant_target_have_an_estimate(mechanism, epsilon):
    names = ("x", "z", "y")
    domain = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in names))
    design = Design(domain, "y", exact=True)
    for rows in (0, 1, 2, 50):
        x = np.linspace(-1, 1, rows) if rows else np.zeros(0)
        numbers = {"x": x, "z": x, "y": np.full(rows, 0.5)}
        codes = np.stack([domain[name].code(column) for name, column in numbers.items()], axis=1)
        release = run(mechanism, Table(domain, codes, numbers), design, epsilon)
        fit = release.get(Coefficients)
        theta = fit.values if fit else linear_statistics(release, design=design).coefficients
        assert np.isfinite(theta).all() and theta.shape == (3,)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bad_parameters_are_named(mechanism, small_table, design):
    name = mechanism.__name__
    with pytest.raises(UserError, match=f"{name}: rows_per_column must be greater than 0"):
        run(mechanism, small_table, design, rows_per_column=0.0)
    for calibration in ("tight", "paper"):
        with pytest.raises(UserError, match=f"{name} needs a finite epsilon"):
            run(mechanism, small_table, design, math.inf, calibration=calibration)
    if mechanism is iterative_hessian_mixing:
        with pytest.raises(UserError, match="iterations must be at least 1"):
            run(mechanism, small_table, design, iterations=0)


def test_the_declared_probability_of_failure_is_that_of_the_margin(small_table, design):
    for calibration, part in (("tight", 0.1), ("paper", 1 / 40)):
        events = run(gaussmix, small_table, design, calibration=calibration).ledger.events
        assert events[1].delta == pytest.approx(part * DELTA)
    assert ndtr(-math.sqrt(2 * math.log(40 / DELTA))) < DELTA / 40  # the authors' tau
