"""DP-SGD by rule: what follows from n, epsilon and the bounds, the noise, and how near it comes."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.dpsgd_rule import dpsgd_rule
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Coefficients

DELTA = 1e-5
TARGETS = {"logistic": Attribute.categorical("y", ["no", "yes"]), "squared": Attribute.binned("y", -1, 1, 40)}


def rows_of(loss, n, seed=0):
    """Two features on [-1, 1], with the target of a logistic or a linear model."""
    rng = np.random.default_rng(seed)
    domain = Domain((Attribute.binned("a", -1, 1, 40), Attribute.binned("b", -1, 1, 40), TARGETS[loss]))
    codes = rng.integers(0, 40, size=(n, 2))
    scores = (codes / 20 - 1) @ [2.0, -1.0]
    y = rng.random(n) < 1 / (1 + np.exp(-scores)) if loss == "logistic" else np.clip(scores * 6 + 20, 0, 39)
    return Table(domain, np.column_stack([codes, y]).astype(np.int64)), Design(domain, "y")


def run(table, design, epsilon=1.0, seed=0, **given):
    given = {"expected_rows": max(len(table), 1), **given}
    return dpsgd_rule(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **given)


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_the_setting_follows_from_the_budget_and_the_budget_is_spent(loss, epsilon):
    table, design = rows_of(loss, 400)
    made, mu = run(table, design, epsilon), gaussian_mu(epsilon, DELTA)
    assert spent(made.ledger, DELTA).epsilon == pytest.approx(epsilon, rel=1e-6)
    found = made.diagnostics
    assert found["time"] == pytest.approx(min(max(400 * mu, 2), 400))
    assert found["steps"] == max(math.ceil(found["time"]), 20)
    start = design.x_bound / 2 if loss == "logistic" else 2 * design.x_bound * design.y_bound
    assert found["clip"] == pytest.approx(0.7 * start)
    curvature = design.x_bound**2 * (0.25 if loss == "logistic" else 2.0)
    assert found["step"] * found["steps"] * curvature == pytest.approx(found["time"]) and found["step"] <= 1 / curvature


def test_with_more_rows_it_comes_to_the_fit_and_says_so():
    errors, left = [], []
    for n in (200, 2_000, 40_000):
        table, design = rows_of("squared", n)
        X, y = design.encode(table)
        exact = np.linalg.lstsq(X, y, rcond=None)[0]
        made = [run(table, design, 1.0, seed) for seed in range(3)]
        errors.append(np.mean([np.linalg.norm(one[Coefficients].values - exact) for one in made]))
        left.append([one.diagnostics["converged"] for one in made])
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.02
    assert all(left[2])


def test_a_run_that_is_cut_off_is_not_called_converged():
    table, design = rows_of("logistic", 40_000)
    assert not run(table, design, 1.0, most_steps=2).diagnostics["converged"]


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_have_an_estimate(rows):
    table, design = rows_of("logistic", rows)
    made = run(table, design, 1.0)
    assert np.isfinite(made[Coefficients].values).all() and math.isfinite(made.diagnostics["left"])


def test_bad_parameters_are_named():
    table, design = rows_of("logistic", 10)
    for name in ("expected_rows", "time", "clip"):
        with pytest.raises(UserError, match=f"dpsgd_rule: {name} must be greater than 0"):
            run(table, design, **{name: 0})
    with pytest.raises(UserError, match="most_steps must be at least 1"):
        run(table, design, most_steps=0)
    with pytest.raises(UserError, match="finite"):
        run(table, design, math.inf)
