"""The door to data: nodes of conf/dataset, identities, cards."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbench.data.coding import code_frame
from dpbench.data.dataset import Dataset
from dpbench.data.declare import domain_from_config
from dpbench.data.domain import Attribute, Domain
from dpbench.data.load import card, check, fingerprint, load_dataset, observed_bounds
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.resources import conf_dir
from dpbench.targets import FOLDER


@pytest.fixture(autouse=True)
def own_folder(monkeypatch):
    """What is defined here counts as the user's own."""
    monkeypatch.setenv(FOLDER, str(Path(__file__).parents[2]))


def toy(config):
    """A loader of someone's own."""
    rows = np.arange(config["rows"])[:, None] % 2
    domain = Domain((Attribute.categorical("a", "xy"), Attribute.categorical("b", "0")))
    return Table(domain, np.hstack([rows, 0 * rows]))


def no_table(config):
    """A loader that returns what it was given."""
    return dict(config.config)


TOY = {"_target_": f"{__name__}.toy", "name": "toy", "rows": 4, "attributes": {"a": {"levels": ["x", "y"]}, "b": 1}}


def test_adult_domain_is_declared_once_and_needs_no_data(node, places):
    real, synthetic = node("adult"), node("adult_synth")
    assert Dataset.of(real).domain == Dataset.of(synthetic).domain
    sizes = [32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2]
    assert list(Dataset.of(real).domain.sizes.values()) == sizes
    assert Dataset.of(real).domain["education-num"].values == tuple(range(1, 17))
    assert Dataset.of(real).domain["capital-loss"].bounds == (0, 5000)
    assert Dataset.of(node("adult", "drop=[education]")).domain.sizes == {
        name: size for name, size in Dataset.of(real).domain.sizes.items() if name != "education"
    }


def test_node_takes_overrides(node):
    assert Dataset.of(node("adult", "attributes.age.bins=8")).domain["age"].size == 8


@pytest.mark.parametrize("name", ["adult", "adult_synth"])
def test_node_in_the_whole_config(name):
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = OmegaConf.to_container(compose("config", [f"dataset={name}"]).dataset, resolve=True)
    assert config["name"] == name
    assert Dataset.of(config).domain.names[-1] == "income>50K"


def test_own_loader():
    table = load_dataset(Dataset.of({**TOY, "drop": ["b"]}))
    assert table.domain.names == ("a",)
    assert table.codes.tolist() == [[0], [1], [0], [1]]
    assert "4 rows x 2 attributes" in check(Dataset.of(TOY))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"_target_": None}, "has no _target_"),
        ({"_target_": "dpbench.data.nowhere.load"}, "is not allowed"),
        ({"_target_": "dpbench.data.load.nothing"}, "has no function 'nothing'"),
        ({"_target_": "dpbench.data.dataset.KEYS"}, "not a function"),
        ({"_target_": f"{__name__}.no_table"}, "no_table returned dict, not a Table"),
        ({"drop": ["c"]}, "unknown attribute 'c'"),
        ({"drop": "a"}, "must be a list"),
        ({"drop": ["a", "b"]}, "leaves no attribute"),
        ({"target": "c"}, "unknown target 'c'.* known: a, b"),
        ({"target": "a", "drop": ["a"]}, "dataset.target=a is also in dataset.drop"),
    ],
)
def test_bad_node(change, reason):
    with pytest.raises(UserError, match=reason):
        load_dataset(Dataset.of({**TOY, **change}))


def test_identity_holds_all_that_changes_the_rows_and_no_path(node):
    first = fingerprint(Dataset.of(TOY))
    assert json.loads(json.dumps(first)) == first
    assert fingerprint(Dataset.of({**TOY, "rows": 5})) != first
    assert fingerprint(Dataset.of({**TOY, "card": {"title": "t"}, "offline": True, "alternative": "other"})) == first
    assert fingerprint(Dataset.of({**TOY, "public": True, "test_rows": 0.2, "unpaid": "levels"})) == first
    assert fingerprint(Dataset.of({**TOY, "drop": ["b"]})) != first
    adult = node("adult")
    pinned = fingerprint(Dataset.of(adult))
    assert pinned["sources"] == {source["file"]: source["sha256"] for source in adult["sources"]}
    for source in adult["sources"]:
        source["url"] = "http://elsewhere"
    assert fingerprint(Dataset.of(adult)) == pinned
    assert fingerprint(Dataset.of({**adult, "drop": ["sex", "race"]})) == fingerprint(
        Dataset.of({**adult, "drop": ["race", "sex"]})
    )


def test_what_happens_to_values_outside_their_domain_is_part_of_the_identity():
    unsaid, error, clip, drop = (
        fingerprint(Dataset.of({**TOY, **change}))
        for change in ({}, *({"outside": name} for name in ("error", "clip", "drop")))
    )
    assert error == unsaid
    assert clip != unsaid and drop != unsaid and clip != drop


def test_cards(node):
    text = card(Dataset.of(node("adult")))
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
    assert "a table of your own" in card(Dataset.of(node("csv")))
    assert "synthetic" in card(Dataset.of(node("adult_synth")))


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
    declared, observed = load_dataset(Dataset.of(NUMBERED)), load_dataset(Dataset.of({**NUMBERED, "bounds": "data"}))
    assert declared.domain == Dataset.of({**NUMBERED, "bounds": "data"}).domain
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
    assert load_dataset(Dataset.of(config)).domain.names == ("grade", "kind")


def test_bounds_are_part_of_the_identity():
    unsaid = fingerprint(Dataset.of(NUMBERED))
    assert "bounds" not in unsaid["parameters"]  # as before there was such a key
    assert fingerprint(Dataset.of({**NUMBERED, "bounds": "declared"})) == unsaid
    assert fingerprint(Dataset.of({**NUMBERED, "bounds": "data"})) != unsaid
    assert "bounds: data" in card(Dataset.of({**NUMBERED, "bounds": "data"}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bounds": "dta"}, "unknown dataset.bounds 'dta'; did you mean 'data'"),
        ({"bounds": "data", "x": [50.0] * 3}, "'x' is 50 in every row.*dataset.drop=.x."),
        ({"bounds": "data", "with_numbers": False}, "'x' has only codes.*dataset.bounds=declared"),
    ],
)
def test_bad_bounds(change, reason):
    with pytest.raises(UserError, match=reason):
        load_dataset(Dataset.of({**NUMBERED, **change}))


def test_a_simulation_has_no_rows_to_read_bounds_off(node):
    with pytest.raises(UserError, match=r"draws its rows, so dataset\.bounds=data"):
        load_dataset(Dataset.of({**node("simulation"), "bounds": "data"}))


def test_unknown_bounds_are_refused_without_data():
    with pytest.raises(UserError, match=r"unknown dataset\.bounds"):
        _ = Dataset.of({**NUMBERED, "bounds": "row"}).domain


# --- rows outside their declaration ----------------------------------------------------------------------


def heights(config):
    """Rows of a loader of someone's own that looks at no bounds."""
    numbers = np.array(config["numbers"], dtype=float)
    attribute = Attribute.binned("height", *config.get("bounds_used", (0, 2)), 2, "m")
    return Table(Domain((attribute,)), attribute.code(numbers)[:, None], {"height": numbers})


HEIGHTS = {
    "_target_": f"{__name__}.heights",
    "name": "heights",
    "attributes": {"height": {"bounds": [0, 2], "bins": 2, "unit": "m"}},
    "numbers": [1.5, 1.7],
}


@pytest.mark.parametrize("value", [1999, -0.1, float("nan"), float("inf")])
def test_numbers_outside_their_bounds_never_leave_the_door(value):
    assert load_dataset(Dataset.of(HEIGHTS)).numbers["height"].tolist() == [1.5, 1.7]
    with pytest.raises(UserError) as caught:
        load_dataset(Dataset.of({**HEIGHTS, "numbers": [1.5, value]}))
    for part in ("dataset=heights", "heights made", "attribute 'height', row 2", f"{value:g}", "[0, 2]", "Clip such"):
        assert part in str(caught.value)


def test_rows_over_another_domain_than_the_declared_one_are_refused():
    with pytest.raises(UserError) as caught:
        load_dataset(Dataset.of({**HEIGHTS, "numbers": [1.5, 1999], "bounds_used": [0, 2000]}))
    for part in ("dataset=heights", "'height' is declared as [0, 2] m (2 bins)", "is [0, 2000] m (2 bins)"):
        assert part in str(caught.value)


# --- what a config may call ------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["attributes", "sources"])
@pytest.mark.parametrize(
    "target",
    [
        "subprocess.run",
        "os.system",
        "builtins.exec",
        "dpbench.cli.main",
        "dpbench.data.fetch.os.remove",
        "dpbench.data.load.resolve",
        ["subprocess.run"],
        None,
        7,
    ],
)
def test_a_config_calls_nothing_from_elsewhere(key, target, tmp_path):
    config = {**TOY, key: {"_target_": target}, "args": ["touch", str(tmp_path / "ran")]}
    for use in (fingerprint, card, load_dataset) if key == "attributes" else (fingerprint, card):
        with pytest.raises(UserError, match=rf"^dataset=toy: {key}\._target_"):
            use(Dataset.of(config))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["attributes", "sources"])
@pytest.mark.parametrize("name", ["no_table", "no_list", "wrong"])
def test_what_a_function_of_ones_own_makes_is_checked(key, name):
    with pytest.raises(UserError, match=rf"{key}\._target_ .*{name} (failed|must return a list of)"):
        fingerprint(Dataset.of({**TOY, key: {"_target_": f"{__name__}.{name}"}}))


def no_list(config):
    """Returns nothing."""


def wrong(config):
    """Fails."""
    return config["missing"]


def test_a_target_in_any_other_place_is_data():
    config = {**TOY, "card": {"_target_": "subprocess.run"}, "read": {"_target_": "subprocess.run"}}
    assert len(load_dataset(Dataset.of(config))) == 4
    with pytest.raises(UserError, match="attribute 'a'"):
        _ = Dataset.of({**TOY, "attributes": {"a": {"_target_": "subprocess.run"}}}).domain


# --- whose rows are public -------------------------------------------------------------------------------


def test_all_that_ships_or_is_downloaded_is_public_and_a_table_of_ones_own_is_not(node):
    public = {path.stem: Dataset.of(node(path.stem)).public for path in (conf_dir() / "dataset").glob("*.yaml")}
    assert len(public) >= 25
    assert [name for name, value in public.items() if not value] == ["csv"]
    assert not Dataset.of(TOY).public


def test_public_is_true_or_false():
    for value in ("false", 1, None):
        with pytest.raises(UserError, match=r"dataset\.public must be true or false"):
            Dataset.of({**TOY, "public": value})


def test_the_card_says_whether_rows_are_public(node):
    assert "rows are public" in card(Dataset.of(node("adult")))
    assert "rows are private" in card(Dataset.of(node("csv")))
