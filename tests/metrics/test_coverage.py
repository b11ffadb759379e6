"""Coverage and width of intervals, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Split, Table
from dpbench.metrics.coverage import coverage, interval_score, interval_width
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.models.linear import solve
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release


def evaluation(table, design, below, above) -> Evaluation:
    """Intervals that reach this far below and above the coefficients of the whole table."""
    theta = solve(*second_moments(*design.encode(table))).coefficients
    parts = Split(table.take(np.arange(500)), table.take(np.arange(500, len(table))))
    fit = Fit(theta, intervals=np.stack([theta - below, theta + above], axis=1))
    return Evaluation(fit, Release(table.domain, Budget(1.0), Ledger()), Reference(parts, design))


def test_the_population_is_the_training_and_the_test_rows_together(small_table, small_domain):
    design = Design(small_domain, "grade")
    assert coverage(evaluation(small_table, design, 1e-9, 1e-9)).value == 1
    ends = np.array([1.0, -1e-6, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, -1e-6, 3.0])
    score = coverage(evaluation(small_table, design, *ends))
    assert score.value == pytest.approx(3 / 5)  # one interval lies above, one below
    assert score.detail["columns"] == list(design.columns)
    assert np.subtract(score.detail["upper"], score.detail["population"]) == pytest.approx(ends[1])


def test_width_is_the_median_over_coefficients(small_table, small_domain):
    above = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert interval_width(evaluation(small_table, Design(small_domain, "grade"), 1.0, above)).value == 5


def test_the_interval_score_is_the_width_and_ten_times_the_miss_at_level_0_8(small_table, small_domain):
    below = np.array([1.0, -2.0, 1.0, 1.0, 1.0])  # the second interval lies 2 above its coefficient
    made = evaluation(small_table, Design(small_domain, "grade"), below, np.array([1.0, 3.0, 1.0, -0.5, 1.0]))
    made = replace(made, fit=replace(made.fit, notes={"level": 0.8}))
    assert interval_score(made).value == pytest.approx((2 + (1 + 10 * 2) + 2 + (0.5 + 10 * 0.5) + 2) / 5)


def test_coefficients_of_collinear_columns_are_left_out(small_table, small_domain):
    design = Design(small_domain, "grade", categorical="one_hot")  # work's and sex's columns each sum to the intercept
    made = evaluation(small_table, design, np.where(np.array(design.columns) == "age", 1.0, -1.0), 2.0)
    assert coverage(made).value == 1
    assert coverage(made).detail["columns"] == ["age"]
    assert interval_width(made).value == pytest.approx(3)


def test_the_detail_has_the_identified_coefficients_alone(small_table, small_domain):
    design = Design(small_domain, "grade", categorical="one_hot")
    detail = coverage(evaluation(small_table, design, 1.0, 2.0)).detail
    assert detail["columns"] == ["age"] and {len(numbers) for numbers in detail.values()} == {1}
    assert np.subtract(detail["upper"], detail["coefficients"]) == pytest.approx([2.0])


def test_a_column_in_a_small_unit_is_identified():
    domain = Domain((Attribute.binned("tiny", 0, 1e-6, 4), Attribute.binned("y", 0, 1, 4)))
    table = Table(domain, np.random.default_rng(0).integers(0, 4, (1000, 2)))
    made = evaluation(table, Design(domain, "y", scaled=False), 1e9, 1e9)
    assert coverage(made).detail["columns"] == ["tiny", "(intercept)"]


def test_a_fit_without_intervals_says_so(small_table, small_domain):
    made = evaluation(small_table, Design(small_domain, "grade"), 1.0, 1.0)
    with pytest.raises(ValueError, match="no intervals"):
        coverage(replace(made, fit=Fit(made.fit.coefficients)))
