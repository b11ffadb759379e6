"""Logistic regression of degree 4: moments from marginals, the maximum over the concave region, and what is refused."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact_table
from dpbench.models import logistic_degree4 as module
from dpbench.models.logistic import logistic_loss, logistic_marginals, logistic_rows, phi
from dpbench.models.logistic_degree4 import concave_maximum, fourth_moments, logistic_marginals_degree4
from dpbench.models.polynomials import CONSTRUCTIONS, polynomial_coefficients
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

DOMAIN = Domain(
    (
        Attribute.binned("a", 0, 8, 4),
        Attribute.categorical("b", "pqr"),
        Attribute.categorical("one", "o"),
        Attribute.discrete("c", [-1, 0, 3]),
        Attribute.categorical("y", "no"),
        Attribute.categorical("d", "st"),
        Attribute.categorical("e", "uvw"),
    )
)


def table_of(signal, n=4000, seed=0):
    """Rows whose label follows a logistic model; `signal` multiplies its coefficients."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, list(DOMAIN.sizes.values()), size=(n, len(DOMAIN.names)))
    theta = signal * np.array([1.5, -0.7, 0.4, 1.0, -0.8, 0.5, -0.6, 0.2])
    scores = Design(DOMAIN, "y").encode(Table(DOMAIN, codes))[0] @ theta
    codes[:, DOMAIN.index("y")] = rng.random(n) < 1 / (1 + np.exp(-scores))
    return Table(DOMAIN, codes)


def release_of(table, workload=4):
    return exact_table(table, Budget(math.inf), np.random.default_rng(0), workload=workload)


def objective(theta, X, y, b):
    return np.polynomial.Polynomial(b)(y * (X @ theta)).mean()


def hessian(theta, X, b):
    return 2 * b[2] * X.T @ X / len(X) + 12 * b[4] * (X * ((X @ theta) ** 2)[:, None]).T @ X / len(X)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("categorical", ["reduced_one_hot", "one_hot"])
@pytest.mark.parametrize("workload", [4, [DOMAIN.names]])
def test_moments_from_marginals_are_those_of_the_rows(intercept, categorical, workload):
    table = table_of(1.0, 200)
    design = Design(DOMAIN, "y", intercept, categorical)
    X, _ = design.encode(table)
    moments = fourth_moments(design, release_of(table, workload)[Marginals].tables)
    np.testing.assert_allclose(moments, np.einsum("ia,ib,ic,id->abcd", X, X, X, X), atol=1e-9)


def test_fewer_than_four_attributes_serve_with_the_whole_table(small_table, small_domain):
    design = Design(small_domain, "sex")
    X, _ = design.encode(small_table)
    moments = fourth_moments(design, release_of(small_table)[Marginals].tables)
    np.testing.assert_allclose(moments, np.einsum("ia,ib,ic,id->abcd", X, X, X, X), atol=1e-8)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("radius", [4.0, 6.0])
def test_a_local_maximum_of_the_polynomial_summed_over_rows_is_found(construction, radius):
    table = table_of(0.8)
    design = Design(DOMAIN, "y")
    X, y = design.encode(table)
    b = polynomial_coefficients(phi, 4, radius, construction)
    fit = logistic_marginals_degree4(release_of(table), design=design, radius=radius, construction=construction)
    assert fit.notes["converged"]
    assert fit.notes["local_maximum"]
    best = minimize(lambda theta: -objective(theta, X, y, b), fit.coefficients, tol=1e-10)
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-4)
    assert np.linalg.eigvalsh(hessian(fit.coefficients, X, b))[-1] < 0
    assert fit.notes["score_rms"] == pytest.approx(math.sqrt(np.mean((X @ fit.coefficients) ** 2)))
    beyond = np.mean((X @ fit.coefficients) ** 4) / radius**4
    assert fit.notes["beyond_radius_at_most"] == pytest.approx(min(beyond, 1.0))
    assert np.mean(np.abs(X @ fit.coefficients) > radius) <= fit.notes["beyond_radius_at_most"]


@pytest.mark.parametrize(("signal", "seed"), [(0.8, 0), (0.8, 1), (1.3, 2), (1.3, 3)])
def test_degree_four_is_nearer_to_maximum_likelihood_than_degree_two(signal, seed):
    table = table_of(signal, seed=seed)
    design = Design(DOMAIN, "y")
    X, y = design.encode(table)
    release = release_of(table)
    two, four, best = (
        logistic_loss(model(release, design=design).coefficients, X, y, 0.0)[0]
        for model in (logistic_marginals, logistic_marginals_degree4, logistic_rows)
    )
    assert best < four < two
    assert four - best < 0.7 * (two - best)


def test_without_a_local_maximum_the_fit_is_the_largest_on_the_edge_of_the_concave_region():
    table = table_of(6.0)
    design = Design(DOMAIN, "y")
    X, y = design.encode(table)
    b = polynomial_coefficients(phi, 4, 6.0, "series")
    fit = logistic_marginals_degree4(release_of(table), design=design, construction="series")
    assert fit.notes["converged"]
    assert not fit.notes["local_maximum"]
    assert fit.notes["gradient_norm"] > 1e-3
    theta = fit.coefficients
    assert np.linalg.eigvalsh(hessian(theta, X, b))[-1] == pytest.approx(0, abs=1e-7)
    value = objective(theta, X, y, b)
    rng = np.random.default_rng(0)
    inside = 0
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(300):
            other = theta * rng.uniform(0.9, 1.0) + size * rng.normal(size=len(theta))
            if np.linalg.eigvalsh(hessian(other, X, b))[-1] < 0:
                inside += 1
                assert objective(other, X, y, b) <= value + 1e-9
    assert inside > 200
    assert objective(100 * theta, X, y, b) > value  # the polynomial itself has no maximum


@pytest.mark.parametrize("strength", [0.2, 0.5, 5.0])
def test_one_feature_by_hand(strength):
    """f(u) = h u - u^2 + u^4 on |u| <= sqrt(1/6), where f'' = -2 + 12 u^2 is negative."""
    u, _, converged = concave_maximum(
        np.array([0.0, 1.0, -1.0, 0.0, 1.0]), np.array([strength]), np.ones((1, 1, 1, 1)), 1e-10, 200
    )

    def slope(u):
        return strength - 2 * u + 4 * u**3

    edge = math.sqrt(1 / 6)
    assert converged
    assert u[0] == pytest.approx(brentq(slope, 0, edge) if slope(edge) < 0 else edge, abs=1e-5)


def test_the_derivatives_are_those_of_the_barrier():
    rng = np.random.default_rng(0)
    x, b, h = rng.normal(size=(50, 3)), np.array([0.0, 0.5, -1.0, 0.0, 0.01]), rng.normal(size=3)
    K = np.einsum("ia,ib,ic,id->abcd", x, x, x, x) / 50
    u, step = rng.normal(size=3) / 3, 1e-5
    _, gradient, hessian = module._barrier(b, h, K, u, 0.1)
    around = [[module._barrier(b, h, K, u + sign * step * e, 0.1) for sign in (1, -1)] for e in np.eye(3)]
    np.testing.assert_allclose(gradient, [(up[0] - down[0]) / (2 * step) for up, down in around], rtol=1e-6)
    np.testing.assert_allclose(hessian, [(up[1] - down[1]) / (2 * step) for up, down in around], rtol=1e-6)


def test_collinear_columns_give_the_same_scores():
    table = table_of(0.8)
    full, reduced = (Design(DOMAIN, "y", categorical=name) for name in ("one_hot", "reduced_one_hot"))
    one, two = (logistic_marginals_degree4(release_of(table), design=design) for design in (full, reduced))
    assert one.notes["rank"] == two.notes["rank"] == two.notes["columns"] < one.notes["columns"]
    scores = full.encode(table)[0] @ one.coefficients, reduced.encode(table)[0] @ two.coefficients
    np.testing.assert_allclose(*scores, atol=1e-5)


def test_exchanging_the_levels_of_the_target_turns_the_sign():
    table = table_of(0.8)
    turned = np.array(table.codes)
    turned[:, DOMAIN.index("y")] ^= 1
    design = Design(DOMAIN, "y")
    one, two = (
        logistic_marginals_degree4(release_of(rows), design=design).coefficients
        for rows in (table, Table(DOMAIN, turned))
    )
    np.testing.assert_allclose(one, -two, atol=1e-6)


def test_a_fit_that_ran_out_of_steps_says_so():
    fit = logistic_marginals_degree4(release_of(table_of(0.8)), design=Design(DOMAIN, "y"), iterations=2)
    assert not fit.notes["converged"]
    assert fit.notes["iterations"] == 2


def test_what_is_refused(small_table, small_domain):
    table = table_of(1.0, 100)
    design = Design(DOMAIN, "y")
    release = release_of(table)
    with pytest.raises(UserError, match=r"moments of 8 features take 0.0312 MB, but the limit is 0.01 MB"):
        logistic_marginals_degree4(release, design=design, max_moments_mb=0.01)
    for wrong in ({"tolerance": 0.0}, {"iterations": 0}):
        with pytest.raises(UserError, match="must be greater than 0"):
            logistic_marginals_degree4(release, design=design, **wrong)
    with pytest.raises(UserError, match=r"no marginal of \(a, b, one\); its workload must contain all 3-way ones"):
        logistic_marginals_degree4(release_of(table, list(combinations(DOMAIN.names, 2))), design=design)
    with pytest.raises(UserError, match="'grade' is numeric, of 5 bins"):
        logistic_marginals_degree4(release_of(small_table), design=Design(small_domain, "grade"))


def test_a_column_in_a_large_unit_counts_as_in_a_small_one():
    table, scores = table_of(1.0), []
    for largest in (8, 8e6):
        wide = Domain((Attribute.binned("a", 0, largest, 4), *DOMAIN.attributes[1:]))
        design = Design(wide, "y", scaled=False)
        rows = Table(wide, table.codes)
        fit = logistic_marginals_degree4(release_of(rows), design=design)
        assert fit.notes["rank"] == 8
        scores.append(design.encode(rows)[0] @ fit.coefficients)
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=1e-4)
