"""FastMix: its cost, between two tables and by Renyi divergence, what it mixes, and its estimates."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard as dense
from scipy.special import ndtri

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.fastmix import fastmix, hadamard, mixed
from dpbench.mechanisms.gaussmix import gaussmix
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.projections import projection_rdp, two_sided_epsilon, two_sided_rdp
from dpbench.releases import SufficientStatistics

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(table, design, epsilon=1.0, seed=0, **parameters):
    return fastmix(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


# --- cost ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_it_spends_its_budget(epsilon, small_table, design):
    cost = spent(run(small_table, design, epsilon).ledger, DELTA).epsilon
    assert cost == pytest.approx(epsilon, rel=1e-6) and cost <= epsilon * (1 + 1e-9)


def renyi(order, M, other):
    """Of N(0, M) and N(0, `other`)."""
    between = order * other + (1 - order) * M
    if np.linalg.eigvalsh(between)[0] <= 0:
        return math.inf
    logs = [np.linalg.slogdet(one)[1] for one in (between, M, other)]
    return -(logs[0] - (1 - order) * logs[1] - order * logs[2]) / (2 * (order - 1))


@pytest.mark.parametrize("order", [1.1, 2.0, 5.0])
@pytest.mark.parametrize("multiplier", [1.1, 3.0])
def test_no_change_in_two_directions_exceeds_the_bound_of_its_renyi_divergence(order, multiplier):
    """1,000 pairs of matrices, as near to the condition as they can be."""
    rng, worst = np.random.default_rng(3), 0.0
    bound = two_sided_rdp(order, multiplier, 1)
    for _ in range(1000):
        v, w = rng.normal(size=(2, 3))
        w *= rng.choice([0.0, 0.1, 1.0, 10.0])
        E = np.outer(v, v) + np.outer(v, w) + np.outer(w, v)
        E /= np.abs(np.linalg.eigvalsh(E)).sum()
        M = np.diag(rng.choice([0.0, 1.0], size=3)) * rng.exponential(5.0)
        least = min(np.linalg.eigvalsh(M)[0], np.linalg.eigvalsh(M + E)[0])
        M += (multiplier**2 - least) * np.eye(3)
        worst = max(worst, renyi(order, M + E, M), renyi(order, M, M + E))
    assert 0.9 * bound < worst <= bound * (1 + 1e-9) if math.isfinite(bound) else worst > 0


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_a_change_in_one_direction_is_the_worst_where_the_noise_is_large(order):
    assert two_sided_rdp(order, 5.0, 7) == projection_rdp(order, 5.0, 7)


GAMMA, S, FAILURE, COUNT, N, K = 12.0, 2.0, 0.01, 40, 16, 4


def hockey_sticks(epsilon, failure, draws=200_000):
    """Of all that is released, in both orders, on one column of records of 1 and one more of 1 or -1 at some place, for
    40 matrices F. From the exact densities of m~, z and the rows. Each with 5 standard errors.
    """
    rng, tau = np.random.default_rng(5), -ndtri(failure)
    for _ in range(40):
        signs, places = rng.choice([-1.0, 1.0], size=N), rng.permutation(N)
        chosen = np.isin(np.arange(N), rng.permutation(N)[:K])
        few = np.ones((rng.integers(0, N), 1))
        more = np.vstack([few, [[rng.choice([-1.0, 1.0])]]])
        F = dense(N)[chosen] * signs / math.sqrt(K)
        c = np.abs(F.T @ F - np.eye(N)).max()
        tables = [
            (float(gram[0, 0]), m) for gram, m in (mixed(A, places[: len(A)], signs, chosen) for A in (few, more))
        ]
        for (own, m), (other, m2) in (tables, tables[::-1]):
            first = m + S * c * rng.normal(size=draws)
            Q = 1 + 2 * np.maximum(first + tau * S * c, 0)
            z = own + S * Q * rng.normal(size=draws)
            ridge = np.maximum(GAMMA * Q - np.maximum(z - tau * S * Q, 0), 0)
            ratio, squares = (own + ridge) / (other + ridge), rng.chisquare(COUNT, size=draws)
            loss = (ratio - 1) * squares / 2 - COUNT * np.log(ratio) / 2
            loss += ((z - other) ** 2 - (z - own) ** 2) / (2 * (S * Q) ** 2)
            loss += ((first - m2) ** 2 - (first - m) ** 2) / (2 * (S * c) ** 2)
            part = np.maximum(-np.expm1(epsilon - loss), 0)
            yield part.mean(), 5 * part.std() / math.sqrt(draws)


def test_no_two_neighbours_tell_more_apart_than_the_theorem_says():
    """80 means of 200,000 draws at a fixed seed; the error rate is below 1e-4."""
    stated = 0.02
    epsilon = two_sided_epsilon(math.sqrt(GAMMA - 1), COUNT, stated, math.sqrt(2) / S)
    found = list(hockey_sticks(epsilon, FAILURE))
    assert all(mean <= stated + 2 * FAILURE + slack for mean, slack in found)
    assert max(mean for mean, _ in found) > 0.05 * stated, "the bound is far from what two tables show"


# --- what is mixed ----------------------------------------------------------------------------------------------------


def test_rows_are_mixed_as_by_the_whole_matrix():
    rng = np.random.default_rng(0)
    A, signs, places = rng.normal(size=(20, 40)), rng.choice([-1.0, 1.0], size=32), rng.permutation(32)[:20]
    chosen = np.isin(np.arange(32), rng.permutation(32)[:8])
    assert hadamard(np.eye(32)) == pytest.approx(dense(32))
    F, placed = dense(32)[chosen] * signs / math.sqrt(8), np.zeros((32, 40))
    placed[places] = A
    gram, m = mixed(A, places, signs, chosen)
    assert gram == pytest.approx((F @ placed).T @ (F @ placed))
    assert m == pytest.approx(np.linalg.norm((F.T @ F - np.eye(32)) @ placed, axis=1).max())
    assert np.diag(F.T @ F) == pytest.approx(np.ones(32))


def test_moments_are_unbiased(small_table, design):
    """Means of 400 draws within 5 standard errors (error rate below 1e-4), with eta^2 off."""
    A = np.column_stack(design.encode(small_table))
    made = [run(small_table, design, 50.0, seed, most_rows=4096)[SufficientStatistics] for seed in range(400)]
    for name, exact in (("xtx", (A.T @ A)[:-1, :-1]), ("xty", (A.T @ A)[:-1, -1])):
        values = np.array([getattr(one, name) for one in made])
        assert np.all(np.abs(values.mean(axis=0) - exact) < 5 * values.std(axis=0) / math.sqrt(len(made)))


# --- estimates --------------------------------------------------------------------------------------------------------


def test_a_large_budget_gives_nearly_least_squares(small_table, design):
    X, y = design.encode(small_table)
    many = run(small_table, design, 1e6, rows_per_column=4000.0, most_rows=len(y))
    assert many.diagnostics["mixed_rows"] == 2 ** math.ceil(math.log2(len(y))) // 2, "never more than half"
    theta = linear_statistics(many, design=design).coefficients
    error, least = (np.mean((X @ one - y) ** 2) for one in (theta, np.linalg.lstsq(X, y, rcond=None)[0]))
    assert error < least + 0.1 * np.var(y)


def test_the_mixing_of_few_rows_costs_a_ridge_that_gaussmix_does_not_need(small_table, design):
    budget, rng = Budget(1.0, DELTA), np.random.default_rng(0)
    less = gaussmix(small_table, budget, rng, design=design).diagnostics["ridge"]
    few, more = (run(small_table, design, mixed_per_column=one).diagnostics for one in (2.0, 2000.0))
    assert few["ridge"] > more["ridge"] > less and few["inflation"] > more["inflation"] > 1


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_few_rows_collinear_columns_and_a_constant_target_have_an_estimate(rows):
    names = ("x", "z", "y")
    domain = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in names))
    design = Design(domain, "y", exact=True)
    x = np.linspace(-1, 1, rows)
    numbers = {"x": x, "z": x, "y": np.full(rows, 0.5)}
    codes = np.stack([domain[name].code(column) for name, column in numbers.items()], axis=1)
    release = run(Table(domain, codes, numbers), design, most_rows=50)
    assert np.isfinite(linear_statistics(release, design=design).coefficients).all()


def test_bad_parameters_are_named(small_table, design):
    for name in ("rows_per_column", "mixed_per_column", "most_rows"):
        with pytest.raises(UserError, match=f"fastmix: {name} must be greater than 0"):
            run(small_table, design, **{name: 0})
    with pytest.raises(UserError, match="fastmix needs a finite epsilon"):
        run(small_table, design, math.inf)
    with pytest.raises(UserError, match="more than most_rows=10 rows; give a bound that does not come from it"):
        run(small_table, design, most_rows=10)
