"""Bounds read off the rows: each numeric attribute's least and greatest number."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.load import observed_bounds
from dpbench.data.table import Table
from dpbench.errors import UserError


def table(attribute, numbers):
    numbers = np.asarray(numbers, dtype=float)
    return Table(Domain((attribute,)), attribute.code(numbers)[:, None], {attribute.name: numbers})


def test_bins_are_of_equal_width_between_the_least_and_the_greatest_number():
    found = observed_bounds(table(Attribute.binned("x", 0, 100, 4, "m"), [30, 70, 31, 69]))
    assert found.domain["x"] == Attribute.binned("x", 30, 70, 4, "m")
    assert found.codes[:, 0].tolist() == [0, 3, 0, 3]


def test_single_values_outside_the_observed_ones_are_dropped():
    found = observed_bounds(table(Attribute.discrete("grade", range(1, 9)), [3, 5, 3]))
    assert found.domain["grade"].values == (3, 4, 5) and found.codes[:, 0].tolist() == [0, 2, 0]


def test_a_constant_and_codes_without_numbers_make_no_bounds():
    with pytest.raises(UserError, match=r"'x' is 5 in every row.*dataset\.drop=\[x\]"):
        observed_bounds(table(Attribute.binned("x", 0, 10, 2), [5, 5]))
    codes = Table(Domain((Attribute.binned("x", 0, 10, 2),)), np.zeros((3, 1), dtype=np.int64))
    with pytest.raises(UserError, match="has only codes"):
        observed_bounds(codes)
