"""Least squares with consistency and non-negativity: the minimum of a quadratic programme, and what it keeps."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbench.inference import InferenceError
from dpbench.inference.nonnegative import nonnegative
from dpbench.inference.residuals import Residuals, centred

from .helpers import marginal

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = list(combinations(SIZES, 2))
MEASURED = [r for k in range(3) for r in combinations(SIZES, k)]


def noisy(seed, rows=60, public=False):
    """The residuals of a sparse table of few rows, with noise that makes many cells negative."""
    rng = np.random.default_rng(seed)
    joint = rng.multinomial(rows, rng.dirichlet(np.full(24, 0.3))).reshape(2, 3, 4).astype(float)
    variances = {r: float(rng.uniform(4, 30)) for r in MEASURED}
    if public:
        variances[()] = 0.0
    values = {}
    for r in MEASURED:
        table = marginal(joint, list(SIZES), r)
        values[r] = centred(table) + centred(rng.normal(0, math.sqrt(variances[r]), table.shape))
    return Residuals(SIZES, values, variances)


def loss(found, given):
    return sum(np.sum((found.values[r] - given.values[r]) ** 2) / (2 * given.variances[r]) for r in MEASURED if r)


def test_it_is_the_minimum_of_the_quadratic_programme():
    given = noisy(0)
    shapes = [given.values[r].shape for r in MEASURED]
    ends = np.cumsum([math.prod(shape) for shape in shapes])

    def of(x):
        parts = np.split(x, ends[:-1])
        values = {r: centred(p.reshape(s)) for r, p, s in zip(MEASURED, parts, shapes, strict=True)}
        return Residuals(SIZES, values, given.variances)

    def cells(x):
        return np.concatenate([of(x).marginal(r).ravel() for r in PAIRS])

    M = np.array([cells(e) for e in np.eye(ends[-1])]).T
    best = minimize(
        lambda x: loss(of(x), given),
        np.ones(ends[-1]),
        constraints=[
            {"type": "ineq", "fun": lambda x: M @ x, "jac": lambda x: M},
            {"type": "eq", "fun": lambda x: x[0] - given.total},  # the residual of no attribute
        ],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    found = nonnegative(given, PAIRS, tolerance=1e-6, iterations=5000)
    assert cells(best.x).min() > -1e-8
    assert min(given.marginal(r).min() for r in PAIRS) < -1
    assert loss(found.residuals, given) == pytest.approx(best.fun, rel=1e-4)
    for r in PAIRS:
        np.testing.assert_allclose(found.residuals.marginal(r), of(best.x).marginal(r), atol=1e-3)


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_its_tables_agree_and_are_not_negative_but_for_the_tolerance(seed, public):
    given = noisy(seed, public=public)
    found = nonnegative(given, PAIRS, tolerance=0.01)
    tables = {r: found.residuals.marginal(r) for r in PAIRS}
    np.testing.assert_allclose(tables["a", "b"].sum(axis=0), tables["b", "c"].sum(axis=1))
    assert found.gap == pytest.approx(max(0.0, *(-t.min() for t in tables.values())))
    assert found.gap <= 0.01 * max(math.sqrt(given.variance(r)) for r in PAIRS)
    assert all(t.sum() == pytest.approx(given.total) for t in tables.values())


def test_cells_held_at_zero_do_not_raise_the_number_of_rows():
    """Of a sparse pair, whose total all measurements know well: its shares would shrink with a total that grows."""
    sizes, rng, sd = {"a": 30, "b": 30}, np.random.default_rng(0), 5.0
    exact = np.zeros((30, 30))
    exact[:3, :3] = 100.0
    values = {r: centred(marginal(exact, list(sizes), r) + rng.normal(0, sd, [sizes[n] for n in r])) for r in
              [(), ("a",), ("b",), ("a", "b")]}  # fmt: skip
    given = Residuals(sizes, values, {(): sd**2, **dict.fromkeys(list(values)[1:], sd**2)})
    found = nonnegative(given, [("a", "b")]).residuals
    assert found.total == given.total and abs(found.total - 900) < 4 * sd  # P < 1e-4
    assert found.marginal(("a", "b")).sum() == pytest.approx(given.total)
    without = Residuals(sizes, {**values, (): np.asarray(-3.0)}, given.variances)
    assert nonnegative(without, [("a", "b")]).residuals.total == 1.0, "a table has at least one row"


def test_tables_without_negative_cells_stay_as_they_are():
    values = {r: centred(np.full([SIZES[name] for name in r], 24.0)) for r in MEASURED}
    given = Residuals(SIZES, {**values, (): np.asarray(240.0)}, dict.fromkeys(MEASURED, 4.0))
    found = nonnegative(given, PAIRS)
    assert (found.steps, found.gap) == (1, 0.0)
    assert all(np.array_equal(found.residuals.values[r], given.values[r]) for r in MEASURED)


def test_a_smaller_marginal_adds_no_constraint():
    """Its cells are sums of those of a larger one."""
    given = noisy(1)
    one, two = (nonnegative(given, cliques).residuals for cliques in (PAIRS, [*PAIRS, ("a",), ()]))
    assert all(np.array_equal(one.values[r], two.values[r]) for r in MEASURED)


def test_a_nearer_tolerance_is_nearer_and_effort_is_checked():
    given = noisy(2)
    rough, near = (nonnegative(given, PAIRS, tolerance=t) for t in (1.0, 1e-4))
    assert rough.steps < near.steps and near.gap < rough.gap
    assert nonnegative(given, PAIRS, iterations=3).steps == 3
    with pytest.raises(InferenceError, match="iterations is 0"):
        nonnegative(given, PAIRS, iterations=0)
