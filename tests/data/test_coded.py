"""Files of codes: their format on made-up rows, and the authors' real ones of three papers where a mirror has them."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dpbench.config import composed
from dpbench.data.coded import PARTS, load_coded, load_part
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.fetch import verify
from dpbench.data.load import card, check, load_dataset
from dpbench.data.table import count_test_rows
from dpbench.errors import UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.workload import cliques_of

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
    table = load_dataset(Dataset.of(made_up(FIRST, SECOND)))
    assert table.domain.names == ("age", "sex", "job")
    assert table.codes.tolist() == [[0, 1, 2], [3, 0, 0], [2, 1, 1]]
    assert np.array(table.domain["age"].values)[table.column("age")].tolist() == [20, 23, 22]
    assert load_dataset(Dataset.of({**made_up(FIRST), "drop": ["sex"]})).codes.tolist() == [[0, 2], [3, 0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("age,job\n2,1\n", r"differ from the declared ones.*\['sex'\]"),
        ("age,sex,job,pay\n2,1,1,0\n", r"differ from the declared ones.*\['pay'\]"),
        ("age,sex,job\n4,1,1\n", r"'age' must hold the integers 0 \.\. 3, .*1 of 1 rows do not, such as row 1: 4"),
        ("age,sex,job\n0,-1,1\n", r"'sex' must hold the integers 0 \.\. 1, .*row 1: -1"),
        ("age,sex,job\n0,1,1\n0,1,1.5\n", r"column 'job' .* row 2: 1\.5"),
        ("age,sex,job\n0,1,\n", "column 'job' .* row 1: nan"),
        ("age,sex,job\n0,m,1\n", "column 'sex' .* row 1: m"),
    ],
)
def test_files_that_do_not_fit(made_up, text, reason):
    with pytest.raises(UserError, match=f"toy/1.csv: .*{reason}"):
        load_dataset(Dataset.of(made_up(FIRST, text)))


def test_no_files(made_up):
    with pytest.raises(UserError, match=r"toy needs dataset\.sources"):
        load_coded(Dataset.of(made_up()))


def test_a_first_column_without_a_name_numbers_the_rows(made_up):
    numbered = load_dataset(Dataset.of(made_up(",sex,age,job\n7,1,0,2\n9,0,3,0\n")))
    assert numbered.codes.tolist() == load_dataset(Dataset.of(made_up(FIRST))).codes.tolist()


def test_private_and_public_parts_share_no_row_and_leave_none_out(made_up):
    ages = "age,sex,job\n" + "".join(f"{i % 4},{i // 4 % 2},{i // 8}\n" for i in range(24))
    config = made_up(ages)
    private, public, every = (load_part(Dataset.of({**config, "part": part})) for part in PARTS)
    assert sorted([*private.codes.tolist(), *public.codes.tolist()]) == sorted(every.codes.tolist())
    assert len(private) > 3 * len(public) > 0
    with pytest.raises(UserError, match=r"unknown dataset\.part 'privat'; did you mean 'private'"):
        load_part(Dataset.of({**config, "part": "privat"}))


# --- Adult, coded by the authors of private query release ---------------------------------------------------

STAR = {"degree": 3, "max_cells": 48_842, "marginals": 64}


@pytest.mark.parametrize(
    ("name", "rows", "workload", "marginals", "queries", "above"),
    [  # the paper, Figure 1 and F.6; "approximately 20k" in section 3.1; those of ADULT (reduced) are ours
        ("adult_queries", 43_944, 3, 286, 334_128, (487, 181)),
        ("adult_queries_reduced", 43_944, 3, 35, 14_955, (39, 7)),
        ("adult_queries_public", 4_869, 3, 286, 334_128, None),
        ("adult_queries_public_reduced", 4_869, 3, 35, 19_687, None),
        ("adult_star", 48_842, STAR, 64, 458_996, (71, 28)),
    ],
)
def test_the_queries_of_a_paper(node, name, rows, workload, marginals, queries, above):
    """Numbers of queries, and of those whose answer is above 0.1 and above 0.2."""
    config = real(node(name))
    table = load_dataset(Dataset.of(config))
    asked = QueryWorkload(table.domain.sizes, cliques_of(table.domain, workload))
    assert (len(table), len(asked.cliques), len(asked)) == (rows, marginals, queries)
    assert config["card"]["rows"] == rows and config["test_rows"] == 0
    answers = asked.of_rows(table.codes)
    assert above is None or (np.sum(answers > 0.1), np.sum(answers > 0.2)) == above


def test_the_experiment_on_adult_star_asks_the_queries_of_the_paper(node):
    """The draw depends on the order of the attributes, which is the alphabet's in a run: so they are listed."""
    parts = composed(["experiment=queries_adult_star"])
    drawn = [list(clique) for clique in cliques_of(Dataset.of(node("adult_star")).domain, STAR)]
    asked = [*(parts["mechanism"][name] for name in ("zero", "dualquery", "aim")), *parts["metric"].values()]
    assert all(part["workload"] == drawn for part in asked) and len(asked) == 6


def test_sizes_of_the_authors_adult(node):
    for name, stem in (("adult_queries", "adult_gem/adult"), ("adult_star", "adult_orig/adult_orig")):
        sizes = Dataset.of({**real(node(name)), "drop": []}).domain.sizes
        assert sizes == json.loads(next_to(f"{stem}-domain.json").read_text())


def test_levels_of_the_authors_adult_are_those_of_uci(node, adult):
    """Each level of UCI's files is as frequent, but for the 29 repeated rows; of all attributes, by their names."""
    ours, uci = (
        load_dataset(Dataset.of(real({**node("adult_queries"), "part": "all"}))),
        load_dataset(Dataset.of(adult)),
    )
    for attribute in ours.domain.attributes:
        name = attribute.name
        if name in uci.domain.names and not attribute.numeric and not name.startswith("capital"):
            known = uci.domain[name].levels or [f"{value:g}" for value in uci.domain[name].values]
            there = dict(zip(known, np.bincount(uci.column(name)), strict=True))
            here = np.bincount(ours.column(name), minlength=attribute.size)
            assert all(0 <= there[level] - count <= 29 for level, count in zip(attribute.levels, here, strict=True))
    for name, edges in (("age_10", np.arange(0, 101, 10)), ("hours-per-week", np.arange(0, 101, 10))):
        there = np.histogram(uci.numbers[name.removesuffix("_10")], edges)[0]
        assert np.all(np.abs(there - np.bincount(ours.column(name), minlength=10)) <= 29)
    gain, ends = uci.numbers["capital-gain"], {"0": (0, 0), "50000 and more": (50_000, 100_000)}
    for code, level in enumerate(ours.domain["capital-gain"].levels):
        first, last = ends.get(level) or map(int, level.split("-"))
        assert abs(np.sum((gain >= first) & (gain <= last)) - np.sum(ours.column("capital-gain") == code)) <= 29


# --- California 2018, coded by the authors of DD-SSP -------------------------------------------------------


def real(config):
    """The node, where its files are at hand."""
    if any(state != "ok" for _, state, _ in verify(Dataset.of(config).sources)):
        pytest.skip("the authors' files are in no folder of DPBENCH_DATA_MIRRORS")
    return config


def next_to(file: str) -> Path:
    for folder in os.environ.get("DPBENCH_DATA_MIRRORS", "").split(os.pathsep):
        if folder and (Path(folder) / file).is_file():
            return Path(folder) / file
    pytest.skip(f"{file} is in no folder of DPBENCH_DATA_MIRRORS")


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
    assert f"{rows:,} rows" in check(Dataset.of(config))
    assert config["card"]["rows"] == rows
    assert Dataset.of(config).domain.sizes == json.loads(next_to(f"ddssp/{stem}-domain.json").read_text())


def test_hours_are_hours(node):
    for name in ("acsincome_linear_ca", "acsmobility_ca"):
        table = load_dataset(Dataset.of(real(node(name))))
        assert table.domain["WKHP"].values[np.bincount(table.column("WKHP")).argmax()] == 40


def test_labels_mean_what_they_say(node):
    """Most people stay where they lived; who is at work is no child under 16, and of 30 to 50 years more often."""
    mobility, employment = (
        load_dataset(Dataset.of(real(node("acsmobility_ca")))),
        load_dataset(Dataset.of(real(node("acsemployment_ca")))),
    )
    assert mobility.domain["MIG"].levels[1] == "same house"
    assert mobility.column("MIG").mean() == pytest.approx(0.724, abs=0.001)
    age, at_work = employment.column("AGEP"), employment.column("ESR")
    assert employment.domain["ESR"].levels[1] == "at work"
    assert at_work[age < 16].sum() == 0
    assert at_work[(age >= 30) & (age < 50)].mean() > 2 * at_work[age >= 65].mean()


def test_mobility_is_the_authors_unsplit_file(node):
    import pandas as pd

    table, whole = (
        load_dataset(Dataset.of(real(node("acsmobility_ca")))),
        pd.read_csv(next_to("ddssp/ACSmobility.csv.gz")),
    )
    theirs = whole[list(table.domain.names)].to_numpy()
    assert np.array_equal(table.codes[np.lexsort(table.codes.T)], theirs[np.lexsort(theirs.T)])


# --- coded by Zhou et al. (2024) ---------------------------------------------------------------------------

TABLE_1 = {
    "adult_risk": (48_842, 14),
    "churn": (3_859, 16),
    "compas": (7_214, 9),
    "dutch": (60_420, 12),
    "heart": (303, 14),
    "law": (20_798, 12),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_rows_and_attributes_are_those_of_table_1(node, name):
    config = real(node(name))
    table = load_dataset(Dataset.of(config))
    rows = len(table) - count_test_rows(0.2, len(table)) if name == "churn" else len(table)  # of it, the training rows
    assert (rows, len(table.domain.names)) == TABLE_1[name]
    assert config["card"]["rows"] == len(table)
    theirs = next_to(f"excess_risk/{name.removesuffix('_risk')}_domain.json")
    assert list(table.domain.sizes.items()) == list(json.loads(theirs.read_text()).items())


@pytest.mark.parametrize("name", TABLE_1)
def test_declared_levels_are_those_that_occur_which_is_outside_the_budget(node, name):
    config = real(node(name))
    table = load_dataset(Dataset.of(config))
    for attribute in table.domain.attributes:
        assert np.bincount(table.column(attribute.name), minlength=attribute.size).all()
    assert "those that occur" in config["unpaid"]
    assert "outside the privacy budget: the levels" in card(Dataset.of(config))


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("adult_risk", ["income>50K", "sex"]),
        ("dutch", ["occupation", "prev_residence_place", "sex"]),
        ("law", ["pass_bar", "race", "fulltime"]),
        ("churn", ["Churn Value"]),
        ("compas", ["two_year_recid"]),
        ("heart", ["output"]),
    ],
)
def test_targets_of_table_2_and_figure_5_are_labels(node, name, targets):
    assert node(name)["target"] == targets[0]
    for target in targets:
        domain = Dataset.of({**node(name), "target": target}).domain
        assert Design(domain, target).binary


def test_adults_relationship_has_six_levels_and_is_no_label(node):
    with pytest.raises(UserError, match=r"'relationship' is categorical and has 6; .*: age, .*sex, .*income>50K"):
        Design(Dataset.of({**node("adult_risk"), "target": "relationship"}).domain, "relationship")


def test_adult_risk_is_uci_adult_in_other_bins(node, adult):
    theirs, ours = (
        load_dataset(Dataset.of(real(node("adult_risk")))),
        load_dataset(Dataset.of({**adult, "drop": ["education"]})),
    )
    numbers = dict(ours.numbers)
    for name, upper in {"fnlwgt": 1_500_000, "capital-gain": 100_000, "capital-loss": 5_000}.items():
        lower = 10_000 if name == "fnlwgt" else 0
        numbers[name] = (numbers[name] - lower) * 100 // (upper + 1 - lower)
    assert theirs.domain.names == ours.domain.names
    for name in theirs.domain.names:
        _, codes = np.unique(numbers.get(name, ours.column(name)), return_inverse=True)
        assert np.array_equal(theirs.column(name), codes)
    same = [name for name in ours.domain.names if np.array_equal(theirs.column(name), ours.column(name))]
    assert same == [name for name in ours.domain.names if name not in numbers or name == "education-num"]


@pytest.mark.parametrize(
    ("name", "target", "attribute", "shares"),
    [
        ("churn", "Churn Value", "Contract", [0.148, 0.045, 0.470]),
        ("compas", "two_year_recid", "sex", [0.473, 0.357]),
        ("dutch", "occupation", "sex", [0.327, 0.626]),
        ("heart", "output", "exng", [0.696, 0.232]),
        ("law", "pass_bar", "race", [0.723, 0.921]),
    ],
)
def test_shares_behind_what_the_comments_say_of_codes(node, name, target, attribute, shares):
    """Customers leave month-to-month contracts, men return to prison, angina goes with a diseased heart, and so on."""
    table = load_dataset(Dataset.of(real(node(name))))
    ones = [table.column(target)[table.column(attribute) == code].mean() for code in range(len(shares))]
    assert ones == pytest.approx(shares, abs=0.001)


# --- the same data sets from where they were first published ------------------------------------------------


def original(config):
    """The node, where the original file is at hand."""
    if any(state != "ok" for _, state, _ in verify(Dataset.of(config).sources)):
        pytest.skip(f"the original file of {config['name']} is in no folder of DPBENCH_DATA_MIRRORS")
    return config


def test_compas_is_propublicas_file(node):
    theirs, ours = (
        load_dataset(Dataset.of(real(node("compas")))),
        load_dataset(Dataset.of(original(node("compas_propublica")))),
    )
    assert ours.domain == theirs.domain
    assert np.array_equal(ours.codes, theirs.codes)


def test_heart_is_ucis_file_but_for_one_row(node):
    """The order of UCI's rows in Kaggle's heart.csv, which pandas has shuffled: those without a disease first."""
    theirs, config = load_dataset(Dataset.of(real(node("heart")))), original(node("heart_uci"))
    ours = load_dataset(Dataset.of(config))
    assert len(ours) == config["card"]["rows"] == 303
    same = [name for name in ours.domain.names if ours.domain[name] == theirs.domain[name]]
    assert [*{*ours.domain.names} - {*same}] == ["trtbps"]
    pressure = config["recode"]["trtbps"]
    only_ours = ours.column("trtbps") == pressure.index(158)
    assert np.flatnonzero(only_ours).tolist() == [184]
    codes = ours.codes.copy()
    codes[:, ours.domain.index("trtbps")] -= ours.column("trtbps") > pressure.index(158)
    healthy = ours.column("output") == 1
    assert healthy[-1]
    kaggle = np.concatenate([codes[healthy], codes[-1:], codes[~healthy & ~only_ours]])
    assert np.array_equal(kaggle[np.random.RandomState(42).permutation(303)], theirs.codes)


def test_churn_is_ibms_file_but_for_eight_customers_who_left(node):
    theirs, config = load_dataset(Dataset.of(real(node("churn")))), original(node("churn_ibm"))
    ours = load_dataset(Dataset.of(config))
    assert len(ours) == config["card"]["rows"]

    def counts(table):
        """Of those with DSL and with fiber optic: how many stay and leave."""
        return np.bincount(2 * table.column("Internet Service") + table.column("Churn Value"))

    assert (counts(ours) - counts(theirs)).tolist() == [0, 2, 0, 6]


# Nobody's rows, in the form of the files.
PATIENTS = """62.0,1.0,1.0,146.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0
41.0,0.0,4.0,158.0,564.0,0.0,0.0,71.0,1.0,0.0,1.0,?,?,3
77.0,1.0,2.0,200.0,126.0,0.0,1.0,202.0,0.0,6.2,2.0,3.0,7.0,1
"""
PEOPLE = """id,age,race,sex,juv_fel_count,decile_score,juv_misd_count,juv_other_count,priors_count,c_charge_degree,\
decile_score,priors_count,start,two_year_recid
1,18,Asian,Female,20,1,13,17,38,M,1,38,0,1
2,83,Other,Male,0,9,0,0,0,F,9,0,0,0
"""
CUSTOMERS = """customerID,gender,SeniorCitizen,Partner,Dependents,tenure,PhoneService,MultipleLines,InternetService,\
OnlineSecurity,OnlineBackup,DeviceProtection,TechSupport,StreamingTV,StreamingMovies,Contract,PaperlessBilling,\
PaymentMethod,MonthlyCharges,TotalCharges,Churn
A,Male,1,Yes,No,72,Yes,No,Fiber optic,Yes,No,No,No,Yes,No,Two year,No,Credit card (automatic),90,6512.5,No
B,Male,0,No,No,1,Yes,Yes,DSL,No,No,No,No,No,No,Month-to-month,Yes,Mailed check,45,45,Yes
C,Female,0,No,No,1,No,No phone service,DSL,No,No,No,No,No,No,Month-to-month,Yes,Mailed check,25,25,Yes
D,Female,0,No,No,9,Yes,No,No,{none},{none},{none},{none},{none},{none},One year,No,Mailed check,20,180,No
E,Female,0,Yes,Yes,0,Yes,No,DSL,Yes,Yes,Yes,Yes,Yes,Yes,Two year,No,Mailed check,80, ,No
""".replace("{none}", "No internet service")
NONE, TWO = [0] * 6, [1, 0, 0, 0, 1, 0]  # of six services


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [
        (
            "heart_uci",
            PATIENTS,
            [
                [28, 1, 3, 32, 64, 1, 0, 49, 0, 22, 0, 0, 1, 1],
                [7, 0, 0, 39, 151, 0, 1, 0, 1, 0, 2, 4, 0, 0],
                [40, 1, 1, 49, 0, 0, 2, 90, 0, 39, 1, 3, 3, 0],
            ],
        ),
        ("compas_propublica", PEOPLE, [[5, 0, 1, 10, 9, 9, 36, 1, 1], [0, 63, 0, 0, 0, 0, 0, 0, 0]]),
        ("churn_ibm", CUSTOMERS, [[71, 65, 1, 1, 0, *TWO, 1, 0, 3, 1, 0], [0, 0, 0, 0, 0, *NONE, 2, 1, 0, 0, 1]]),
    ],
)
def test_original_files_are_read_in_the_authors_codes(node, places, monkeypatch, name, text, codes):
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    config = node(name)
    (source,) = config["sources"]
    path = places / "mirror" / source["file"]
    path.parent.mkdir(parents=True)
    path.write_text(text)
    table = load_dataset(
        Dataset.of({**config, "sources": [{**source, "sha256": hashlib.sha256(text.encode()).hexdigest()}]})
    )
    assert table.domain.names == Dataset.of(node(name.split("_")[0])).domain.names
    assert table.codes.tolist() == codes
