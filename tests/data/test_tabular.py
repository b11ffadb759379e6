"""A user's own CSV, and the coded tables that ship."""

import gzip
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Domain
from dpbench.data.load import card, check, fingerprint, load_dataset
from dpbench.data.secret_split import coin_splitter
from dpbench.data.table import Table
from dpbench.data.tabular import write_shipped
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan, read_plan

CSV = "age,sex,income\n20,F,1.5\n40,M,99\n99,F,0\n"
DOMAIN = "age: {bounds: [16, 100], bins: 4}\nsex: {levels: [F, M]}\nincome: {bounds: [0, 100], bins: 10, unit: k}\n"


@pytest.fixture
def own(tmp_path, node):
    """own(csv, domain, **settings) -> the node of a user's files."""

    def make(text=CSV, domain=DOMAIN, name="my.csv", domain_name="my.yaml", **settings):
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        (tmp_path / domain_name).write_text(domain)
        paths = {"path": str(tmp_path / name), "domain": str(tmp_path / domain_name)}
        return {**node("csv"), **paths, "target": "income", **settings}

    return make


def test_csv(own):
    table = load_dataset(Dataset.of(own()))
    assert table.domain.names == ("age", "sex", "income")
    assert table.codes.tolist() == [[0, 0, 0], [1, 1, 9], [3, 0, 0]]
    assert table.numbers["income"].tolist() == [1.5, 99, 0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CSV, "my.csv.gz"),
        ("\ufeff" + CSV, "my.csv"),
        (CSV.replace("\n", "\r\n"), "my.csv"),
        (CSV.replace(",", " , "), "my.csv"),
        (CSV.replace("F", '"F"'), "my.csv"),
        (CSV + "\n\n", "my.csv"),
    ],
)
def test_csv_as_programs_write_it(own, text, name):
    plain, other = load_dataset(Dataset.of(own())), load_dataset(Dataset.of(own(text, name=name)))
    assert np.array_equal(plain.codes, other.codes)
    assert plain.domain == other.domain


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("age,sex,income\n", "there is no row"),
        (CSV.replace(",", ";"), "not separated by commas"),
        ('"age, years";sex;income\n20,5;F;1,0\n', "dataset.separator=semicolon dataset.decimal=comma reads it"),
        ("age,income\n20,1\n", "declared but missing: sex"),
        (CSV.replace("age,", "id,age,"), "line 2 has 3 fields, the header 4: give each row"),
        ("age,sex,income\n20,F,1,7\n30,F,1,8\n", "one field more than line 1 has names"),
        (CSV + "20,F,1,7\n", "line 5 has 4 fields, the header 3: put values that contain commas in quotes"),
        (CSV + '\n20,"F\n",1\n20,F,1,7\n', "line 8 has 4 fields, the header 3"),
        ("age,sex,income\n20,F,1,7\n20,F,1,7,8\n", "line 2 has 4 fields, the header 3: put values"),
        (CSV.replace("\n", "\r") + "20,F,1,7\r", "line 5 has 4 fields"),
        (CSV + '20,"F,1\n40,M,9\n', "a quote that opens in line 5 is not closed"),
        (CSV + '\n20,"F\n",1\n20,"F,1\n40,M,9\n', "a quote that opens in line 8 is not closed"),
        ('age,"sex,income\n20,F,1\n', "a quote that opens in line 1 is not closed"),
        (CSV + "20,F\n", "line 5 has 2 fields, the header 3: if the table ends above it, dataset.footer=1"),
        (CSV + "20,F\n" + CSV[15:], "line 5 has 2 fields, the header 3: give each row a field"),
        (CSV + "20,F,\n", "'income', row 4: an empty value"),
        (CSV + "20,NA,1\n", "'sex', row 4: 'NA'"),
        (CSV.replace("F", "\xe9").encode("latin-1"), "not UTF-8"),
        (CSV.replace("sex", "age"), "a column occurs twice: age"),
        ("height," + CSV.replace("\n", "\n1,").removesuffix("1,"), r"not declared: height"),
    ],
)
def test_bad_csv(own, text, reason):
    with pytest.raises(UserError, match=reason) as caught:
        load_dataset(Dataset.of(own(text)))
    assert "my.csv" in str(caught.value)


def test_broken_gz(own, tmp_path):
    config = own(name="my.csv.gz")
    path = tmp_path / "my.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    for use in (load_dataset, fingerprint):
        with pytest.raises(UserError, match="cannot be read"):
            use(Dataset.of(config))
    path.write_text(CSV)
    with pytest.raises(UserError, match="cannot be read"):
        load_dataset(Dataset.of(config))


def test_undeclared_column_can_be_dropped(own):
    text = "height," + CSV.replace("\n", "\n1,").removesuffix("1,")
    config = own(text, drop=["height", "sex"])
    assert load_dataset(Dataset.of(config)).domain.names == ("age", "income")
    assert Dataset.of(config).domain.names == ("age", "income")
    with pytest.raises(UserError, match="did you mean 'height'"):
        load_dataset(Dataset.of(own(text, drop=["heigth", "height"])))
    with pytest.raises(UserError, match=r"known: age, height, income, sex$"):
        load_dataset(Dataset.of(own(text, drop=["foo", "height"])))


def test_private_pgm_files(own):
    config = own("sex,age\n1,84\n0,0\n", '{"age": 85, "sex": 2}', domain_name="domain.json", target=None)
    assert load_dataset(Dataset.of(config)).codes.tolist() == [[84, 1], [0, 0]]
    with pytest.raises(UserError, match="'age', row 1: '85'"):
        load_dataset(
            Dataset.of(own("sex,age\n1,85\n", '{"age": 85, "sex": 2}', domain_name="domain.json", target=None))
        )


def test_outside(own):
    text = CSV + "15,F,1\n200,M,101\n"
    with pytest.raises(UserError, match=r"'age', row 4: '15'.*2 such(.|\n)*'income', row 5"):
        load_dataset(Dataset.of(own(text)))
    assert load_dataset(Dataset.of(own(text, outside="clip"))).numbers["age"].tolist() == [20, 40, 99, 16, 100]
    assert len(load_dataset(Dataset.of(own(text, outside="drop")))) == 3


def test_check_counts(own):
    text = CSV + "15,F,1\n200,M,101\n"
    assert "3 rows x 3 attributes fit" in check(Dataset.of(own()))
    assert "values of age moved into its bounds: 2" in check(Dataset.of(own(text, outside="clip")))
    assert "rows left out for a value outside its domain: 2" in check(Dataset.of(own(text, outside="drop")))
    assert "3 rows x 2 attributes" in check(Dataset.of(own(drop=["sex"], target=None)))
    with pytest.raises(UserError, match="row 4"):
        check(Dataset.of(own(text)))


@pytest.mark.parametrize("key", ["path", "domain"])
def test_what_is_not_given(own, key, tmp_path):
    with pytest.raises(UserError, match=f"needs dataset.{key}"):
        load_dataset(Dataset.of({**own(), key: None}))
    with pytest.raises(UserError, match=r"no such file|cannot be read"):
        load_dataset(Dataset.of({**own(), key: str(tmp_path / "none")}))
    with pytest.raises(UserError, match="it is a folder, not a file"):
        load_dataset(Dataset.of({**own(), key: str(tmp_path)}))


def test_identity_of_a_csv_is_its_content_and_declaration(own):
    def identity(*args, **settings):
        return json.dumps(fingerprint(Dataset.of(own(*args, **settings))), sort_keys=True)

    first = identity()
    assert identity(name="other.csv", domain_name="other.yaml") == first
    assert identity(name="my.csv.gz") == first
    assert "/" not in first.replace('"dpbench.data.tabular.load_csv"', "")
    changed = [
        identity(CSV + "20,F,1\n"),
        identity(domain=DOMAIN.replace("bins: 4", "bins: 5")),
        identity(outside="clip"),
        identity(drop=["sex"]),
    ]
    assert len({first, *changed}) == 5


# --- foreign files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "piece", "reason"),
    [
        (b"", b"0", "has a line of more than 10 MB"),
        (b"age,sex,income\n20,F,", b"1", "has a line of more than 10 MB"),
        (b"age,sex,income\n", b"20,F,1\r\n", "unpacks to more than 128 MB; if that is right, unpack it"),
        (b"age,sex,income\n", b"\n", "unpacks to more than 128 MB"),
    ],
)
def test_a_small_file_that_unpacks_to_a_large_one(own, head, piece, reason):
    config = own(CSV, name="bomb.csv.gz")
    packed = gzip.compress(piece * ((1 << 20) // len(piece)))
    Path(config["path"]).write_bytes(gzip.compress(head) + 130 * packed)
    with pytest.raises(UserError, match=f"bomb.csv.gz {reason}"):
        fingerprint(Dataset.of(config))
    code = """
import json, resource, sys
from dpbench.data.dataset import Dataset
from dpbench.data.load import load_dataset
from dpbench.errors import UserError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_dataset(Dataset.of(json.loads(sys.argv[1])))
except UserError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code, json.dumps(config)], capture_output=True, text=True, check=True)
    message, grown = done.stdout.splitlines()
    assert re.search(f"bomb.csv.gz {reason}", message)
    assert int(grown) < 200  # MB, most of it pandas


def test_a_plain_file_may_be_as_large_as_it_is(own, monkeypatch):
    monkeypatch.setattr("dpbench.data.tabular.MOST_UNPACKED", 20)
    assert len(load_dataset(Dataset.of(own()))) == 3
    with pytest.raises(UserError, match="unpacks to more than"):
        load_dataset(Dataset.of(own(name="my.csv.gz")))


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["all", "one"])
def test_many_columns_take_a_time_that_grows_with_their_number_only(own, declared):
    def seconds(columns):
        names = [f"c{i}" for i in range(columns)]
        text = ",".join(names) + "\n" + ",".join("1" * columns) + "\n"
        kept = names if declared == "all" else names[:1]
        config = own(text, json.dumps(dict.fromkeys(kept, 2)), domain_name="d.json", target="c0", drop=names[1000:2000])
        start = time.process_time()
        if declared == "all":
            assert load_dataset(Dataset.of(config)).codes.shape == (1, columns - len(names[1000:2000]))
        else:
            with pytest.raises(UserError, match="not declared") as caught:
                load_dataset(Dataset.of(config))
            assert len(str(caught.value)) < 1000
        return time.process_time() - start

    seconds(100)  # imports
    assert seconds(16_000) < 8 * seconds(4_000)  # a linear time is 4 times as long, a quadratic one 16 times


def test_a_huge_field_or_name_is_not_shown_in_full(own):
    for text in (CSV + f"20,{'F' * 1_000_000},1\n", CSV.replace("sex", "s" * 1_000_000)):
        with pytest.raises(UserError) as caught:
            load_dataset(Dataset.of(own(text)))
        assert len(str(caught.value)) < 2000


def test_what_is_hashed_is_what_is_read(own, tmp_path):
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(CSV.encode()) + gzip.compress(b"41,F,7\n"))
    config = {**own(), "path": str(tmp_path / "two.csv.gz")}
    assert len(load_dataset(Dataset.of(config))) == 4
    assert fingerprint(Dataset.of(config))["sources"]["csv"] == hashlib.sha256(CSV.encode() + b"41,F,7\n").hexdigest()


# --- how many rows are for testing -----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [600, 7000])
def test_a_table_of_ones_own_keeps_about_a_fifth_for_testing_by_coins(own, rows, tmp_path):
    """The number is binomial: within 5 standard deviations, but once in a million salts; this one is fixed."""
    text = CSV.splitlines()[0] + "\n" + "20,F,1.5\n40,M,99\n" * (rows // 2)
    config = own(text)
    settings = [f"dataset.{key}={config[key]}" for key in ("path", "domain", "target")]
    experiment = compose(["dataset=csv", *settings, "mechanism=[exact]"])
    plan = make_plan(experiment)
    assert plan.releases[0].key.split == {"test_rows": 0.2, "coins": "records"}
    (tmp_path / "plan.jsonl").write_text("".join(plan.lines()))
    asked = read_plan(tmp_path / "plan.jsonl").releases[0].key.split
    parts = coin_splitter(load_dataset(Dataset.of(config)), bytes(32))("one", asked["test_rows"], asked["coins"])
    assert len(parts.train) + len(parts.test) == rows
    assert abs(len(parts.test) - 0.2 * rows) < 5 * (rows * 0.2 * 0.8) ** 0.5


def test_a_number_of_rows_for_testing_is_refused_for_a_table_of_ones_own(own):
    with pytest.raises(UserError, match=r"sample\.test_rows=2: of a table that is not public"):
        check(Dataset.of(own(CSV.splitlines()[0] + "\n20,F,1.5\n40,M,99\n")), 2)


def test_the_data_of_dd_ssp_keep_its_thousand(node):
    for name in ("adult", "adult_synth", "fire", "taxi", "acsincome_linear_ca"):
        assert compose([f"dataset={name}"]).sample.test_rows == 1000
    assert compose(["dataset=adult", "sample.test_rows=0.3"]).sample.test_rows == 0.3
    assert compose(["dataset=csv", "dataset.target=age", "sample.test_rows=[0.3,50]"]).sample.test_rows == [0.3, 50]


@pytest.mark.parametrize("given", ["-1", "1.5", "[0.2]", "[2,1000]", "[0.2,0]", "[0.2,1.5]", "true", "[0.2,true]", "a"])
def test_bad_test_rows(given):
    with pytest.raises(UserError, match=r"sample\.test_rows must be a whole number of at least 0, a fraction such as"):
        compose(["dataset=adult", f"sample.test_rows={given}"])


# --- shipped -----------------------------------------------------------------------------------------------------

FACTS = {"mechanism": "aim", "epsilon": 1.0, "delta": 1e-9, "seed": 0, "commit": "c0ffee", "command": "make it"}


@pytest.fixture
def shipped(tmp_path, monkeypatch, node):
    """adult_synth's node over a small table of our own."""
    monkeypatch.setattr("dpbench.resources.data_dir", lambda: tmp_path)
    return node("adult_synth")


@pytest.fixture
def table(shipped):
    domain = Dataset.of(shipped).domain
    codes = np.random.default_rng(0).integers(0, list(domain.sizes.values()), size=(50, len(domain.names)))
    return Table(domain, codes)


def test_shipped_round_trip(shipped, table, tmp_path):
    write_shipped(table, tmp_path, "adult_synth", FACTS)
    back = load_dataset(Dataset.of({**shipped, "drop": ["education"]}))
    assert np.array_equal(back.codes, table.project(back.domain.names).codes)
    assert not back.numbers
    first = (tmp_path / "adult_synth.csv.gz").read_bytes()
    assert first[4:8] == bytes(4)  # no time of writing
    write_shipped(table, tmp_path, "adult_synth", FACTS)
    assert (tmp_path / "adult_synth.csv.gz").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adult_synth.csv.gz", "adult_synth.json"]


def test_shipped_columns_are_found_by_name(shipped, table, tmp_path):
    turned = Table(Domain(table.domain.attributes[::-1]), table.codes[:, ::-1])
    write_shipped(turned, tmp_path, "adult_synth", FACTS)
    assert np.array_equal(load_dataset(Dataset.of(shipped)).codes, table.codes)


def test_shipped_identity_does_not_read_the_rows(shipped, table, tmp_path):
    write_shipped(table, tmp_path, "adult_synth", FACTS)
    (tmp_path / "adult_synth.csv.gz").unlink()
    sha256 = json.loads((tmp_path / "adult_synth.json").read_text())["sha256"]
    assert fingerprint(Dataset.of(shipped))["sources"] == {"adult_synth.csv": sha256}
    assert f"sha256: {sha256}" in card(Dataset.of(shipped))
    with pytest.raises(UserError, match=r"adult_synth\.csv\.gz cannot be read .* `make it`"):
        load_dataset(Dataset.of(shipped))


def test_shipped_missing(shipped):
    for use in (load_dataset, fingerprint):
        with pytest.raises(UserError, match=r"adult_synth\.json, which describes dataset=adult_synth, cannot be read"):
            use(Dataset.of(shipped))
    assert "Not usable" in card(Dataset.of(shipped))
    assert Dataset.of(shipped).domain.names[0] == "age"


def test_shipped_damaged(shipped, table, tmp_path):
    write_shipped(table, tmp_path, "adult_synth", FACTS)
    path = tmp_path / "adult_synth.csv.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(UserError, match="another sha256"):
        load_dataset(Dataset.of(shipped))
    path.write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match="cannot be read"):
        load_dataset(Dataset.of(shipped))
    (tmp_path / "adult_synth.json").write_text('{"epsilon": 1}')
    with pytest.raises(UserError, match="lacks command, commit, delta"):
        load_dataset(Dataset.of(shipped))


def test_shipped_outside_its_declaration(shipped, table, tmp_path):
    write_shipped(table, tmp_path, "adult_synth", FACTS)
    shipped["attributes"]["age"]["bins"] = 3
    with pytest.raises(UserError, match="codes outside the domain"):
        load_dataset(Dataset.of(shipped))
    shipped |= {"attributes": {"age": 2}, "target": None}
    text = b"age\n1\n-1\n"
    (tmp_path / "adult_synth.csv.gz").write_bytes(gzip.compress(text))
    facts = {**FACTS, "rows": 2, "sha256": hashlib.sha256(text).hexdigest()}
    (tmp_path / "adult_synth.json").write_text(json.dumps(facts))
    with pytest.raises(UserError, match="codes outside the domain"):
        load_dataset(Dataset.of(shipped))
    shipped["attributes"] = {"height": 2}
    with pytest.raises(UserError, match="other attributes"):
        load_dataset(Dataset.of(shipped))


def test_shipped_needs_all_facts(table, tmp_path):
    with pytest.raises(UserError, match="lacks seed"):
        write_shipped(table, tmp_path, "adult_synth", {key: FACTS[key] for key in FACTS if key != "seed"})
