"""Logistic regression: the degree-2 maximiser, and maximum likelihood on rows."""

import math

import numpy as np
import pytest
import yaml
from scipy.optimize import minimize

from dpbench.config.registry import choices
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.models.linear import linear_marginals
from dpbench.models.logistic import (
    OF_SEVERAL,
    logistic_lbfgs,
    logistic_loss,
    logistic_marginals,
    logistic_rows,
    logistic_statistics,
    phi,
)
from dpbench.models.polynomials import CONSTRUCTIONS, polynomial_coefficients
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Marginals, Release, SufficientStatistics, SyntheticRows

FREE = Budget(math.inf)


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "sex")


@pytest.fixture
def release(small_table):
    return exact_table(small_table, FREE, np.random.default_rng(0))


def rows_of(design, *columns):
    """A release of these rows, one list of codes an attribute."""
    return Release(design.domain, FREE, Ledger(), (SyntheticRows(Table(design.domain, np.array(columns).T)),))


# --- degree 2 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("radius", [2.0, 6.0])
def test_the_fit_maximises_the_polynomial_summed_over_rows(small_table, design, release, construction, radius):
    X, y = design.encode(small_table)
    polynomial = np.polynomial.Polynomial(polynomial_coefficients(phi, 2, radius, construction))
    best = minimize(lambda theta: -polynomial(y * (X @ theta)).mean(), np.zeros(X.shape[1]), tol=1e-10)
    fit = logistic_marginals(release, design=design, radius=radius, construction=construction)
    assert np.linalg.norm(best.x) > 0.1
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-4)


def test_the_direction_is_that_of_least_squares_and_the_scale_is_noted(small_table, design, release):
    least_squares = linear_marginals(release, design=design)
    X, _ = design.encode(small_table)
    order = np.argsort(X @ least_squares.coefficients, kind="stable")
    scales = []
    for construction in CONSTRUCTIONS:
        fit = logistic_marginals(release, design=design, construction=construction)
        assert fit.notes["scale"] > 0
        np.testing.assert_allclose(fit.coefficients, fit.notes["scale"] * least_squares.coefficients, rtol=1e-12)
        assert (np.diff((X @ fit.coefficients)[order]) >= -1e-12).all()
        assert fit.notes["b"] == polynomial_coefficients(phi, 2, 6.0, construction).tolist()
        assert dict(least_squares.notes).items() <= dict(fit.notes).items()
        scales.append(fit.notes["scale"])
    chord = np.log(np.cosh(3)) / 9  # of the minimax, whose second coefficient is the slope of phi in s^2 from 0 to 36
    assert scales == pytest.approx([3.5332, 4.0231, 2 / chord, 1 / chord], abs=1e-4)


def test_statistics_of_the_same_table_agree(small_table, design, release):
    statistics = exact(small_table, FREE, np.random.default_rng(0), design=design)
    for construction in CONSTRUCTIONS:
        one = logistic_marginals(release, design=design, radius=4.0, construction=construction)
        two = logistic_statistics(statistics, design=design, radius=4.0, construction=construction)
        np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-9)
        np.testing.assert_allclose(one.moments[0], two.moments[0], atol=1e-9)


def test_a_ridge_is_added_and_a_singular_matrix_is_solved_as_in_linear_regression(small_domain, design):
    statistics = SufficientStatistics(np.diag([1.0, 3.0]), np.array([2.0, 8.0]), 0.0, 0.0, ridge=1.0)
    fit = logistic_statistics(Release(small_domain, FREE, Ledger(), (statistics,)), design=design)
    assert fit.coefficients / fit.notes["scale"] == pytest.approx([1.0, 2.0])
    noisy = SufficientStatistics(np.diag([2.0, -1.0]), np.array([2.0, 8.0]), 0.0, 0.0)
    fit = logistic_statistics(Release(small_domain, FREE, Ledger(), (noisy,)), design=design)
    assert fit.coefficients / fit.notes["scale"] == pytest.approx([1.0, 0.0])
    assert (fit.notes["rank"], fit.notes["negative_eigenvalues"]) == (1, 1)


# --- maximum likelihood --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_gradient_is_that_of_the_loss(ridge):
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(40, 4)), rng.choice([-1.0, 1.0], 40), rng.normal(size=4)
    value, gradient = logistic_loss(theta, X, y, ridge)
    assert value == pytest.approx(-phi(y * (X @ theta)).mean() + ridge / 2 * (theta**2).sum())
    h = 1e-6
    central = [
        (logistic_loss(theta + h * e, X, y, ridge)[0] - logistic_loss(theta - h * e, X, y, ridge)[0]) / (2 * h)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(gradient, central, atol=1e-8)


def test_far_from_the_plane_the_loss_does_not_overflow():
    X, y = np.array([[1.0]]), np.array([-1.0])
    value, gradient = logistic_loss(np.array([1e4]), X, y, 0.0)
    assert (value, gradient.tolist()) == (1e4, [1.0])


def test_rows_give_the_optimum_in_few_steps(small_table, design, release):
    X, y = design.encode(small_table)
    best = minimize(lambda theta: -phi(y * (X @ theta)).sum(), np.zeros(X.shape[1]), tol=1e-8)
    fit = logistic_rows(release, design=design)
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-4)
    assert -phi(y * (X @ fit.coefficients)).sum() <= best.fun + 1e-6
    assert fit.notes["converged"]
    assert fit.notes["gradient_norm"] <= 1e-10
    assert 3 <= fit.notes["iterations"] <= 8  # what Newton's method takes; a wrong Hessian takes more
    assert fit.notes["loss"] == pytest.approx(best.fun / len(y))


def test_a_table_of_two_by_two_has_the_log_odds():
    design = Design(Domain((Attribute.categorical("a", "pq"), Attribute.categorical("y", "no"))), "y")
    cells = [(0, 0)] * 5 + [(0, 1)] * 15 + [(1, 0)] * 12 + [(1, 1)] * 4
    fit = logistic_rows(rows_of(design, *zip(*cells, strict=True)), design=design)
    assert design.columns == ("a=q", "(intercept)")
    np.testing.assert_allclose(fit.coefficients, [math.log(4 / 12) - math.log(3), math.log(3)], atol=1e-5)


def test_exchanging_the_levels_of_the_target_turns_the_sign(small_table, small_domain, design, release):
    turned = np.array(small_table.codes)
    turned[:, small_domain.index("sex")] ^= 1
    other = exact_table(Table(small_domain, turned), FREE, np.random.default_rng(0))
    for model in (logistic_rows, logistic_marginals):
        one, two = (model(made, design=design).coefficients for made in (release, other))
        np.testing.assert_allclose(one, -two, atol=1e-9)


def test_labels_that_a_plane_separates_end_with_a_finite_stated_answer():
    domain = Domain((Attribute.discrete("a", [0, 1, 2, 3]), Attribute.categorical("y", "no")))
    design = Design(domain, "y")
    separable = rows_of(design, [0, 0, 1, 2, 3, 3], [0, 0, 0, 1, 1, 1])
    norms = []
    for ridge in (1e-4, 1e-8):
        fit = logistic_rows(separable, design=design, ridge=ridge)
        assert fit.notes["converged"]
        assert fit.notes["ridge"] == ridge
        X, y = design.encode(separable[SyntheticRows].table)
        best = minimize(lambda theta, X=X, y=y, r=ridge: logistic_loss(theta, X, y, r)[0], [50.0, 0.0], tol=1e-14)
        assert logistic_loss(fit.coefficients, X, y, ridge)[0] <= best.fun * (1 + 1e-6)
        assert (y * (X @ fit.coefficients) > 0).all()
        norms.append(np.linalg.norm(fit.coefficients))
    assert norms[0] < norms[1] < 1e3


def test_steps_that_reach_too_far_are_shortened():
    """On these four rows Newton's method with full steps climbs to a loss of 2e6."""
    X = np.array([[0.06, 0.032], [-0.052, 0.58], [0.002, 0.006], [-0.834, 0.011]])
    features = [Attribute.discrete(name, sorted({-1, *column, 1})) for name, column in zip("ab", X.T, strict=True)]
    design = Design(Domain((*features, Attribute.categorical("y", "no"))), "y", intercept=False)
    codes = [[a.values.index(x) for x in column] for a, column in zip(features, X.T, strict=True)]
    fit = logistic_rows(rows_of(design, *codes, [1, 1, 1, 0]), design=design)
    np.testing.assert_allclose(
        design.encode(rows_of(design, *codes, [1, 1, 1, 0])[SyntheticRows].table)[0], X, atol=1e-12
    )
    assert fit.notes["converged"]
    assert fit.notes["loss"] < 0.01


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("rows", [[0, 1, 1], [1]])
def test_one_label_only_has_the_ridge_optimum(label, rows):
    design = Design(Domain((Attribute.categorical("a", "pq"), Attribute.categorical("y", "no"))), "y")
    made = rows_of(design, rows, [label] * len(rows))
    fit = logistic_rows(made, design=design, ridge=1e-4)
    X, y = design.encode(made[SyntheticRows].table)
    best = minimize(lambda theta: logistic_loss(theta, X, y, 1e-4)[0], np.zeros(2), tol=1e-14)
    assert fit.notes["converged"]
    assert fit.notes["loss"] == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-3)
    assert fit.coefficients[-1] * (2 * label - 1) > 2


def test_collinear_columns_share_their_weight(small_table, small_domain, release):
    full, reduced = (Design(small_domain, "sex", categorical=name) for name in ("one_hot", "reduced_one_hot"))
    one, two = (logistic_rows(release, design=design) for design in (full, reduced))
    X, _ = full.encode(small_table)
    assert np.linalg.matrix_rank(X) < X.shape[1]
    np.testing.assert_allclose(X @ one.coefficients, reduced.encode(small_table)[0] @ two.coefficients, atol=1e-5)
    work = [i for i, name in enumerate(full.columns) if name.startswith("work=")]
    assert one.coefficients[work].sum() == pytest.approx(one.coefficients[full.columns.index("(intercept)")])


def test_a_fit_that_ran_out_of_steps_says_so_in_its_notes_alone(design, release, recwarn):
    fit = logistic_rows(release, design=design, iterations=1)
    assert not recwarn.list
    assert fit.notes["converged"] is False
    assert fit.notes["iterations"] == 1
    assert fit.notes["gradient_norm"] > 1e-10


# --- what is refused -----------------------------------------------------------------------------------------------


def test_a_target_of_more_than_two_values_is_refused(small_table, small_domain):
    design = Design(small_domain, "grade")
    table = exact_table(small_table, FREE, np.random.default_rng(0))
    statistics = exact(small_table, FREE, np.random.default_rng(0), design=design)
    for model, release in [(logistic_marginals, table), (logistic_rows, table), (logistic_statistics, statistics)]:
        with pytest.raises(UserError, match="a numeric one of just two values; 'grade' is numeric, of 5 bins"):
            model(release, design=design)


def test_a_target_of_several_levels_is_called_so_and_the_models_that_take_it_are_named(small_table, small_domain):
    design = Design(small_domain, "work", classes=True)
    table = exact_table(small_table, FREE, np.random.default_rng(0))
    with pytest.raises(UserError, match=f"'work' is categorical, of 3 levels, which {', '.join(OF_SEVERAL)} take"):
        logistic_rows(table, design=design)
    configs = [yaml.safe_load(path.read_text()) for path in choices("model").values()]
    several = {name for config in configs for name, node in config.items() if node.get("_levels_") == "two or more"}
    assert several == set(OF_SEVERAL)


def test_a_target_of_two_bins_in_the_middle_of_their_bins_is_refused_and_of_two_numbers_is_not():
    x = Attribute.categorical("x", "ab")
    design = Design(Domain((x, Attribute.binned("y", 0, 1, 2))), "y")
    with pytest.raises(UserError, match="'y' is numeric, of 2 bins"):
        logistic_rows(rows_of(design, [0, 1, 1], [0, 1, 0]), design=design)
    design = Design(Domain((x, Attribute.discrete("y", [0.1, 0.3]))), "y")
    assert logistic_rows(rows_of(design, [0, 1, 1, 0], [0, 1, 0, 1]), design=design).notes["converged"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": 0.0}, "radius must lie between 0.001 and 1000, not 0"),
        ({"radius": math.inf}, "radius must lie between"),
        ({"radius": math.nan}, "radius must lie between"),
        ({"construction": "serie"}, "unknown construction 'serie'; did you mean 'series'"),
    ],
)
def test_polynomials_that_are_refused(design, release, wrong, message):
    with pytest.raises(UserError, match=message):
        logistic_marginals(release, design=design, **wrong)


@pytest.mark.parametrize("wrong", [{"ridge": 0.0}, {"tolerance": 0.0}, {"iterations": 0}, {"ridge": math.nan}])
def test_parameters_that_are_not_positive_are_refused(design, release, wrong):
    with pytest.raises(UserError, match=r"logistic_rows: \w+ must be greater than 0"):
        logistic_rows(release, design=design, **wrong)


def test_a_missing_pair_is_named(small_table, small_domain, design):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)[1:]}
    with pytest.raises(UserError, match="no marginal of"):
        logistic_marginals(Release(small_domain, Budget(1.0), Ledger(), (Marginals(marginals),)), design=design)


# --- scikit-learn's L-BFGS -------------------------------------------------------------------------------------------


def lbfgs(release, design, **settings):
    return logistic_lbfgs(release, design=design, rng=np.random.default_rng(0), **settings)


@pytest.mark.parametrize("encoding", ["ordinal", "reduced_one_hot"])
@pytest.mark.parametrize("C", [1.0, 0.01])
def test_lbfgs_penalises_all_but_the_intercept(small_table, small_domain, release, encoding, C):
    design = Design(small_domain, "sex", categorical=encoding, scaled=False)
    X, y = design.encode(small_table)
    penalised = np.array([name != "(intercept)" for name in design.columns])

    def loss(theta):
        return C * np.logaddexp(0, -y * (X @ theta)).sum() + (theta[penalised] ** 2).sum() / 2

    best = minimize(loss, np.zeros(X.shape[1]), tol=1e-10)
    fit = lbfgs(release, design, C=C)
    assert fit.notes["converged"] and fit.notes["rows"] == len(y)
    assert loss(fit.coefficients) <= best.fun * (1 + 1e-6)
    np.testing.assert_allclose(X @ fit.coefficients, X @ best.x, atol=0.02)


def test_lbfgs_without_a_penalty_is_maximum_likelihood(small_table, design, release):
    X, _ = design.encode(small_table)
    exact = X @ logistic_rows(release, design=design).coefficients
    np.testing.assert_allclose(X @ lbfgs(release, design, C=None).coefficients, exact, atol=0.02)
    without = Design(design.domain, "sex", intercept=False)
    assert len(lbfgs(release, without).coefficients) == len(without.columns)


def test_lbfgs_says_when_it_was_stopped_and_on_how_many_rows_it_was_trained(release, design, recwarn):
    notes = lbfgs(release, design, iterations=2, share=0.5).notes
    assert notes == {"rows": 1500, "converged": False, "iterations": 2, "C": 1.0}
    assert not recwarn.list


def test_lbfgs_with_one_label_has_no_estimate():
    design = Design(Domain((Attribute.categorical("a", "pq"), Attribute.categorical("y", "no"))), "y")
    with pytest.raises(NoEstimateError, match=r"all rows to train on \(3\) have the same level of 'y'"):
        lbfgs(rows_of(design, [0, 1, 1], [1, 1, 1]), design)


@pytest.mark.parametrize("wrong", [{"C": 0.0}, {"C": math.nan}, {"iterations": 0}])
def test_settings_of_lbfgs_that_are_not_positive_are_refused(release, design, wrong):
    with pytest.raises(UserError, match="C and iterations must be greater than 0"):
        lbfgs(release, design, **wrong)
