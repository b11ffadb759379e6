"""The door to data: nodes of conf/dataset, identities, cards."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dpbench.data.bounds import observed_bounds
from dpbench.data.coding import code_frame
from dpbench.data.declare import domain_from_config
from dpbench.data.domain import Attribute, Domain
from dpbench.data.load import card, check, declared_domain, fingerprint, load_dataset
from dpbench.data.table import Table
from dpbench.errors import UserError


def toy(config):
    """A loader of someone's own."""
    rows = np.arange(config["rows"])[:, None] % 2
    domain = Domain((Attribute.categorical("a", "xy"), Attribute.categorical("b", "z")))
    return Table(domain, np.hstack([rows, 0 * rows]))


TOY = {"_target_": f"{__name__}.toy", "name": "toy", "rows": 4, "attributes": {"a": {"levels": ["x", "y"]}, "b": 1}}


def test_adult_domain_is_declared_once_and_needs_no_data(node, places):
    real, synthetic = node("adult"), node("adult_synth")
    assert declared_domain(real) == declared_domain(synthetic)
    sizes = [32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2]
    assert list(declared_domain(real).sizes.values()) == sizes
    assert declared_domain(real)["education-num"].values == tuple(range(1, 17))
    assert declared_domain(real)["capital-loss"].bounds == (0, 5000)
    assert declared_domain(node("adult", "drop=[education]")).sizes == {
        name: size for name, size in declared_domain(real).sizes.items() if name != "education"
    }


def test_node_takes_overrides(node):
    assert declared_domain(node("adult", "attributes.age.bins=8"))["age"].size == 8


@pytest.mark.parametrize("name", ["adult", "adult_synth"])
def test_node_in_the_whole_config(name):
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from dpbench.resources import conf_dir

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = OmegaConf.to_container(compose("config", [f"dataset={name}"]).dataset, resolve=True)
    assert config["name"] == name
    assert declared_domain(config).names[-1] == "income>50K"


def test_own_loader():
    table = load_dataset({**TOY, "drop": ["b"]})
    assert table.domain.names == ("a",)
    assert table.codes.tolist() == [[0], [1], [0], [1]]
    assert "4 rows x 2 attributes" in check(TOY)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"_target_": None}, "has no _target_"),
        ({"_target_": "dpbench.data.nowhere.load"}, "cannot be imported"),
        ({"_target_": "dpbench.data.load.nothing"}, "cannot be imported"),
        ({"_target_": "dpbench.data.load.NOT_PARAMETERS"}, "not a function"),
        ({"_target_": "builtins.dict"}, "returned dict, not a Table"),
        ({"drop": ["c"]}, "unknown attribute 'c'"),
        ({"drop": "a"}, "must be a list"),
        ({"drop": ["a", "b"]}, "leaves no attribute"),
        ({"target": "c"}, "unknown target 'c'.* Known: a, b"),
        ({"target": "a", "drop": ["a"]}, "dataset.target=a is also in dataset.drop"),
    ],
)
def test_bad_node(change, reason):
    with pytest.raises(UserError, match=reason):
        load_dataset({**TOY, **change})


def test_identity_holds_all_that_changes_the_rows_and_no_path(node):
    first = fingerprint(TOY)
    assert json.loads(json.dumps(first)) == first
    assert fingerprint({**TOY, "rows": 5}) != first
    assert fingerprint({**TOY, "card": {"title": "t"}, "offline": True, "alternative": "other"}) == first
    assert fingerprint({**TOY, "drop": ["b"]}) != first
    adult = node("adult")
    pinned = fingerprint(adult)
    assert pinned["sources"] == {source["file"]: source["sha256"] for source in adult["sources"]}
    for source in adult["sources"]:
        source["url"] = "http://elsewhere"
    assert fingerprint(adult) == pinned
    assert fingerprint({**adult, "drop": ["sex", "race"]}) == fingerprint({**adult, "drop": ["race", "sex"]})


def test_cards(node):
    text = card(node("adult"))
    for part in (
        "Becker and Kohavi",
        "CC BY 4.0",
        "48,842",
        "[16, 100] years",
        "hd-datasets",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ):
        assert part in text
    assert "a table of your own" in card(node("csv"))
    assert "synthetic" in card(node("adult_synth"))


def test_import_is_cheap():
    heavy = "{'pandas', 'pooch', 'requests', 'yaml', 'hydra', 'scipy', 'jax'}"
    code = f"import sys, dpbench.data.load; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- bounds read off the rows ----------------------------------------------------------------------------


def numbered(config):
    """Three rows of a loader of someone's own, with their numbers or without."""
    domain = domain_from_config(config["attributes"])
    frame = {"x": config["x"], "grade": [2, 4, 2], "kind": ["b", "a", "b"]}
    table = code_frame(pd.DataFrame(frame), domain)
    return Table(domain, table.codes, table.numbers if config["with_numbers"] else {})


NUMBERED = {
    "_target_": f"{__name__}.numbered",
    "name": "numbered",
    "x": [30.0, 70.0, 50.0],
    "with_numbers": True,
    "attributes": {
        "x": {"bounds": [0, 100], "bins": 4, "unit": "m"},
        "grade": {"values": {"from": 1, "to": 5}},
        "kind": {"levels": ["a", "b"]},
    },
}


def test_bounds_of_the_data():
    declared, observed = load_dataset(NUMBERED), load_dataset({**NUMBERED, "bounds": "data"})
    assert declared.domain == declared_domain({**NUMBERED, "bounds": "data"})
    assert observed.domain["x"] == Attribute.binned("x", 30, 70, 4, "m")
    assert observed.domain["grade"] == Attribute.discrete("grade", [2, 3, 4])
    assert observed.domain["kind"] == declared.domain["kind"]
    assert observed.codes.tolist() == [[0, 0, 1], [3, 2, 0], [2, 0, 1]]
    assert declared.codes.tolist() == [[1, 1, 1], [2, 3, 0], [2, 1, 1]]
    for name in ("x", "grade"):
        assert observed.numbers[name].tolist() == declared.numbers[name].tolist()
    before = declared.codes.copy()
    observed_bounds(declared)
    assert np.array_equal(declared.codes, before)


def test_bounds_of_the_data_are_those_of_the_kept_attributes():
    config = {**NUMBERED, "x": [50.0, 50.0, 50.0], "bounds": "data", "drop": ["x"]}
    assert load_dataset(config).domain.names == ("grade", "kind")


def test_bounds_are_part_of_the_identity():
    unsaid = fingerprint(NUMBERED)
    assert "bounds" not in unsaid["parameters"]  # as before there was such a key
    assert fingerprint({**NUMBERED, "bounds": "declared"}) == unsaid
    assert fingerprint({**NUMBERED, "bounds": "data"}) != unsaid
    assert "bounds: data" in card({**NUMBERED, "bounds": "data"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bounds": "dta"}, "unknown dataset.bounds 'dta'; did you mean 'data'"),
        ({"bounds": "data", "x": [50.0] * 3}, "'x' is 50 in every row.*dataset.drop=.x."),
        ({"bounds": "data", "with_numbers": False}, "'x' has codes only.*dataset.bounds=declared"),
    ],
)
def test_bad_bounds(change, reason):
    with pytest.raises(UserError, match=reason):
        load_dataset({**NUMBERED, **change})


def test_a_simulation_has_no_rows_to_read_bounds_off(node):
    with pytest.raises(UserError, match=r"draws its rows: dataset\.bounds=data"):
        load_dataset({**node("simulation"), "bounds": "data"})


def test_unknown_bounds_are_refused_without_data():
    with pytest.raises(UserError, match=r"unknown dataset\.bounds"):
        declared_domain({**NUMBERED, "bounds": "row"})
