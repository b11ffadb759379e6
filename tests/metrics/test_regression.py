"""Metrics of regression by hand on a small table."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Split, Table
from dpbench.metrics import regression
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.models.linear import linear_rows
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Marginals, Release, SyntheticRows


@pytest.fixture
def reference(small_table, small_domain):
    parts = Split(small_table.take(np.arange(2000)), small_table.take(np.arange(2000, 3000)))
    return Reference(parts, Design(small_domain, "grade"))


def evaluation(reference: Reference, rows: Table) -> Evaluation:
    marginals = {clique: rows.marginal(clique) for clique in pairs(rows.domain)}
    release = Release(rows.domain, Budget(math.inf), Ledger(), (Marginals(marginals), SyntheticRows(rows)))
    return Evaluation(linear_rows(release, design=reference.design, rng=np.random.default_rng(0)), release, reference)


def test_the_training_rows_themselves_score_as_the_reference(reference):
    same = evaluation(reference, reference.split.train)
    assert regression.coefficient_distance(same).value == pytest.approx(0, abs=1e-12)
    assert regression.xtx_error(same).value == 0
    assert regression.xty_error(same).value == 0


def test_error_on_the_test_rows_in_both_units(reference):
    same = evaluation(reference, reference.split.train)
    X, _ = reference.design.encode(reference.split.test)
    predicted = X @ same.fit.coefficients * 2 + 3  # grades 1..5 are scaled to [-1, 1]
    grades = reference.split.test.column("grade") + 1
    mse = np.mean((grades - predicted) ** 2)
    assert regression.mse_unit(same).value == pytest.approx(mse)
    assert regression.mse_unit(same).unit == "grades^2"
    assert regression.mse(same).value == pytest.approx(mse / 4)
    assert regression.r2(same).value == pytest.approx(1 - mse / np.var(grades))


def test_a_constant_target_has_no_r2_even_where_its_variance_is_a_rounding_error():
    domain = Domain((Attribute.discrete("x", [-1, 0, 1]), Attribute.discrete("y", [0.0, 0.1, 0.2])))
    rows = Table(domain, np.array([np.arange(60) % 3, np.full(60, 1)]).T)
    made = Reference(Split(rows, rows), Design(domain, "y", scaled=False))
    assert 0 < np.var(made.test[1]) < 1e-30  # the case at hand
    assert np.isnan(regression.r2(evaluation(made, rows)).value)
    assert np.isnan(regression.mse_of_variance(evaluation(made, rows)).value)
    assert np.isnan(regression.gain_kept(evaluation(made, rows)).value)


def of_coefficients(reference: Reference, theta) -> Evaluation:
    domain = reference.design.domain
    return Evaluation(Fit(theta), Release(domain, Budget(1.0), Ledger()), reference)


def test_least_squares_keeps_all_of_its_gain_the_mean_none_and_half_the_error_between_them_half(reference):
    exact, mean = reference.coefficients, np.zeros(len(reference.design.columns))
    mean[-1] = reference.design.encode(reference.split.train)[1].mean()
    assert regression.gain_kept(of_coefficients(reference, exact)).value == pytest.approx(1)
    assert regression.gain_kept(of_coefficients(reference, mean)).value == pytest.approx(0, abs=1e-12)
    far = regression.mse(of_coefficients(reference, 5 * mean)).value
    of_mean, of_exact = (regression.mse(of_coefficients(reference, theta)).value for theta in (mean, exact))
    kept = regression.gain_kept(of_coefficients(reference, 5 * mean)).value
    assert kept == pytest.approx((of_mean - far) / (of_mean - of_exact)) and kept < 0


@pytest.mark.parametrize("metric", [regression.coefficient_error, regression.coefficient_distance])
def test_a_model_without_coefficients_is_refused_what_compares_them(metric):
    """Beside a design of one column, its empty array would count as no error at all."""
    domain = Domain((Attribute.discrete("x", [-1, 0, 1]), Attribute.discrete("y", [0, 1, 2])))
    rows = Table(domain, np.array([[0, 1, 2, 2], [0, 1, 2, 1]]).T)
    design = Design(domain, "y", intercept=False, scaled=False, exact=True)
    made = Reference(Split(rows, rows, truth={"x": 1.0}), design)
    tree = Evaluation(Fit(predictor=lambda X: X[:, 0]), Release(domain, Budget(1.0), Ledger()), made)
    with pytest.raises(ValueError, match=f"no coefficients; leave {metric.__name__} out"):
        metric(tree)


def test_a_mechanism_without_noise_has_no_error_though_it_saw_the_test_rows_too(reference):
    """What it released is of the rows that it saw, under the protocol `authors` the test rows too."""
    leaked = Reference(replace(reference.split, protocol="authors"), reference.design)
    made = evaluation(leaked, leaked.split.whole)
    made = replace(made, model=partial(linear_rows, design=leaked.design, rng=np.random.default_rng(0)))
    for metric in (regression.xtx_error, regression.xty_error, regression.coefficient_distance, regression.excess_mse):
        assert metric(made).value == pytest.approx(0, abs=1e-12)
        assert abs(metric(replace(made, reference=reference)).value) > 1e-5, "which are other rows"
