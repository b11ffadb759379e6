"""Files of codes: their format on made-up rows, and the real ones of paper 0's authors where a mirror has them."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dpbench.data.coded import load_coded
from dpbench.data.fetch import verify
from dpbench.data.load import check, declared_domain, load_dataset
from dpbench.data.source import sources_of
from dpbench.errors import UserError

# Nobody's rows.
FIRST, SECOND = "sex,age,job\n1,0,2\n0,3,0\n", "age,job,sex\n2,1,1\n"


@pytest.fixture
def made_up(places, monkeypatch):
    """made_up(text, ...) -> the node of a dataset with these files; the second of them is gzipped."""
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))

    def make(*texts):
        sources = []
        for i, text in enumerate(texts):
            path = places / "mirror" / f"toy/{i}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            if i == 1:
                path.with_suffix(".csv.gz").write_bytes(gzip.compress(text.encode()))
            else:
                path.write_text(text)
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            sources.append({"file": f"toy/{i}.csv", "url": "http://127.0.0.1:9", "sha256": sha256})
        attributes = {"age": {"values": {"from": 20, "to": 23}}, "sex": {"levels": ["f", "m"]}, "job": 3}
        target = "dpbench.data.coded.load_coded"
        return {"_target_": target, "name": "toy", "sources": sources, "attributes": attributes}

    return make


def test_files_follow_one_another_with_their_columns_in_the_declared_order(made_up):
    table = load_dataset(made_up(FIRST, SECOND))
    assert table.domain.names == ("age", "sex", "job")
    assert table.codes.tolist() == [[0, 1, 2], [3, 0, 0], [2, 1, 1]]
    assert np.array(table.domain["age"].values)[table.column("age")].tolist() == [20, 23, 22]
    assert load_dataset({**made_up(FIRST), "drop": ["sex"]}).codes.tolist() == [[0, 2], [3, 0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("age,job\n2,1\n", r"not those declared.*\['sex'\]"),
        ("age,sex,job,pay\n2,1,1,0\n", r"not those declared.*\['pay'\]"),
        ("age,sex,job\n4,1,1\n", r"column 'age' must hold the integers 0 \.\. 3"),
        ("age,sex,job\n0,-1,1\n", r"column 'sex' must hold the integers 0 \.\. 1"),
        ("age,sex,job\n0,1,1.5\n", "column 'job'"),
        ("age,sex,job\n0,1,\n", "column 'job'"),
        ("age,sex,job\n0,m,1\n", "column 'sex'"),
    ],
)
def test_files_that_do_not_fit(made_up, text, reason):
    with pytest.raises(UserError, match=f"toy/1.csv: .*{reason}"):
        load_dataset(made_up(FIRST, text))


def test_no_files(made_up):
    with pytest.raises(UserError, match=r"toy needs dataset\.sources"):
        load_coded(made_up())


# --- California 2018, coded by the authors of paper 0 -------------------------------------------------------


def real(config):
    """The node, where its files are at hand."""
    if any(state != "ok" for _, state, _ in verify(sources_of(config))):
        pytest.skip("the authors' files are in no folder of DPBENCH_DATA_MIRRORS")
    return config


def beside(file: str) -> Path:
    for folder in os.environ.get("DPBENCH_DATA_MIRRORS", "").split(os.pathsep):
        if folder and (Path(folder) / "ddssp" / file).is_file():
            return Path(folder) / "ddssp" / file
    pytest.skip(f"ddssp/{file} is in no folder of DPBENCH_DATA_MIRRORS")


@pytest.mark.parametrize(
    ("name", "stem", "rows"),
    [
        ("acsincome_linear_ca", "ACSincome-LIN", 195_665),
        ("acsmobility_ca", "ACSmobility", 29_358),
        ("acsemployment_ca", "ACSemployment", 50_000),
    ],
)
def test_authors_rows_and_sizes(node, name, stem, rows):
    config = real(node(name))
    assert f"{rows:,} rows" in check(config)
    assert config["card"]["rows"] == rows
    assert declared_domain(config).sizes == json.loads(beside(f"{stem}-domain.json").read_text())


def test_hours_are_hours(node):
    for name in ("acsincome_linear_ca", "acsmobility_ca"):
        table = load_dataset(real(node(name)))
        assert table.domain["WKHP"].values[np.bincount(table.column("WKHP")).argmax()] == 40


def test_labels_mean_what_they_say(node):
    """Most people stay where they lived; who is at work is no child under 16, and of 30 to 50 years more often."""
    mobility, employment = load_dataset(real(node("acsmobility_ca"))), load_dataset(real(node("acsemployment_ca")))
    assert mobility.domain["MIG"].levels[1] == "same house"
    assert mobility.column("MIG").mean() == pytest.approx(0.724, abs=0.001)
    age, at_work = employment.column("AGEP"), employment.column("ESR")
    assert employment.domain["ESR"].levels[1] == "at work"
    assert at_work[age < 16].sum() == 0
    assert at_work[(age >= 30) & (age < 50)].mean() > 2 * at_work[age >= 65].mean()


def test_mobility_is_the_authors_unsplit_file(node):
    import pandas as pd

    table, whole = load_dataset(real(node("acsmobility_ca"))), pd.read_csv(beside("ACSmobility.csv.gz"))
    theirs = whole[list(table.domain.names)].to_numpy()
    assert np.array_equal(table.codes[np.lexsort(table.codes.T)], theirs[np.lexsort(theirs.T)])
