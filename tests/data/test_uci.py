"""UCI's tables: how files are read (made-up ones), and the datasets of BinAgg where a mirror has them."""

import hashlib
import zipfile

import numpy as np
import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import verify
from dpbench.data.load import card, check, fingerprint, load_dataset
from dpbench.errors import UserError

# BinAgg, Table 2: rows, features d (one-hot), RelMSE of OLS. D9 is a fifth of the paper's rows here.
TABLE_2 = {
    "lt_fs_id": (182, 4, 0.038),
    "liver_disorders": (345, 6, 0.084),
    "auction_verification": (2043, 8, 0.023),
    "abalone": (4177, 10, 0.044),
    "parkinsons": (5875, 21, 0.011),
    "wine_quality": (6497, 12, 0.016),
    "air_quality": (9357, 12, 0.441),
    "appliances_energy": (19735, 27, 0.438),
    "superconductivity_sample": (4252, 81, 0.131),
}
CLASSES = {  # of two classes: rows, as their sources state them, and the share of the second class
    "bank_marketing": (45211, 0.12),
    "banknote": (1372, 0.44),
    "cmc": (1473, 0.57),
    "credit_default": (30000, 0.22),
    "htru2": (17898, 0.09),
    "magic_gamma": (19020, 0.65),
    "mushroom": (8124, 0.48),
    "occupancy": (20560, 0.23),
    "online_shoppers": (12330, 0.15),
    "phishing": (11055, 0.44),
    "phoneme": (5404, 0.29),
    "retinopathy": (1151, 0.53),
    "spambase": (4601, 0.39),
}
ROWS = {  # as their sources state them
    **{name: rows for name, (rows, *_) in (TABLE_2 | CLASSES).items()},
    **{"california_housing": 20640, "concrete": 1030, "diamonds": 53940, "energy_efficiency": 768, "kin8nm": 8192},
    **{"power_plant": 9568, "protein": 45730, "yacht": 308},
}


@pytest.fixture
def real(node):
    """real(name) -> the dataset's node, where its files are at hand; nothing is downloaded."""

    def find(name):
        config = node(name)
        if any(state == "absent" for _, state, _ in verify(Dataset.of(config).sources)):
            pytest.skip(f"the files of {name} are in no folder of DPBENCH_DATA_MIRRORS")
        return config

    return find


def features(table, target):
    """The features (n, p), numbers as they are and levels one-hot, and the target (n,)."""
    columns = []
    for attribute in table.domain.attributes:
        if not attribute.numeric:
            columns += list(np.eye(attribute.size)[table.column(attribute.name)].T)
        elif attribute.name != target:
            columns.append(table.numbers[attribute.name])
    return np.column_stack(columns), table.numbers[target]


@pytest.mark.parametrize("name", TABLE_2)
def test_least_squares_is_that_of_the_paper(real, name):
    config, (rows, width, published) = real(name), TABLE_2[name]
    table = load_dataset(Dataset.of(config))
    X, y = features(table, config["target"])
    assert X.shape == (rows, width)
    assert config["card"]["rows"] == rows
    residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert round(residuals @ residuals / (y @ y), 3) == published
    assert table.domain == Dataset.of(config).domain


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_changed_to_fit_its_declaration(real, name):
    config = real(name)
    assert config["outside"] == "error"
    assert f"{ROWS[name]:,} rows" in check(Dataset.of(config))
    observed = load_dataset(Dataset.of({**config, "bounds": "data"}))
    for attribute in load_dataset(Dataset.of(config)).domain.attributes:
        if attribute.numeric:
            lower, upper = observed.domain[attribute.name].bounds
            assert attribute.bounds[0] <= lower < upper <= attribute.bounds[1]


@pytest.mark.parametrize("name", CLASSES)
def test_tables_of_two_classes_have_the_shares_that_their_cards_say(real, name):
    config, (rows, share) = real(name), CLASSES[name]
    table = load_dataset(Dataset.of(config))
    assert (config["card"]["rows"], table.domain.sizes[config["target"]]) == (rows, 2)
    assert round(np.mean(table.column(config["target"]) == 1), 2) == share
    assert f"{share:.0%}".replace("%", " %") in " ".join(config["card"]["notes"])


def test_what_the_cards_say_of_collinear_features(real):
    for name, rank in {"lt_fs_id": 3, "appliances_energy": 26}.items():
        config = real(name)
        assert np.linalg.matrix_rank(features(load_dataset(Dataset.of(config)), config["target"])[0]) == rank
        assert f"rank {rank}" in " ".join(card(Dataset.of(config)).split())


def test_missing_values_of_air_quality_stay_numbers_with_a_bin_of_their_own(real):
    config = real("air_quality")
    table = load_dataset(Dataset.of(config))
    for name in table.domain.names:
        missing = table.numbers[name] == -200
        assert missing.any()
        assert np.array_equal(table.column(name) == 0, missing)
    counts = {name: int(np.sum(table.numbers[name] == -200)) for name in ("CO(GT)", "NMHC(GT)")}
    notes = " ".join(card(Dataset.of(config)).split())
    assert f"{counts['CO(GT)']:,} values of the target are, and {counts['NMHC(GT)']:,} of NMHC(GT)" in notes


def test_full_superconductivity_is_read_from_whatever_undamaged_zip_file_is_there(node, places, monkeypatch):
    domain = Dataset.of(node("superconductivity")).domain
    assert domain == Dataset.of(node("superconductivity_sample")).domain
    names, row = domain.names[::-1], [attribute.values[2] for attribute in domain.attributes[::-1]]
    text = f"{','.join(names)}\n{','.join(map(repr, row))}\n"
    path = places / "mirror" / "superconductivity" / "superconduct.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("unique_m.csv", "H,He\n1,0\n")
        archive.writestr("train.csv", text)
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    config = {**node("superconductivity"), "offline": True}
    table = load_dataset(Dataset.of(config))
    assert [table.numbers[name].tolist() for name in names] == [[value] for value in row]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert fingerprint(Dataset.of(config))["sources"] == {"superconductivity/superconduct.zip": digest}


# --- made-up files ---------------------------------------------------------------------------------------

TOY = {
    "_target_": "dpbench.data.uci.load",
    "name": "toy",
    "offline": True,
    "attributes": {"size": {"bounds": [-200, 10], "bins": 5}, "kind": {"levels": ["a", "b"]}},
}


@pytest.fixture
def toy(places, monkeypatch):
    """toy(*texts, **config) -> a dataset of two attributes read from files with these texts."""
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))

    def put(*texts, **changes):
        sources = []
        (places / "mirror" / "toy").mkdir(parents=True, exist_ok=True)
        for i, text in enumerate(texts):
            (places / "mirror" / "toy" / f"{i}.csv").write_text(text)
            sources.append({"file": f"toy/{i}.csv", "url": "", "sha256": hashlib.sha256(text.encode()).hexdigest()})
        return {**TOY, "sources": sources, **changes}

    return put


def test_read_says_how_a_file_is_written(toy):
    european = 'Date;size;kind;\n01/02/2004;2,5;a;\n01/03/2004;" -200";b;\n;;;\n\n'
    table = load_dataset(Dataset.of(toy(european, read={"sep": ";", "decimal": ","})))
    assert table.numbers["size"].tolist() == [2.5, -200]
    assert table.column("kind").tolist() == [0, 1]
    bare = load_dataset(Dataset.of(toy("1,b\n2,a\n", read={"header": None, "names": ["size", "kind"]})))
    assert bare.numbers["size"].tolist() == [1, 2]
    assert bare.column("kind").tolist() == [1, 0]


def test_files_are_stacked_with_their_added_column(toy):
    attributes = {**TOY["attributes"], "color": {"values": [0, 1]}}
    config = toy("size,kind\n1,a\n2,a\n", "kind,size\nb,3\n", attributes=attributes, added={"color": [0, 1]})
    table = load_dataset(Dataset.of(config))
    assert table.numbers["size"].tolist() == [1, 2, 3]
    assert table.numbers["color"].tolist() == [0, 0, 1]
    assert fingerprint(Dataset.of({**config, "added": {"color": [1, 0]}})) != fingerprint(Dataset.of(config))


def test_recode_says_what_stands_for_each_code(toy):
    text = "size,kind\n10.0,4\n-3,?\n 7,1\n,2.0\n"
    attributes = {"size": {"values": {"from": 0, "to": 3}}, "kind": 2}
    recode = {"size": [-3, 7.0, None, 10], "kind": [["?", 4], [1, "2"]]}
    config = toy(text, attributes=attributes, recode=recode)
    table = load_dataset(Dataset.of(config))
    assert table.column("size").tolist() == [3, 0, 1, 2]
    assert table.numbers["size"].tolist() == [3, 0, 1, 2]
    assert table.column("kind").tolist() == [0, 0, 1, 1]
    assert fingerprint(Dataset.of({**config, "recode": {**recode, "size": [7, -3, None, 10]}})) != fingerprint(
        Dataset.of(config)
    )


@pytest.mark.parametrize(
    ("recode", "reason"),
    [
        ({"kind": ["a"]}, r"toy: column 'kind', row 2: 'b' is not among the values .* lists for it \(2 such of 3\)"),
        ({"kind": ["a", ["b", "a"]]}, "toy: dataset.recode.kind lists 'a' twice"),
        ({"size": [1, 2, "1.0", 3]}, "toy: dataset.recode.size lists '1.0' twice"),
        ({"kind": "ab"}, "toy: dataset.recode.kind must be a list of values, not 'ab'"),
        ({"kind": {"a": 0}}, "toy: dataset.recode.kind must be a list of values"),
        (["kind"], "toy: dataset.recode must map columns to lists of values"),
        ({"kin": ["a", "b"]}, "unknown column in dataset.recode: 'kin'; did you mean 'kind'"),
        ({"kind": ["c", "b", "a"]}, "'kind', row 1: '2' is not one of its levels 0, 1"),
    ],
)
def test_what_cannot_be_recoded(toy, recode, reason):
    attributes = {**TOY["attributes"], "kind": 2}
    with pytest.raises(UserError, match=reason):
        load_dataset(Dataset.of(toy("size,kind\n1,a\n2,b\n3,b\n", attributes=attributes, recode=recode)))


@pytest.mark.parametrize(
    ("text", "changes", "reason"),
    [
        ("size\n1\n", {}, "toy: declared but missing: kind. Columns found: size"),
        ("size\n1\n", {"recode": {"kind": ["a"]}}, "toy: declared but missing: kind. Columns found: size"),
        ("size,kind\n1,a\n,b\n", {}, "toy: .*\n.*'size', row 2: an empty value is not a number in"),
        ("size,kind\n1,a\nmany,b\n", {}, "'size', row 2: 'many' is not a number in"),
        ("size,kind\n1,a\n11,b\n", {}, r"'size', row 2: '11' is not a number in \[-200, 10\]"),
        ("size,kind\n1,c\n", {}, "'kind', row 1: 'c' is not one of its levels a, b"),
        ("size,kind\n", {}, "toy: there is no row"),
        ("", {}, "cannot be read with dataset.read={}"),
        ("size,kind\n1,a\n", {"read": {"seperator": ";"}}, "cannot be read with dataset.read=.*seperator"),
        ("size,kind\n1,a\n", {"added": {"color": [0, 1]}}, "in dataset.added a value for each"),
        ("size,kind\n1,a\n", {"sources": []}, "needs dataset.sources"),
    ],
)
def test_bad_file_or_config(toy, text, changes, reason):
    with pytest.raises(UserError, match=reason):
        load_dataset(Dataset.of(toy(text, **changes)))


def test_changed_bytes_are_refused(toy, places):
    config = toy("size,kind\n1,a\n")
    (places / "mirror" / "toy" / "0.csv").write_text("size,kind\n2,a\n")
    with pytest.raises(UserError, match=r"toy/0\.csv: another sha256"):
        load_dataset(Dataset.of(config))


def test_loans_stand_in_for_those_of_query_release(real):
    """All rows are there; few numbers lie beyond the declared bounds, and are moved to them."""
    table = load_dataset(Dataset.of(real("loans")))
    assert (len(table), len(table.domain.names)) == (39_786, 14)
    for name, numbers in table.numbers.items():
        assert np.mean(numbers == table.domain[name].bounds[1]) < 0.02 or name == "loan_amnt"
    assert {name: table.domain.sizes[name] for name in ("term", "emp_length", "addr_state")} == {
        "term": 2, "emp_length": 12, "addr_state": 51,
    }  # fmt: skip
