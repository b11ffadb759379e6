"""Intervals from the iterates of gradient descent, by hand; that they cover is in tests/mechanisms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError, UserError
from dpbench.models.descent_intervals import descent_intervals
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients, Release

DOMAIN = Domain((Attribute.binned("x", -1, 1, 2), Attribute.binned("y", -1, 1, 2)))
DESIGN = Design(DOMAIN, "y")
NOTES = {"batches": 10, "drift": 1.0, "squared_residuals": 49.0, "inverse": [0.04, 0.01]}
RELEASE = Release(
    DOMAIN, Budget(1.0), Ledger(), (Coefficients(np.array([1.0, 2.0]), np.diag([0.09, 0.16])),), dict(NOTES)
)


def half(release=RELEASE, **parameters):
    fit = descent_intervals(release, design=DESIGN, expected_rows=51, **parameters)
    assert fit.intervals.mean(axis=1) == pytest.approx(fit.coefficients)
    return np.diff(fit.intervals, axis=1)[:, 0] / 2


def changed(**notes):
    return replace(RELEASE, diagnostics={**NOTES, **notes})


def test_privacy_by_student_s_quantile_and_sampling_by_the_normal_one():
    """t of 9 degrees of freedom at 0.975: 2.262; sigma^2 = 49 / (51 - 2) = 1."""
    assert half(of="rows") == pytest.approx([2.262157 * 0.3, 2.262157 * 0.4])
    expected = [math.hypot(2.262157 * 0.3, 1.959964 * 0.2), math.hypot(2.262157 * 0.4, 1.959964 * 0.1)]
    assert half() == pytest.approx(expected)
    assert half(level=0.5) == pytest.approx(
        [math.hypot(0.702722 * 0.3, 0.67449 * 0.2), math.hypot(0.702722 * 0.4, 0.67449 * 0.1)]
    )
    assert half(changed(squared_residuals=-5.0)) == pytest.approx(half(of="rows"))


def test_a_run_that_has_not_settled_is_refused():
    """The limit is the quantile of 8 degrees of freedom at 1 - 0.01 / 4: 3.8325."""
    half(changed(drift=3.83))
    with pytest.raises(NoEstimateError, match="differ by 3"):
        half(changed(drift=3.84))


def test_what_cannot_be_used_is_named():
    plain = replace(RELEASE, parts=(Coefficients(np.zeros(2)),))
    for other in (plain, replace(RELEASE, diagnostics={})):
        with pytest.raises(UserError, match="needs the iterates of gradient descent; mechanism=dpgd_intervals"):
            half(other)
    with pytest.raises(UserError, match="unknown of 'row'; did you mean 'rows'"):
        half(of="row")
    with pytest.raises(UserError, match="level must lie"):
        half(level=1.0)
    with pytest.raises(UserError, match="expected_rows must be greater than 2"):
        descent_intervals(RELEASE, design=DESIGN, expected_rows=2)
