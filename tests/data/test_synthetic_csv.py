"""Synthetic rows have the types of the table, and stay in the bins that were released."""

import numpy as np
import pandas as pd
import pytest

from dpbench.data.coding import code_frame
from dpbench.data.declare import domain_from_config
from dpbench.data.synthetic_csv import typed_rows
from dpbench.data.table import Table
from dpbench.errors import UserError

DECLARED = {
    "age": {"bounds": [16, 100], "bins": 32, "decimals": 0},
    "rate": {"bounds": [0, 1], "bins": 7, "decimals": 2},
    "weight": {"bounds": [0, 1], "bins": 4},
    "grade": {"values": {"from": 1, "to": 5}},
    "code": {"levels": ["01", "02"]},
}


@pytest.fixture(scope="module")
def table():
    domain, rng = domain_from_config(DECLARED), np.random.default_rng(0)
    return Table(domain, np.stack([rng.integers(0, size, 20_000) for size in domain.sizes.values()], axis=1))


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["middle", "drawn"])
def test_each_number_is_in_its_bin_with_the_declared_decimals(table, rng):
    rows = typed_rows(table, rng)
    for attribute in table.domain.attributes:
        if attribute.numeric:
            numbers = rows[attribute.name].to_numpy(float)
            assert (attribute.code(numbers) == table.column(attribute.name)).all(), attribute.name
            assert attribute.bounds[0] <= numbers.min() and numbers.max() <= attribute.bounds[1]
    kinds = {name: dtype.kind for name, dtype in rows.dtypes.items() if name != "code"}
    assert kinds == {"age": "i", "rate": "f", "weight": "f", "grade": "i"}
    assert np.allclose(rows["rate"], rows["rate"].round(2), atol=1e-12) and set(rows["code"]) == {"01", "02"}


def test_drawn_numbers_are_uniform_within_their_bin(table):
    """20,000 rows, 32 bins: a chi-square test of the 85 ages within their bins fails with probability 0.001."""
    from scipy.stats import chi2

    rows, age = typed_rows(table, np.random.default_rng(2)), table.domain["age"]
    ages = np.arange(16, 101)
    bins = age.code(ages.astype(float))
    expected = (np.bincount(table.column("age"), minlength=32) / np.bincount(bins, minlength=32))[bins]
    counts = np.bincount(rows["age"], minlength=101)[16:]
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(0.001, 85 - 32)


def test_numbers_that_the_rows_have_stay_as_they_are():
    """With the declared decimals; one that may be missing, and one that is in bins alone."""
    declared = {name: DECLARED[name] for name in ("age", "rate")} | {"weight": {**DECLARED["weight"], "missing": True}}
    domain = domain_from_config(declared)
    weight = np.array([0.1234, np.nan])
    codes = np.stack([[0, 31], [3, 3], domain["weight"].code(weight)], axis=1)
    table = Table(domain, codes, {"age": np.array([17.0, 99.0]), "weight": weight})
    for rng in (None, np.random.default_rng(0)):
        rows = typed_rows(table, rng)
        assert rows["age"].tolist() == [17, 99] and rows["age"].dtype.kind == "i"
        assert rows["weight"][0] == 0.1234 and np.isnan(rows["weight"][1])
        assert (domain["rate"].code(rows["rate"].to_numpy()) == 3).all()


def test_a_bin_without_such_a_number_has_its_own_rounded(table):
    domain = domain_from_config({"x": {"bounds": [0, 1], "bins": 4, "decimals": 0}})
    rows = typed_rows(Table(domain, np.array([[0], [1], [2], [3]])), np.random.default_rng(0))
    assert rows["x"].tolist() == [0, 0, 1, 1]


def test_decimals_are_part_of_the_declaration_and_of_nothing_else(table):
    plain = domain_from_config({"age": {"bounds": [16, 100], "bins": 32}})["age"]
    assert "decimals" not in plain.to_dict() and table.domain["age"].to_dict() == {**plain.to_dict(), "decimals": 0}
    assert type(plain).from_dict(table.domain["age"].to_dict()) == table.domain["age"]
    for wrong in ({"levels": ["a"], "decimals": 0}, {"bounds": [0, 1], "bins": 2, "decimals": -1}):
        with pytest.raises(UserError, match="decimals"):
            domain_from_config({"x": wrong})


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["middle", "drawn"])
def test_missing_values_are_empty_cells_and_read_back_as_those_of_the_table(rng, tmp_path):
    domain = domain_from_config({name: {**DECLARED[name], "missing": True} for name in ("age", "weight", "code")})
    codes = np.array([[0, 0, 0], [32, 4, 2], [31, 3, 1]])
    rows = typed_rows(Table(domain, codes), rng)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert (tmp_path / "rows.csv").read_text().splitlines()[2] == ",,"
    back = pd.read_csv(tmp_path / "rows.csv", dtype={"code": str})
    assert {name: dtype.kind for name, dtype in back.dtypes.items() if name != "code"} == {"age": "f", "weight": "f"}
    assert back.isna().sum().tolist() == [1, 1, 1] and (back["age"].dropna() % 1 == 0).all()
    assert np.array_equal(code_frame(back, domain).codes, codes)
