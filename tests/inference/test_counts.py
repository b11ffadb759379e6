"""The non-zero cells of a table's marginals, against whole tables."""

import itertools

import numpy as np
import pytest

from dpbench.inference.counts import Counts

SIZES = {"a": 3, "b": 40, "c": 2, "d": 50}


@pytest.mark.parametrize("rows", [0, 1, 30, 5000])  # tables smaller and larger than the rows, and no rows
def test_the_cells_are_those_of_the_whole_table(rows):
    codes = np.random.default_rng(0).integers(0, list(SIZES.values()), (rows, 4))
    cliques = [c for k in range(1, 5) for c in itertools.combinations(SIZES, k)]
    counts = Counts(SIZES, codes, cliques)
    for clique in cliques:
        columns, shape = [list(SIZES).index(name) for name in clique], [SIZES[name] for name in clique]
        whole = np.zeros(shape)
        np.add.at(whole, tuple(codes[:, columns].T), 1)
        at = counts.cells[clique]
        assert np.array_equal(at.flat, np.flatnonzero(whole))
        assert np.array_equal(at.counts, whole.ravel()[at.flat])
        assert np.array_equal(np.ravel_multi_index(codes[at.rows][:, columns].T, shape), at.flat)
        assert np.array_equal(counts.places(at.mask)[at.rows], at.flat)
        model = np.random.default_rng(1).random(shape) * rows
        l1 = np.abs(whole - model).sum()
        assert counts.distance(at, model.ravel()[at.flat], model.sum()) == pytest.approx(l1, rel=1e-9, abs=1e-9)


def test_a_table_of_more_than_two_to_the_31_cells():
    sizes = {"a": 100_000, "b": 100_000}
    counts = Counts(sizes, np.array([[99_999, 99_999], [0, 1], [99_999, 99_999]]), [("a", "b")])
    assert counts.cells["a", "b"].flat.tolist() == [1, 10**10 - 1]
    assert counts.cells["a", "b"].counts.tolist() == [1, 2]
