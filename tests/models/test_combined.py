"""The rules for estimates on several synthetic tables, by hand and on tables of a known distribution."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError, UserError
from dpbench.models.combined import combined_width, linear_tables
from dpbench.models.sandwich import robust_fit
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows, SyntheticTables

DOMAIN = Domain((Attribute.discrete("x", range(4)), Attribute.discrete("y", range(5))))
DESIGN = Design(DOMAIN, "y")


def release(codes, count, **notes):
    return Release(DOMAIN, Budget(1.0), Ledger(), (SyntheticTables(Table(DOMAIN, codes), count),), notes)


def drawn(rows, rng, shift=0.0):
    x = rng.integers(0, 4, rows)
    return np.stack([x, np.clip(np.round(0.7 * x + shift + rng.normal(0, 0.8, rows)), 0, 4)], axis=1).astype(np.int64)


def test_the_width_is_that_of_the_rules():
    """m = 9, b = 0.018, u = 0.01: T = 10/9 b - u = 0.01, and 8 (1 - 1/2)^2 = 2 degrees of freedom, t = 4.3027."""
    q = np.arange(9.0)[:, None]
    q *= np.sqrt(0.018 / q.var(ddof=1))
    half, T = combined_width(q, np.full((9, 1), 0.01), level=0.95, ratio=1.0)
    assert pytest.approx([0.01]) == T
    assert half == pytest.approx([4.3027 * 0.1], rel=1e-4)


def test_a_variance_that_is_not_positive_is_replaced():
    """b = 0: (rows of a table / rows of the data) u in place of T, with one degree of freedom."""
    half, T = combined_width(np.ones((10, 1)), np.full((10, 1), 0.04), level=0.9, ratio=2.0)
    assert pytest.approx([-0.04]) == T
    assert half == pytest.approx([6.3138 * np.sqrt(0.08)], rel=1e-3)


def test_estimates_are_means_over_the_tables():
    rng = np.random.default_rng(0)
    parts = [drawn(300, rng, shift) for shift in (0.0, 0.3, 0.6)]
    fit = linear_tables(release(np.concatenate(parts), 3, total=900.0), design=DESIGN, level=0.8)
    own = [robust_fit(*DESIGN.encode(Table(DOMAIN, part)), scaled=True) for part in parts]
    np.testing.assert_allclose(fit.coefficients, np.mean([one.coefficients for one, _ in own], axis=0))
    np.testing.assert_allclose(fit.intervals.mean(axis=1), fit.coefficients)
    half, T = combined_width(
        *(np.stack(column) for column in zip(*((one.coefficients, u) for one, u in own), strict=True)),
        level=0.8,
        ratio=100 / 300,
    )
    np.testing.assert_allclose(fit.intervals[:, 1] - fit.intervals[:, 0], 2 * half)
    assert fit.notes == {"level": 0.8, "tables": 3, "replaced": int((T <= 0).sum())}


def test_intervals_cover_where_tables_are_of_posterior_draws():
    """Rows with normal estimates: 400 times, each with 20 tables of draws from the flat-prior posterior.

    Coverage of 0.95 has a standard error of 0.011; outside of four of them it is with a probability of 1e-4.
    """
    rng = np.random.default_rng(1)
    estimate = rng.normal(size=400)  # of 0, with variance 1
    centres = estimate[:, None] + rng.normal(size=(400, 20))
    q = centres + 0.5 * rng.normal(size=centres.shape)  # tables four times as large as the data
    half = [combined_width(one[:, None], np.full((20, 1), 0.25), level=0.95, ratio=4.0)[0][0] for one in q]
    assert abs((np.abs(q.mean(axis=1)) <= half).mean() - 0.95) < 4 * 0.011


def test_rows_twice_give_their_own_estimate():
    table = Table(DOMAIN, drawn(200, np.random.default_rng(2)))
    exact = release(np.zeros((4, 2), dtype=np.int64), 2).exact(table, DESIGN)
    np.testing.assert_allclose(
        linear_tables(exact, design=DESIGN).coefficients, robust_fit(*DESIGN.encode(table), scaled=True)[0].coefficients
    )


def test_tables_are_stored_and_taken_apart():
    codes = drawn(30, np.random.default_rng(3))
    made = release(codes, 3)
    back = Release.from_parts(*made.to_parts())[SyntheticTables]
    assert (back.count, back.size) == (3, 10)
    np.testing.assert_array_equal(np.stack([one.codes for one in back]), codes.reshape(3, 10, 2))


@pytest.mark.parametrize("count", [1, 7, 2.0])
def test_tables_of_different_sizes_and_a_single_one_are_refused(count):
    part = SyntheticTables(Table(DOMAIN, drawn(30, np.random.default_rng(3))), count)
    with pytest.raises(ContractError, match="two or more of the same size"):
        part.check(DOMAIN)


def test_what_is_refused():
    with pytest.raises(UserError, match="level"):
        linear_tables(release(drawn(30, np.random.default_rng(3)), 3), design=DESIGN, level=1.0)
    rows = SyntheticRows(Table(DOMAIN, drawn(30, np.random.default_rng(3))))
    with pytest.raises(ContractError, match="holds no tables"):
        linear_tables(replace(release(np.zeros((4, 2), dtype=np.int64), 2), parts=(rows,)), design=DESIGN)
