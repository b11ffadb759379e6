"""The gradual update method: rows come to have the marginals that are asked for."""

import numpy as np
import pytest

from dpbench.data.table import counted
from dpbench.inference import gum
from dpbench.inference.gum import gradual_update


def updated(table, cliques, rows=4000, rounds=50, seed=0):
    sizes = dict(table.domain.sizes)
    singles = [table.marginal((name,)) for name in sizes]
    targets = table.marginals(cliques)
    return gradual_update(sizes, singles, targets, rows, rounds, np.random.default_rng(seed)), targets


def distances(codes, sizes, targets):
    """The l1 distance of each target's shares of the rows."""
    counts = counted(codes, sizes, list(targets))
    return {r: np.abs(counts[r] / len(codes) - table / table.sum()).sum() for r, table in targets.items()}


CLIQUES = [("age", "grade"), ("work", "grade"), ("age", "sex", "grade")]


def test_rows_come_to_have_consistent_marginals(small_table):
    """Of 4,000 rows drawn independently the marginals of 30 and 60 cells would be 0.07 and 0.1 away."""
    codes, targets = updated(small_table, CLIQUES)
    assert codes.shape == (4000, 4) and codes.dtype == np.int64
    found = distances(codes, small_table.domain.sizes, targets)
    assert max(found.values()) < 0.06, found
    before, _ = updated(small_table, CLIQUES, rounds=1)
    assert sum(distances(before, small_table.domain.sizes, targets).values()) > 2 * sum(found.values())


def test_without_targets_columns_are_independent(small_table):
    codes, _ = updated(small_table, [])
    singles = {(name,): small_table.marginal((name,)) for name in small_table.domain.names}
    assert max(distances(codes, small_table.domain.sizes, singles).values()) < 0.005
    product = np.outer(*(singles[name,] for name in ("age", "grade")))
    assert distances(codes, small_table.domain.sizes, {("age", "grade"): product})["age", "grade"] < 0.15


def test_what_a_marginal_lacks_among_the_rows_is_made():
    """No row has the second level of b with the first of a, which the independent columns cannot give."""
    sizes, target = {"a": 2, "b": 2}, np.array([[0.0, 50.0], [50.0, 0.0]])
    singles = [np.array([1.0, 0.0]), np.array([1.0, 0.0])]
    codes = gradual_update(sizes, singles, {("a", "b"): target}, 1000, 40, np.random.default_rng(0))
    counts = counted(codes, sizes, [("a", "b")])["a", "b"]
    assert np.abs(counts - 500 * (target > 0)).max() < 40


def test_copies_keep_what_a_row_has_elsewhere():
    """c copies a, and only the pair with a is brought to its target: copies keep the two equal."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 3000)
    columns = np.stack([a, rng.integers(0, 2, 3000), a])
    wanted = np.array([0, 500, 1000, 0, 500, 1000], dtype=float)
    for _ in range(30):
        gum._update(columns, [0, 1], (3, 2), wanted, 1.0, 1.0, rng)
    assert np.array_equal(columns[0], columns[2])
    assert np.abs(np.bincount(columns[0] * 2 + columns[1], minlength=6) - wanted).max() < 60
    for _ in range(5):
        gum._update(columns, [0, 1], (3, 2), wanted[::-1].copy(), 1.0, 0.0, rng)
    assert not np.array_equal(columns[0], columns[2]), "values alone leave the others as they are"


@pytest.mark.parametrize("moved", [0.0, 1.0, 4.0, 8.0])
def test_rows_leave_in_the_part_beta_or_the_surplus(moved):
    counts, surplus = np.array([10, 4, 7, 0]), np.array([5.0, 3.0, -2.0, 0.0])
    part = gum._leaving(counts, surplus, moved)
    assert part @ counts == pytest.approx(moved)
    assert (part * counts <= np.maximum(surplus, 0) + 1e-12).all()
    beta = part.max()
    assert all(
        one == beta or one * count == pytest.approx(max(s, 0))
        for one, count, s in zip(part, counts, surplus, strict=True)
    )


def test_same_seed_same_rows_and_none_if_none_are_wanted(small_table):
    first, second = (updated(small_table, CLIQUES, rows=500, rounds=5)[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert updated(small_table, CLIQUES, rows=0)[0].shape == (0, 4)
