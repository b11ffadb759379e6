"""The genetic algorithm: its account of the error, which candidates are kept, and where it ends."""

from itertools import combinations

import numpy as np
import pytest

from dpbench.data.table import counted
from dpbench.inference.genetic import _apart, genetic, independent_rows

SIZES = {"a": 3, "b": 2, "c": 4, "d": 1}
PAIRS = list(combinations(SIZES, 2))
RUN = {"population": 40, "tolerance": 1e-6}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    return np.stack([a, (a + rng.integers(0, 2, n)) % 2, np.minimum(a + rng.integers(0, 2, n), 3), 0 * a], axis=1)


def error(codes, targets):
    tables = counted(codes, SIZES, list(targets))
    return sum(float(np.square(tables[r] / len(codes) - t / t.sum()).sum()) for r, t in targets.items())


@pytest.mark.parametrize("cliques", [PAIRS, [("a", "b", "c")], [("a",), ("b", "c")]])
def test_the_error_that_is_reported_is_that_of_the_rows(cliques):
    """It is added up from what each kept candidate changes, so that a wrong one, or two that interact, would show."""
    targets = counted(rows(200, 0), SIZES, cliques)
    start = independent_rows([np.ones(size) for size in SIZES.values()], 80, np.random.default_rng(1))
    for generations in (1, 2, 50):
        found = genetic(SIZES, list(targets.items()), start, np.random.default_rng(2), generations=generations, **RUN)
        assert found.loss == pytest.approx(error(found.codes, targets), abs=1e-12)
        assert found.loss < error(start, targets)


def test_rows_that_exist_are_found():
    """Targets of 60 rows, from 60 others: their marginals of pairs are reached but for a pair of rows."""
    targets = counted(rows(60, 3), SIZES, PAIRS)
    start = rows(60, 4)
    found = genetic(SIZES, list(targets.items()), start, np.random.default_rng(5), generations=3000, **RUN)
    assert found.loss < 2e-3 < error(start, targets)  # four cells are off by one row
    assert found.generations < 3000  # it ended by itself


def test_a_table_with_fewer_cells_counts_runs_of_levels():
    """Of 8 levels in runs of 4 and of 2, where rows keep their error as it is added up, and reach the targets."""
    rng = np.random.default_rng(6)
    sizes, a, b = {"a": 8, "b": 2}, rng.integers(0, 8, 60), rng.integers(0, 2, 60)
    tables = [counted(np.stack([a // width, b], axis=1), {"a": 8 // width, "b": 2}, [("a", "b")]) for width in (4, 2)]
    targets = [pair for table in tables for pair in table.items()]
    start = rng.integers(0, [8, 2], (60, 2))
    for generations in (1, 3000):
        found = genetic(sizes, targets, start, np.random.default_rng(7), generations=generations, **RUN)
        codes = found.codes
        own = [
            counted(np.stack([codes[:, 0] // width, codes[:, 1]], axis=1), {"a": 8 // width, "b": 2}, [("a", "b")])
            for width in (4, 2)
        ]
        gaps = [np.square(x["a", "b"] - y["a", "b"]).sum() / 60**2 for x, y in zip(own, tables, strict=True)]
        assert found.loss == pytest.approx(sum(gaps), abs=1e-12)
    assert found.loss < 2e-3


def test_of_two_candidates_that_share_a_cell_the_better_one_is_kept():
    change = np.array([-1.0, -3.0, -2.0, 1.0, -0.5])
    cells = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [7, 2]])
    moved = np.array([[True, True]] * 4 + [[True, False]])
    assert sorted(_apart(change, cells, moved, 8).tolist()) == [1, 2, 4]


def test_start_has_the_columns_of_the_singles():
    tables = [np.array([1.0, 3.0]), np.array([-2.0, 2.0, 2.0])]
    start = independent_rows(tables, 400, np.random.default_rng(0))
    assert np.bincount(start[:, 0]).tolist() == [100, 300]
    assert np.bincount(start[:, 1]).tolist() == [0, 200, 200]
