"""The robust interval on rows: its coverage, its units, and what it refuses."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.models.linear import linear_rows, solve
from dpbench.models.sandwich import linear_rows_sandwich
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows

DOMAIN = Domain((Attribute.binned("x", 0, 4, 4), Attribute.categorical("g", "ab"), Attribute.discrete("y", range(5))))
DESIGN = Design(DOMAIN, "y")


def population():
    """p(x, g, y), whose variance of y grows with x and whose mean is not linear in it."""
    x, g, y = np.meshgrid(np.arange(4), np.arange(2), np.arange(5), indexing="ij")
    p = np.exp(-np.abs(y - 0.5 * x**1.5 * (1 + 0.2 * g)) / (0.3 + 0.3 * x))
    return p / p.sum(axis=2, keepdims=True) / 8


def fitted(codes, **settings):
    release = Release(DOMAIN, Budget(math.inf), Ledger(), (SyntheticRows(Table(DOMAIN, codes)),))
    return linear_rows_sandwich(release, design=DESIGN, rng=np.random.default_rng(0), **settings)


def test_the_coverage_of_real_rows_is_the_level():
    """400 tables of 500 rows; each of 3 coefficients within 4 standard errors of 0.9: errs one time in 5,000."""
    p, rng, hits = population(), np.random.default_rng(0), []
    X, y = DESIGN.encode(Table(DOMAIN, np.argwhere(p > 0)))
    weights = p[p > 0][:, None]
    truth = solve((X * weights).T @ X, (X * weights).T @ y).coefficients
    for _ in range(400):
        cells = rng.choice(p.size, size=500, p=p.ravel())
        intervals = fitted(np.stack(np.unravel_index(cells, p.shape), axis=1).astype(np.int64)).intervals
        hits.append((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
    assert np.all(np.abs(np.mean(hits, axis=0) - 0.9) < 4 * math.sqrt(0.9 * 0.1 / 400))


def test_coefficients_are_those_of_least_squares_and_the_level_widens(small_table, small_domain):
    release = Release(small_domain, Budget(math.inf), Ledger(), (SyntheticRows(small_table),))
    design, rng = Design(small_domain, "grade"), np.random.default_rng(0)
    narrow, wide = (linear_rows_sandwich(release, design=design, rng=rng, level=level) for level in (0.5, 0.9))
    assert np.array_equal(narrow.coefficients, linear_rows(release, design=design, rng=rng).coefficients)
    ratio = np.diff(wide.intervals) / np.diff(narrow.intervals)
    np.testing.assert_allclose(ratio, 1.644854 / 0.674490, rtol=1e-5)


def test_the_unit_of_a_feature_that_is_not_scaled_scales_its_interval():
    rng, fits = np.random.default_rng(0), []
    codes = rng.integers(0, 4, (200, 3))
    for unit in (1.0, 1e6):
        domain = Domain(
            (Attribute.binned("a", 0, 4 * unit, 4), Attribute.binned("b", 0, 4, 4), Attribute.binned("y", 0, 4, 4))
        )
        release = Release(domain, Budget(math.inf), Ledger(), (SyntheticRows(Table(domain, codes)),))
        fits.append(linear_rows_sandwich(release, design=Design(domain, "y", scaled=False), rng=rng).intervals)
    np.testing.assert_allclose(fits[1], fits[0] / np.array([1e6, 1.0, 1.0])[:, None], rtol=1e-6)


@pytest.mark.parametrize("level", [-1, 0, 1])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(UserError, match="level must lie"):
        fitted(np.zeros((3, 3), dtype=np.int64), level=level)
