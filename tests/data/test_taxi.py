"""Taxi: incomplete, refunded and far trips (made-up ones), and the real files where a mirror has them."""

import gzip
import hashlib
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import verify
from dpbench.data.load import check, load_dataset
from dpbench.data.taxi import COLUMNS
from dpbench.errors import UserError

# Nobody's trips.
APRIL = [
    [1.0, 0.0, 0.99, 1.0, 1, 265, 2.0, 3.99, 0.0, 0.0, 4.0],
    [None, None, 5.0, None, 3, 4, None, 10.0, 0.0, 0.0, 10.0],  # no meter detail
    [2.0, 1.0, 0.0, 99.0, 74, 74, 3.0, -8.0, -1.0, -6.12, -15.12],  # refunded
]
MAY = [[2.0, 9.0, 134121.5, 5.0, 265, 264, 6.0, 803.0, 480.0, 96.0, 1000.0]]  # beyond every bound


def parquet(rows):
    import pandas as pd

    stream = io.BytesIO()
    pd.DataFrame(rows, columns=COLUMNS).assign(ehail_fee=None).to_parquet(stream)
    return stream.getvalue()


def csv(rows):
    import pandas as pd

    frame = pd.DataFrame(rows, columns=COLUMNS)[COLUMNS[::-1]]  # in another order
    return frame.assign(ID=range(len(frame))).to_csv(index=False).encode()


@pytest.fixture
def made_up(node, places, monkeypatch):
    """made_up({file: bytes}) -> Taxi's node with these files in a mirror."""
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))

    def put(files, *overrides):
        config = node("taxi", *overrides)
        (places / "mirror").mkdir(exist_ok=True)
        for name, content in files.items():
            (places / "mirror" / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        config["sources"] = [
            {"file": f"taxi/{name.removesuffix('.gz')}", "url": "", "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ]
        return {**config, "offline": True}

    return put


FORMATS = [
    {"april.parquet": parquet(APRIL), "may.parquet": parquet(MAY)},
    {"april.parquet.gz": parquet(APRIL), "may.csv": csv(MAY)},
    {"april.csv.gz": csv(APRIL), "may.csv": csv(MAY)},
]


@pytest.mark.parametrize("files", FORMATS)
def test_trips_of_all_files_in_their_order(made_up, files):
    table = load_dataset(Dataset.of(made_up(files)))
    assert table.domain.names == tuple(COLUMNS)
    levels = {name: [table.domain[name].levels[code] for code in table.column(name)]
              for name in COLUMNS if not table.domain[name].numeric}  # fmt: skip
    assert levels == {
        "VendorID": ["1", "2", "2"],
        "RatecodeID": ["1", "99", "5"],
        "PULocationID": ["1", "74", "265"],
        "DOLocationID": ["265", "74", "264"],
        "payment_type": ["2", "3", "6"],
    }
    assert {name: column.tolist() for name, column in table.numbers.items()} == {
        "passenger_count": [0, 1, 9],
        "trip_distance": [0.99, 0, 32],
        "fare_amount": [3.99, 0, 128],
        "tip_amount": [0, 0, 32],
        "tolls_amount": [0, 0, 32],
        "total_amount": [4, 0, 128],
    }
    assert table.column("total_amount").tolist() == [1, 0, 31]  # bins of 4 dollars
    assert table.column("trip_distance").tolist() == [0, 0, 31]  # bins of a mile


def test_a_dropped_attribute_does_not_change_the_rows(made_up):
    drop = "drop=[VendorID,passenger_count,RatecodeID,payment_type]"
    assert len(load_dataset(Dataset.of(made_up(FORMATS[0], drop)))) == 3


@pytest.mark.parametrize(("column", "value"), [("PULocationID", 266), ("VendorID", 6), ("payment_type", 0)])
def test_undeclared_level(made_up, column, value):
    row = [value if name == column else given for name, given in zip(COLUMNS, APRIL[0], strict=True)]
    with pytest.raises(UserError, match=f"Taxi: values outside.*\n.*'{column}', row 1"):
        load_dataset(Dataset.of(made_up({"april.parquet": parquet([row])})))


@pytest.mark.parametrize(
    "files",
    [{"a.csv": b"VendorID,fare_amount\n1,2.5\n"}, {"a.parquet": b"no parquet"}, {"a.parquet": parquet(APRIL)[:-9]}],
)
def test_a_file_that_holds_no_trips(made_up, files):
    with pytest.raises(UserError, match="is not a file of trips with the columns VendorID, passenger_count"):
        load_dataset(Dataset.of(made_up(files)))


def test_without_files(node):
    with pytest.raises(UserError, match=r"dataset=taxi needs dataset\.sources"):
        load_dataset(Dataset.of({**node("taxi"), "sources": []}))


def test_both_fleets_have_one_domain_with_the_attributes_of_dd_ssp(node):
    domain = Dataset.of(node("taxi")).domain
    assert domain == Dataset.of(node("taxi_yellow")).domain
    assert node("taxi")["target"] == node("taxi_yellow")["target"] == "total_amount"
    for folder in os.environ.get("DPBENCH_DATA_MIRRORS", "").split(os.pathsep):
        if folder and (path := Path(folder) / "ddssp" / "taxi-domain.json").is_file():
            theirs = json.loads(path.read_text())
            assert {name.replace("_", "") for name in domain.names} == set(theirs)
            assert all(size >= theirs[name.replace("_", "")] for name, size in domain.sizes.items())
            break
    else:
        pytest.skip("ddssp/taxi-domain.json is in no folder of DPBENCH_DATA_MIRRORS")


# --- the real files --------------------------------------------------------------------------------------

# Rows, and the values outside of each attribute's bounds, which the cards give as those below and those above.
REAL = {
    "taxi": (380_214, {"trip_distance": 314, "fare_amount": 1374 + 216, "tip_amount": 50 + 117, "tolls_amount": 3 + 2,
                       "total_amount": 1374 + 260}),
    "taxi_yellow": (22_699, {"trip_distance": 3, "fare_amount": 14 + 9, "tip_amount": 5, "total_amount": 14 + 12}),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_trips_fit_their_card(node, name):
    config, (rows, outside) = node(name), REAL[name]
    if any(state == "absent" for _, state, _ in verify(Dataset.of(config).sources)):
        pytest.skip(f"the files of {name} are in no folder of DPBENCH_DATA_MIRRORS")
    assert f"{rows:,} rows x 11 attributes" in check(Dataset.of(config))
    assert config["card"]["rows"] == rows
    table = load_dataset(Dataset.of(config))
    parts = sum(table.numbers[part] for part in ("fare_amount", "tip_amount", "tolls_amount"))
    assert np.mean(np.abs(table.numbers["total_amount"] - parts) <= 10) > 0.999  # taxes and surcharges
    with pytest.raises(UserError) as caught:
        load_dataset(Dataset.of({**config, "outside": "error"}))
    counts = re.findall(r"attribute '(\w+)', row .* \((\d+) such values? of (\d+)\)", str(caught.value))
    assert {attribute: int(count) for attribute, count, _ in counts} == outside
