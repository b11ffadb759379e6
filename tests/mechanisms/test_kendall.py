"""DPKendall: its coefficients, how far a row moves them, and the features that it chooses."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.kendall import _coefficients, dpkendall
from dpbench.mechanisms.tukey_em import tukey_em
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import PermuteAndFlip
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients

DELTA = 1e-5


def test_of_one_block_it_is_kendall_s_coefficient_times_half_the_rows():
    columns = np.random.default_rng(0).normal(size=(80, 3)) + np.arange(80)[:, None] / 40
    found = _coefficients(columns, np.zeros(80, dtype=np.int64))
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        assert found[i, j] == pytest.approx(kendalltau(columns[:, i], columns[:, j]).statistic * 40, rel=1e-5)


def test_blocks_of_many_rows_estimate_the_same():
    """Within 5 % of the rows: far more than the error of 5,000 rows, at a fixed seed."""
    x = np.random.default_rng(1).normal(size=5_000)
    columns = np.column_stack([x, x + np.random.default_rng(2).normal(size=5_000)])
    found = _coefficients(columns, np.random.default_rng(3).integers(80, size=5_000))[0, 1]
    assert found / 2_500 == pytest.approx(kendalltau(*columns.T).statistic, abs=0.05)


def test_no_row_moves_a_coefficient_by_more_than_three_halves_and_some_do_almost():
    """All orders of few rows, and ties; the bound is attained as blocks grow."""
    rng, most = np.random.default_rng(4), 0.0
    for b in (1, 2, 3, 5, 8, 40):
        for _ in range(50):
            columns = rng.integers(0, 2 + b // 2, size=(b, 2)).astype(float)
            before = _coefficients(columns, np.zeros(b, dtype=np.int64))[0, 1]
            for row in ([-1.0, -1.0], [-1.0, 99.0], [1.0, 1.0]):
                after = _coefficients(np.vstack([columns, row]), np.zeros(b + 1, dtype=np.int64))[0, 1]
                most = max(most, abs(after - before))
    one, other = np.arange(40.0), -np.arange(40.0)
    columns, ends = np.column_stack([one, other]), np.zeros(40, dtype=np.int64)
    worst = (
        _coefficients(np.vstack([columns, [99.0, 99.0]]), np.append(ends, 0))[0, 1] - _coefficients(columns, ends)[0, 1]
    )
    assert most <= 1.5 and worst == pytest.approx(1.5)


def rows(n, seed=0):
    """The target depends on a and c; b is a with noise, and d is nothing."""
    rng = np.random.default_rng(seed)
    a, c, d = rng.uniform(-1, 1, (3, n))
    b = np.clip(a + 0.05 * rng.normal(size=n), -1, 1)
    y = np.clip(0.5 * a - 0.25 * c + 0.05 * rng.normal(size=n), -1, 1)
    domain = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in "abcdy"))
    numbers = dict(zip("abcdy", (a, b, c, d, y), strict=True))
    codes = np.stack([domain[name].code(column) for name, column in numbers.items()], axis=1)
    return Table(domain, codes, numbers), Design(domain, "y", exact=True)


def test_a_feature_that_says_what_another_one_said_is_chosen_last_but_for_noise():
    table, design = rows(5_000)
    X, y = design.encode(table)
    for seed in range(5):
        rng, ledger = np.random.default_rng(seed), Ledger()
        options = {"count": 2, "epsilon": 2.0, "relation": "add_remove", "expected_rows": 5_000}
        chosen = dpkendall(rng, ledger, X[:, :-1], y, **options)
        assert chosen in ([0, 2], [1, 2])
        assert [event.sensitivity for event in ledger.events] == [1.5, 3.0]
        assert [event.epsilon for event in ledger.events] == [1.0, 1.0]


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_chosen_features_alone_have_coefficients_and_all_is_paid_for(relation):
    table, design = rows(20_000)
    options = {"models": 1000, "expected_rows": 20_000, "features": 2}
    made = tukey_em(table, Budget(1.0, DELTA, relation), np.random.default_rng(0), design=design, **options)
    theta = made[Coefficients].values
    assert theta[[1, 3]].tolist() == [0.0, 0.0] or theta[[0, 3]].tolist() == [0.0, 0.0]
    assert theta[2] == pytest.approx(-0.25, abs=0.05)
    assert spent(made.ledger, DELTA).epsilon == pytest.approx(1.0)
    assert sum(event.epsilon for event in made.ledger.events if type(event) is PermuteAndFlip) == pytest.approx(0.1)


def test_as_many_features_as_there_are_cost_no_selection():
    table, design = rows(20_000)
    made = tukey_em(
        table, Budget(1.0, DELTA), np.random.default_rng(0), design=design, expected_rows=20_000, features=4
    )
    assert not any(type(event) is PermuteAndFlip for event in made.ledger.events)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"features": 0}, "features must be at least 1"), ({"selection_share": 1.0}, "selection_share must lie between")],
)
def test_bad_parameters_are_named(given, message):
    table, design = rows(50)
    with pytest.raises(UserError, match=f"tukey_em: {message}"):
        tukey_em(table, Budget(1.0), np.random.default_rng(0), design=design, expected_rows=20_000, **given)
