"""Numbers without bins: which they are, what is counted of them, and the rows that have them."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.intervals import MOST, Intervals, with_numbers

MIXED = Domain(
    (
        Attribute.binned("height", 100, 200, 3),
        Attribute.categorical("class", ["low", "high"]),
        Attribute.discrete("grade", [1, 2, 5]),
        Attribute.binned("weight", 0, 100, 3).with_missing(),
    )
)
TABLE = Table(
    MIXED,
    np.array([[0, 0, 0, 0], [1, 1, 2, 3], [2, 1, 1, 2], [0, 1, 1, 2]]),
    {"height": np.array([100.0, 150, 200, 124])},
)


def test_numbers_have_bounds_and_neither_listed_nor_missing_values():
    """Without levels there are none, and all is in the declared bins."""
    assert Intervals(MIXED, (2,), ()).numbers == ("height",)
    plain = Intervals(MIXED, (), ())
    assert plain.numbers == () and plain.domain == MIXED and plain.finest == list(MIXED.names)
    assert np.array_equal(plain.counted(TABLE).codes, TABLE.codes)
    assert plain.marginals([("height", "class")]) == {("height", "class"): ("height", "class")}
    assert np.array_equal(plain.rows(TABLE.codes).codes, TABLE.codes)


def test_a_marginal_is_counted_at_each_level_and_once_where_it_has_no_number():
    found = Intervals(MIXED, (1, 2), (4,)).marginals([("height", "class"), ("class", "grade")])
    assert found == {
        ("height in 2", "class"): ("height", "class"),
        ("height in 4", "class"): ("height", "class"),
        ("class", "grade"): ("class", "grade"),
        ("height in 16",): ("height",),
    }
    assert list(Intervals(MIXED, (1,), (1,)).marginals([("height",)])) == [("height in 2",)]
    assert list(Intervals(MIXED, (1,), (4,)).marginals([("class",)])) == [("class",)]


def test_which_intervals_numbers_are_in():
    """By hand: both bounds, the middle, and a quarter less a unit."""
    intervals = Intervals(MIXED, (1, 2), ())
    counted = intervals.counted(TABLE)
    assert counted.domain.sizes == {"height in 2": 2, "height in 4": 4, "class": 2, "grade": 3, "weight": 4}
    assert counted.column("height in 2").tolist() == [0, 1, 1, 0]
    assert counted.column("height in 4").tolist() == [0, 2, 3, 0]
    middles = Table(MIXED, TABLE.codes)  # of the bins, where numbers are not known
    assert intervals.counted(middles).column("height in 4").tolist() == [0, 2, 3, 0]


def test_rows_have_numbers_in_the_intervals_that_were_drawn():
    intervals = Intervals(MIXED, (1,), (3,))
    codes = np.column_stack([np.arange(800) % 8, *np.zeros((3, 800), dtype=np.int64)])
    values = intervals.spread(codes, np.random.default_rng(0))
    rows = intervals.rows(values)
    assert np.array_equal(intervals.counted(rows).column("height in 8"), codes[:, 0])
    assert len(np.unique(rows.numbers["height"])) > 700
    ends = intervals.rows(np.array([[0, 0, 0, 0], [2**MOST - 1, 1, 2, 3]]))
    assert ends.numbers["height"].tolist() == [100, 200] and ends.codes.tolist() == [[0, 0, 0, 0], [2, 1, 2, 3]]


def test_numbers_of_rows_are_in_the_domain():
    """With the declared decimals, of listed values, and within bounds that rounding would leave."""
    whole = Attribute.from_dict({**MIXED["height"].to_dict(), "decimals": 0})
    odd = Attribute.binned("odd", 0.1, 0.7, 2)
    domain = Domain((whole, odd, MIXED["grade"]))
    x = np.array([[0.246, 0.999], [1.0, 0.0], [0.6, 0.1]])
    rows = with_numbers(domain, np.zeros((2, 3), dtype=np.int64), domain.names, x)
    assert {name: column.tolist() for name, column in rows.numbers.items()} == {
        "height": [125, 200],
        "odd": [0.7, 0.1],
        "grade": [2, 1],
    }


@pytest.mark.parametrize("levels", [[0], [MOST + 1], [2, 2], [1.5], [True]])
def test_levels_are_different_whole_numbers(levels):
    for given in (levels, []), ([5], levels):
        with pytest.raises(UserError, match="different whole numbers from 1 to 20"):
            Intervals(MIXED, *map(tuple, given))


def test_numbers_are_not_measured_alone_only():
    with pytest.raises(UserError, match="need levels"):
        Intervals(MIXED, (), (3,))
