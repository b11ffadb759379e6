"""Synthetic rows: small on the disk, and back with their numbers."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import ContractError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.releases import SyntheticRows


@pytest.mark.parametrize(("levels", "dtype"), [(256, np.uint8), (257, np.uint16)])
def test_codes_are_stored_in_the_smallest_type(levels, dtype):
    domain = Domain((Attribute.categorical("a", range(levels)), Attribute.categorical("b", "xy")))
    rows = SyntheticRows(Table(domain, np.array([[levels - 1, 0], [0, 1]])))
    data, arrays = rows.to_parts()
    assert arrays["codes"].dtype == dtype
    back = SyntheticRows.from_parts(domain, data, arrays)
    assert back.table.codes.dtype == np.int64
    assert np.array_equal(back.table.codes, rows.table.codes)


def test_numbers_come_back():
    table = tiny_table()
    back = SyntheticRows.from_parts(table.domain, *SyntheticRows(table).to_parts()).table
    assert list(back.numbers) == list(table.numbers) == ["age", "y"]
    assert all(np.array_equal(back.numbers[name], table.numbers[name]) for name in table.numbers)


def test_rows_over_another_domain_are_refused():
    with pytest.raises(ContractError, match="must have the domain of the release"):
        SyntheticRows(tiny_table(labels=True)).check(tiny_table().domain)
