"""Poisson regression: the degree-2 maximiser with counts and their interval, and maximum likelihood on rows."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.models.poisson import counts_of, poisson_loss, poisson_marginals, poisson_rows, poisson_statistics
from dpbench.models.polynomials import CONSTRUCTIONS, polynomial_coefficients
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SufficientStatistics, SyntheticRows

FREE = Budget(math.inf)
THETA = np.array([0.3, -0.2, 0.25, 0.6])
DOMAIN = Domain(
    (
        Attribute.binned("a", 0, 8, 4),
        Attribute.discrete("y", range(2, 22), "calls"),  # bounds off zero: the scaled y is (y - 11.5) / 9.5
        Attribute.categorical("b", "pqr"),
    )
)


@pytest.fixture
def design():
    return Design(DOMAIN, "y")


@pytest.fixture
def table(design):
    """5,000 rows whose count follows the model (the rare counts outside of 2 .. 21 are moved there)."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, list(DOMAIN.sizes.values()), size=(5000, 3))
    X, _ = design.encode(Table(DOMAIN, codes))
    codes[:, 1] = np.clip(rng.poisson(np.exp(X @ THETA + 1.5)), 2, 21) - 2
    return Table(DOMAIN, codes)


def made(mechanism, table, **parameters):
    return mechanism(table, FREE, np.random.default_rng(0), **parameters)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize(("radius", "center"), [(0.5, 2.0), (6.0, 0.0)])
def test_the_fit_maximises_the_polynomial_summed_over_rows(table, design, construction, radius, center):
    X, _ = design.encode(table)
    y = table.column("y") + 2.0
    c = polynomial_coefficients(np.exp, 2, radius, construction)

    def loss(theta):
        s = X @ theta
        return np.mean(math.exp(center) * np.polynomial.Polynomial(c)(s - center) - y * s)

    best = minimize(loss, np.zeros(X.shape[1]), tol=1e-10)
    settings = {"radius": radius, "center": center, "construction": construction}
    for fit in (
        poisson_marginals(made(exact_table, table), design=design, **settings),
        poisson_statistics(made(exact, table, design=design), design=design, **settings),
    ):
        np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-4)
        np.testing.assert_allclose(fit.moments[0], X.T @ X, atol=1e-9)
        np.testing.assert_allclose(fit.moments[1], X.T @ ((y - 11.5) / 9.5), atol=1e-9)
        assert fit.notes["b"] == c.tolist()


def test_the_center_is_that_of_the_released_counts(table, design):
    release = made(exact_table, table)
    fit = poisson_marginals(release, design=design)
    mean = np.mean(table.column("y") + 2)
    assert fit.notes["mean"] == pytest.approx(mean)
    assert fit.notes["center"] == pytest.approx(math.log(mean))
    np.testing.assert_allclose(
        fit.coefficients, poisson_marginals(release, design=design, center=math.log(mean)).coefficients, rtol=1e-9
    )


def test_the_published_interval_is_far_from_maximum_likelihood_and_the_default_is_near(table, design):
    release = made(exact_table, table)
    X, _ = design.encode(table)
    best = poisson_rows(release, design=design).coefficients
    near = poisson_marginals(release, design=design).coefficients
    published = poisson_marginals(release, design=design, radius=6.0, center=0.0).coefficients
    losses = [poisson_loss(theta, X, table.column("y") + 2.0, 0.0)[0] for theta in (best, near, published)]
    assert losses[0] < losses[1] < losses[0] + 0.05
    assert losses[2] > losses[0] + 3
    s = np.linspace(-6, 6, 20_001)
    for construction, error in (("interpolation", 179.12), ("series", 119.94)):
        b = polynomial_coefficients(np.exp, 2, 6.0, construction)
        assert np.abs(np.polynomial.Polynomial(b)(s) - np.exp(s)).max() == pytest.approx(error, abs=0.01)


@pytest.mark.parametrize("mean", [-1.0, 40.0])
def test_a_released_mean_that_no_count_has_gives_the_published_center(design, mean):
    n = 100.0
    xtx = n * np.eye(4)
    xty = np.array([0.0, 0.0, 0.0, n * (mean - 11.5) / 9.5])
    noisy = Release(DOMAIN, FREE, Ledger(), (SufficientStatistics(xtx, xty, 1.0, 1.0),))
    fit = poisson_statistics(noisy, design=design)
    assert fit.notes["mean"] == pytest.approx(mean)
    assert fit.notes["center"] == 0
    assert np.isfinite(fit.coefficients).all()


@pytest.mark.parametrize("largest", [8, 8e6])
def test_the_fitted_means_do_not_depend_on_the_units_of_the_design(table, largest):
    """Counts that are not scaled are counts already; a column in a large unit still counts."""
    wide = Domain((Attribute.binned("a", 0, largest, 4), *DOMAIN.attributes[1:]))
    rows, means = Table(wide, table.codes), []
    for design in (Design(wide, "y", scaled=False), Design(wide, "y")):
        X = design.encode(rows)[0]
        for model, mechanism, given in (
            (poisson_marginals, exact_table, {}),
            (poisson_statistics, exact, {"design": design}),
        ):
            fit = model(made(mechanism, rows, **given), design=design)
            assert fit.notes["rank"] == 4
            means.append(np.exp(X @ fit.coefficients))
    for other in means[1:]:
        np.testing.assert_allclose(other, means[0], rtol=1e-6)


def test_a_ridge_pulls_towards_the_center(table, design):
    statistics = made(exact, table, design=design)[SufficientStatistics]
    wide = SufficientStatistics(statistics.xtx, statistics.xty, 0.0, 0.0, ridge=1e9)
    fit = poisson_statistics(Release(DOMAIN, FREE, Ledger(), (wide,)), design=design)
    np.testing.assert_allclose(fit.coefficients, [0, 0, 0, fit.notes["center"]], atol=1e-4)


def test_adassp_with_a_large_budget_gives_the_exact_fit(table, design):
    noisy = adassp(table, Budget(1e5), np.random.default_rng(0), design=design)
    one = poisson_statistics(noisy, design=design)
    two = poisson_statistics(made(exact, table, design=design), design=design)
    np.testing.assert_allclose(one.coefficients, two.coefficients, atol=0.02)


def test_rows_give_maximum_likelihood(table, design):
    X, _ = design.encode(table)
    y = counts_of(design, table)
    assert y.tolist() == (table.column("y") + 2).tolist()
    fit = poisson_rows(made(exact_table, table), design=design)
    best = minimize(lambda theta: np.mean(np.exp(X @ theta) - y * (X @ theta)), np.zeros(4), tol=1e-10)
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-4)
    assert fit.notes["converged"]
    assert fit.notes["loss"] == pytest.approx(best.fun)
    np.testing.assert_allclose(fit.coefficients[:3], THETA[:3], atol=0.05)  # four standard errors or more


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    X, y, theta, h = rng.normal(size=(40, 4)), rng.poisson(2, 40).astype(float), rng.normal(size=4) / 3, 1e-6
    value, gradient = poisson_loss(theta, X, y, 0.3)
    assert value == pytest.approx(np.mean(np.exp(X @ theta) - y * (X @ theta)) + 0.15 * (theta**2).sum())
    central = [
        (poisson_loss(theta + h * e, X, y, 0.3)[0] - poisson_loss(theta - h * e, X, y, 0.3)[0]) / (2 * h)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(gradient, central, atol=1e-7)


def test_counts_that_are_all_zero_end_with_a_finite_fit():
    design = Design(Domain((Attribute.categorical("a", "pq"), Attribute.discrete("y", range(3)))), "y")
    rows = Release(
        design.domain, FREE, Ledger(), (SyntheticRows(Table(design.domain, np.array([[0, 0], [1, 0], [1, 0]]))),)
    )
    fit = poisson_rows(rows, design=design)
    assert fit.notes["converged"]
    assert -30 < fit.coefficients[-1] < -5


def test_a_fit_that_ran_out_of_steps_says_so_in_its_notes_alone(table, design, recwarn):
    fit = poisson_rows(made(exact_table, table), design=design, iterations=1)
    assert fit.notes["converged"] is False
    assert fit.notes["iterations"] == 1
    assert not recwarn.list


@pytest.mark.parametrize(
    "target",
    [
        Attribute.categorical("y", "no"),
        Attribute.binned("y", 0, 6, 3),  # its middles are whole numbers
        Attribute.discrete("y", [-1, 0, 1]),
        Attribute.discrete("y", [0, 0.5, 1]),
    ],
)
def test_a_target_that_is_not_a_count_is_refused(target):
    design = Design(Domain((Attribute.categorical("a", "pq"), target)), "y")
    table = Table(design.domain, np.array([[0, 0], [1, 1]]))
    for model, release in [
        (poisson_marginals, made(exact_table, table)),
        (poisson_statistics, made(exact, table, design=design)),
        (poisson_rows, made(exact_table, table)),
    ]:
        with pytest.raises(UserError, match=r"needs a target of listed whole numbers of at least 0.* 'y' is not one"):
            model(release, design=design)


def test_what_else_is_refused(table, design):
    release = made(exact_table, table)
    with pytest.raises(UserError, match=r"need design.intercept=true"):
        poisson_marginals(release, design=Design(DOMAIN, "y", intercept=False))
    with pytest.raises(UserError, match="radius = 900 is too large: the function overflows"):
        poisson_marginals(release, design=design, radius=900.0)
    for center in (-800.0, 800.0, math.nan):
        with pytest.raises(UserError, match="center must lie between -700 and 700"):
            poisson_marginals(release, design=design, center=center)
    for wrong in ({"ridge": 0.0}, {"tolerance": 0.0}, {"iterations": 0}):
        with pytest.raises(UserError, match=r"poisson_rows: \w+ must be greater than 0"):
            poisson_rows(release, design=design, **wrong)
