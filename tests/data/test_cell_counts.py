"""What a column's cells count as: each cell once, whatever the others are."""

import math
from collections import Counter

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpbench.data.cell_counts import EDGES, chosen_kind, from_places, kind_counts, place_bounds, place_counts
from dpbench.data.csv_format import CsvFormat
from dpbench.data.domain_draft import Kind

CELLS = ["", "NA", "3", "03", "-2.5", "$4", "7%", "2024-02-01", "31.1.2023", "31.13.0000", "home", "x" * 50, "1e20"]
KINDS = [Kind("whole"), Kind("number", "%"), Kind("date", form="%d.%m.%Y"), Kind("text"), Kind("free text"), None]


def column(cells):
    return pd.Series(cells, dtype=str)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(CELLS)), st.sampled_from(CELLS))
def test_a_row_more_changes_one_count_by_one(cells, more):
    style = CsvFormat()
    kinds = [kind_counts(column(some), style) for some in (cells, [*cells, more])]
    assert sum((kinds[1] - kinds[0]).values()) == 1 and not kinds[0] - kinds[1]
    for kind in KINDS:
        places = [place_counts(column(some), kind, style) for some in (cells, [*cells, more])]
        assert sum((places[1] - places[0]).values()) <= 1 and not places[0] - places[1]


@example(2.0)
@example(16.0)
@example(-1.0)
@example(-200.0)
@settings(max_examples=50)
@given(st.floats(-1e14, 1e14))
def test_a_number_lies_between_the_bounds_of_its_place(number):
    places = place_counts(column([repr(number)]), Kind("number"), CsvFormat())
    low, high = place_bounds(places, whole=False)
    assert low <= number <= high or abs(number) <= 1e-9
    whole = round(number)
    low, high = place_bounds(place_counts(column([str(whole)]), Kind("whole"), CsvFormat()), whole=True)
    assert low <= whole <= high and low == math.floor(low)
    assert place_bounds({29: 1.0, 31: 1.0}, whole=True) == (3, 20) and EDGES[29] == 5.0


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ({Kind("whole"): 90.0, Kind("missing"): 200.0}, Kind("whole")),
        ({Kind("whole"): 50.0, Kind("number"): 40.0, Kind("text"): 60.0}, Kind("number")),
        ({Kind("whole"): 50.0, Kind("whole", "$"): 20.0}, Kind("whole", "$")),
        ({Kind("whole"): 50.0, Kind("code"): 20.0}, Kind("text")),
        ({Kind("date", form="%Y-%m-%d"): 30.0, Kind("text"): 20.0}, Kind("date", form="%Y-%m-%d")),
        ({Kind("missing"): 30.0}, None),
        ({}, None),
    ],
)
def test_the_kind_is_that_of_most_cells(counts, kind):
    assert chosen_kind(Counter(counts)) == kind


def test_a_column_of_which_nothing_was_released_is_left_to_be_filled_in_or_named():
    lines = from_places(
        {"age": (Kind("whole"), True, {}), "why": (Kind("free text"), False, {}), "few": (None, False, {})}, ["id"]
    )
    assert "age: {bounds: [LOWER, UPPER], bins: 32, decimals: 0}" in lines
    assert "dataset.drop=[why,few]" in lines and "dataset.drop=[id]" in lines
