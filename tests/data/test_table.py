"""Tables and splits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table, split
from dpbench.errors import UserError

DOMAIN = Domain((Attribute.categorical("a", "xy"), Attribute.binned("b", 0, 3, 3), Attribute.categorical("c", "xyzw")))


def random_table(seed=0, n=40):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [2, 3, 4], size=(n, 3))
    return Table(DOMAIN, codes, {"b": codes[:, 1] + rng.random(n)})


@pytest.mark.parametrize("codes", [[[0, 0]], [[-1, 0, 0]], [[0, 3, 0]], [[0, 0, 0], [0, 0, 4]]])
def test_codes_must_fit_the_domain(codes):
    with pytest.raises(ValueError, match=r"columns|outside"):
        Table(DOMAIN, np.array(codes))


def test_numbers_must_have_a_value_a_row():
    with pytest.raises(ValueError, match="does not have 1 rows"):
        Table(DOMAIN, np.array([[0, 0, 0]]), {"b": np.zeros(2)})


@given(st.integers(0, 1000), st.sampled_from([0, 1, 40]), st.permutations(["a", "b", "c"]), st.integers(0, 3))
def test_marginal_counts_its_cells(seed, n, names, size):
    table, clique = random_table(seed, n), tuple(names[:size])
    expected = np.zeros(DOMAIN.shape(clique))
    for row in table.codes:
        expected[tuple(row[DOMAIN.index(name)] for name in clique)] += 1
    assert np.array_equal(table.marginal(clique), expected)


def test_take_and_project_keep_codes_and_numbers_together():
    table = random_table()
    part = table.take(np.array([5, 3, 3])).project(["c", "b"])
    assert part.domain.names == ("b", "c")
    assert np.array_equal(part.codes, table.codes[[5, 3, 3]][:, [1, 2]])
    assert np.array_equal(part.numbers["b"], table.numbers["b"][[5, 3, 3]])
    assert np.array_equal(part.column("c"), table.column("c")[[5, 3, 3]])
    assert not table.project(["a"]).numbers


@given(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 60))
def test_no_row_is_in_both_parts(seed, test_rows, train_rows):
    table = Table(Domain((Attribute.categorical("id", range(40)),)), np.arange(40)[:, None])
    parts = split(table, np.random.default_rng(seed), train_rows=train_rows, test_rows=test_rows)
    train, test = parts.train.codes[:, 0].tolist(), parts.test.codes[:, 0].tolist()
    assert len(test) == test_rows
    assert len(train) == min(train_rows, 40 - test_rows)
    assert len({*train, *test}) == len(train) + len(test)


def test_a_smaller_training_part_is_the_start_of_a_larger():
    table = random_table()
    large = split(table, np.random.default_rng(7), train_rows=30, test_rows=5)
    small = split(table, np.random.default_rng(7), train_rows=10, test_rows=5)
    assert np.array_equal(large.train.codes[:10], small.train.codes)
    assert np.array_equal(large.test.codes, small.test.codes)
    other = split(table, np.random.default_rng(8), train_rows=30, test_rows=5)
    assert not np.array_equal(large.train.codes, other.train.codes)


@pytest.mark.parametrize(("train_rows", "test_rows"), [(0, 5), (5, 40), (5, 41), (5, 0.99)])
def test_no_part_is_empty(train_rows, test_rows):
    with pytest.raises(UserError, match=r"40 rows cannot be split.*limits\.test_rows"):
        split(random_table(), np.random.default_rng(0), train_rows=train_rows, test_rows=test_rows)
