"""Adult: the format of its two files (on made-up rows), and the real ones where a mirror has them."""

import hashlib
import json

import numpy as np
import pytest

from dpbench.data.adult import COLUMNS
from dpbench.data.dataset import Dataset
from dpbench.data.load import check, load_dataset
from dpbench.errors import UserError

# Nobody's rows.
TRAIN = (
    "16, Never-worked, 10000, Preschool, 1, Widowed, ?, Wife, Other, Male, 99999, 0, 1, Holand-Netherlands, <=50K\n"
    "100, ?, 1500000, Doctorate, 16, Divorced, Sales, Husband, White, Female, 0, 5000, 99, ?, >50K\n\n"
)
TEST = (
    "|1x3 Cross validator\n"
    "58, Private, 20000, HS-grad, 9, Divorced, Sales, Husband, Black, Female, 0, 0, 50, Hong, >50K.\n\n"
)


@pytest.fixture
def made_up(node, places, monkeypatch):
    """Adult's node with our own three rows for its files."""
    config = node("adult")
    for source, text in zip(config["sources"], (TRAIN, TEST), strict=True):
        path = places / "mirror" / source["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        source["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    return config


def test_format_of_the_files(made_up):
    table = load_dataset(Dataset.of(made_up))
    domain = table.domain
    assert domain.names == tuple(COLUMNS)
    assert table.numbers["age"].tolist() == [16, 100, 58]
    assert table.numbers["fnlwgt"].tolist() == [10000, 1500000, 20000]
    for name, levels in {
        "workclass": ["Never-worked", "?", "Private"],
        "education": ["Preschool", "Doctorate", "HS-grad"],
        "native-country": ["Holand-Netherlands", "?", "Hong"],
        "income>50K": ["<=50K", ">50K", ">50K"],
    }.items():
        assert [domain[name].levels[code] for code in table.column(name)] == levels
    assert table.column("education-num").tolist() == [0, 15, 8]
    assert table.column("age").tolist() == [0, 31, 16]


def test_drop(made_up):
    table = load_dataset(Dataset.of({**made_up, "drop": ["education", "age"]}))
    assert "education" not in table.domain.names
    assert set(table.numbers) == {"fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    assert table.domain == Dataset.of({**made_up, "drop": ["education", "age"]}).domain


def test_other_declaration(made_up):
    made_up["attributes"]["age"] = {"bounds": [20, 90], "bins": 7}
    with pytest.raises(UserError, match=r"Adult: values outside.*\n.*'age', row 1: '16'"):
        load_dataset(Dataset.of(made_up))
    assert load_dataset(Dataset.of({**made_up, "outside": "clip"})).numbers["age"].tolist() == [20, 90, 58]
    assert load_dataset(Dataset.of({**made_up, "outside": "drop"})).numbers["age"].tolist() == [58]


def test_absent_and_offline(node, places):
    with pytest.raises(UserError, match=r"(?s)adult/adult\.data is not here.*dpbench data fetch adult.*adult_synth"):
        load_dataset(Dataset.of({**node("adult"), "offline": True}))


def test_real_adult_has_all_rows_and_fits_its_domain(adult):
    table = load_dataset(Dataset.of(adult))
    assert len(table) == 48_842
    assert table.column("income>50K").sum() == 11_687  # adult.names: 24.08 % + 23.62 %
    unknown = [int((table.column(name) == table.domain[name].levels.index("?")).sum()) for name in COLUMNS[1:7:5]]
    assert unknown == [2_799, 2_809]
    assert "48,842 rows x 15 attributes" in check(Dataset.of(adult))


def test_real_adult_compared_with_the_file_of_dd_ssp(adult, adult_hd):
    import pandas as pd

    table, theirs = load_dataset(Dataset.of(adult)), pd.read_csv(adult_hd / "adult.csv.gz")
    assert table.domain.sizes == json.loads((adult_hd / "adult-domain.json").read_text())
    differ = {name: int((table.column(name) != theirs[name]).sum()) for name in COLUMNS}
    # What the card says: another order of levels in education, and bins of [lower, upper + 1).
    assert {name: count for name, count in differ.items() if count} == {
        "age": 4_717,
        "education": 48_842,
        "capital-loss": 55,
        "hours-per-week": 7_701,
    }
    levels = np.array(table.domain["education"].levels)
    assert np.array_equal(levels[table.column("education")], np.sort(levels)[theirs["education"]])
    for name in ("age", "fnlwgt", "capital-gain", "capital-loss", "hours-per-week"):
        lower, upper = table.domain[name].bounds
        assert np.array_equal((table.numbers[name] - lower) * 32 // (upper + 1 - lower), theirs[name])
