"""Tables and splits."""

import copy
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import AT_ONCE, Table, TableError, count_test_rows, split
from dpbench.errors import UserError

DOMAIN = Domain((Attribute.categorical("a", "xy"), Attribute.binned("b", 0, 3, 3), Attribute.categorical("c", "xyzw")))


def random_table(seed=0, n=40):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [2, 3, 4], size=(n, 3))
    return Table(DOMAIN, codes, {"b": codes[:, 1] + rng.random(n)})


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ([[0, 0]], r"shape \(n, 3\).* not int64 of shape \(1, 2\)"),
        ([0, 0, 0], r"shape \(n, 3\).* not int64 of shape \(3,\)"),
        ([[0.0, 0.5, 0.0]], r"must be integers .* not float64"),
        ([[-1, 0, 0]], "'a', row 1: the code -1 is not in 0 .. 1"),
        ([[0, 3, 0]], "'b', row 1: the code 3 is not in 0 .. 2"),
        ([[0, 0, 0], [0, 0, 4]], "'c', row 2: the code 4 is not in 0 .. 3"),
    ],
)
def test_codes_must_fit_the_domain(codes, reason):
    with pytest.raises(TableError, match=reason):
        Table(DOMAIN, np.array(codes))


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ({"b": [0.0]}, r"'b': its numbers must be of shape \(3,\)"),
        ({"b": [[0.0]] * 3}, r"'b': its numbers must be of shape \(3,\)"),
        ({"b": ["0", "1", "2"]}, r"'b': its numbers must be .* not <U1"),
        (
            {"b": [0.5, 1999.0, 2000.0]},
            r"'b', row 2: the number 1999 is outside its declared bounds \[0, 3\] \(2 such of 3",
        ),
        ({"b": [0.5, 1.5, -1e-9]}, "'b', row 3: the number -1e-09 is outside"),
        ({"b": [0.5, np.nan, 2.5]}, "'b', row 2: the number nan is outside"),
        ({"b": [0.5, 1.5, np.inf]}, "'b', row 3: the number inf is outside"),
        ({"b": [0.5, 2.5, 2.5]}, r"'b', row 2: the number 2.5 is not in bin 1, \[1, 2\]"),
        ({"a": [0.0, 0.0, 0.0]}, "numbers are given for 'a', which is not a numeric attribute"),
        ({"z": [0.0, 0.0, 0.0]}, "numbers are given for 'z', which is not a numeric attribute"),
    ],
)
def test_numbers_must_be_within_the_bounds_and_the_bins_of_their_codes(numbers, reason):
    codes = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])
    with pytest.raises(TableError, match=reason):
        Table(DOMAIN, codes, {name: np.array(column) for name, column in numbers.items()})


def test_numbers_may_be_the_bounds_and_the_edges_of_bins():
    codes = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])
    assert Table(DOMAIN, codes, {"b": np.array([0, 1, 3])}).numbers["b"].tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.take(np.arange(5)),
        lambda table: table.project(["a", "b"]),
        lambda table: split(table, np.random.default_rng(0), train_rows=20, test_rows=5).train,
        lambda table: pickle.loads(pickle.dumps(table)),
        copy.deepcopy,
    ],
)
def test_a_table_cannot_be_written_to(make):
    table = make(random_table())
    codes, numbers = table.codes.copy(), table.numbers["b"].copy()
    for write in (
        lambda: table.codes.__setitem__((0, 0), 1),
        lambda: table.codes.sort(axis=0),
        lambda: table.column("b").fill(0),
        lambda: table.numbers["b"].__setitem__(0, 0.0),
        lambda: np.clip(table.numbers["b"], 0, 1, out=table.numbers["b"]),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    with pytest.raises(TypeError, match="item assignment"):
        table.numbers["b"] = numbers
    with pytest.raises(TypeError, match="item deletion"):
        del table.numbers["b"]
    assert np.array_equal(table.codes, codes) and np.array_equal(table.numbers["b"], numbers)


def test_a_table_neither_copies_nor_locks_the_arrays_it_is_given():
    codes, numbers = np.zeros((4, 3), dtype=np.int64), {"b": np.zeros(4)}
    table = Table(DOMAIN, codes, numbers)
    assert np.shares_memory(table.codes, codes) and np.shares_memory(table.numbers["b"], numbers["b"])
    assert codes.flags.writeable and numbers["b"].flags.writeable
    numbers["a"] = np.zeros(4)
    assert list(table.numbers) == ["b"]


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
    with pytest.raises(UserError, match=r"40 rows cannot be split.*sample\.test_rows"):
        split(random_table(), np.random.default_rng(0), train_rows=train_rows, test_rows=test_rows)


@pytest.mark.parametrize(
    ("test_rows", "rows", "expected"),
    [
        (5, 40, 5),
        (0, 40, 0),
        (0.2, 41, 9),
        ([0.2, 1000], 600, 120),
        ([0.2, 1000], 1338, 268),
        ([0.2, 1000], 5000, 1000),
        ([0.2, 1000], 48842, 1000),
    ],
)
def test_how_many_rows_are_for_testing(test_rows, rows, expected):
    assert count_test_rows(test_rows, rows) == expected
    table = Table(Domain((Attribute.categorical("id", range(rows)),)), np.arange(rows)[:, None])
    parts = split(table, np.random.default_rng(0), train_rows=50_000, test_rows=test_rows)
    assert (len(parts.train), len(parts.test)) == (rows - expected, expected)


def test_public_rows_come_after_the_others_and_leave_them_as_they_are():
    table = random_table()
    plain = split(table, np.random.default_rng(7), train_rows=10, test_rows=5)
    parts = split(table, np.random.default_rng(7), train_rows=10, test_rows=5, public_rows=8)
    more = split(table, np.random.default_rng(7), train_rows=18, test_rows=5)
    assert plain.public is None
    assert np.array_equal(parts.train.codes, plain.train.codes)
    assert np.array_equal(parts.test.codes, plain.test.codes)
    assert np.array_equal(parts.public.codes, more.train.codes[10:])
    with pytest.raises(UserError, match=r"35 public rows.*sample\.public_rows"):
        split(table, np.random.default_rng(7), train_rows=10, test_rows=5, public_rows=35)


def test_public_rows_are_set_aside_from_the_training_rows_where_there_are_no_others():
    table = random_table()
    plain = split(table, np.random.default_rng(7), train_rows=100, test_rows=5)
    parts = split(table, np.random.default_rng(7), train_rows=100, test_rows=5, public_rows=8)
    assert np.array_equal(parts.test.codes, plain.test.codes)
    assert np.array_equal(np.concatenate([parts.train.codes, parts.public.codes]), plain.train.codes)
    assert len(parts.public) == 8


def test_the_protocol_of_the_authors_shows_a_mechanism_the_test_rows_too():
    table = random_table()
    parts = split(table, np.random.default_rng(7), train_rows=30, test_rows=10)
    assert parts.seen is parts.train
    leaked = replace(parts, protocol="authors")
    assert sorted(map(tuple, leaked.seen.codes)) == sorted(map(tuple, table.codes))
    assert sorted(leaked.seen.numbers["b"]) == sorted(table.numbers["b"])
    assert leaked.train is parts.train and leaked.test is parts.test


@pytest.mark.parametrize("rows", [0, 1, 2 * AT_ONCE + 7])
def test_marginals_are_counts_however_many_rows_are_counted_at_once(rows):
    domain = Domain(tuple(Attribute.categorical(name, range(size)) for name, size in (("a", 3), ("b", 1), ("c", 70))))
    codes = np.random.default_rng(0).integers(0, [3, 1, 70], (rows, 3))
    cliques = [("a", "b", "c"), ("a",), ("c", "a"), ("b", "c"), (), ("a", "b")]
    found = Table(domain, codes).marginals(cliques)
    assert list(found) == cliques
    for clique in cliques:
        columns = [domain.index(name) for name in clique]
        counts = Counter(map(tuple, codes[:, columns].tolist()))
        expected = [counts[cell] for cell in np.ndindex(domain.shape(clique))]
        assert found[clique].shape == domain.shape(clique)
        np.testing.assert_array_equal(found[clique].ravel(), expected)
