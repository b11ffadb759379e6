"""`dpbench release`: from one's own table to a folder that can be handed over."""

import json
import math
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dpbench
from dpbench.cli import main
from dpbench.commands import release as command
from dpbench.errors import NoEstimateError
from dpbench.grid.odometer import Odometer
from dpbench.grid.seeds import keyed
from dpbench.privacy.accounting import gaussian_epsilon, spent
from dpbench.privacy.ledger import Ledger
from dpbench.releases.release_file import release_bytes

DOMAIN = """
age: {bounds: [16, 100], bins: 12, unit: years, decimals: 0}
grade: {values: {from: 1, to: 8}}
region: {levels: ["01", "02", "03"]}
income: {bounds: [0, 200], bins: 100, unit: 1000 dollars, decimals: 1}
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A folder with a table of one's own, and a salt of its own."""
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 1000
    age, grade, region = rng.integers(16, 100, n), rng.integers(1, 9, n), rng.integers(1, 4, n)
    income = np.clip(15 * grade + 0.5 * age - 10 * (region == 2) + rng.normal(0, 5, n), 0, 200).round(1)
    table = pd.DataFrame({"age": age, "grade": grade, "region": region, "income": income})
    table.assign(region="0" + table["region"].astype(str)).to_csv("my.csv", index=False)
    (tmp_path / "my.yaml").write_text(DOMAIN)
    return table


def made(*more, out="out", table="my.csv", mechanism="mst"):
    line = ["release", "dataset=csv", f"dataset.path={table}", "dataset.domain=my.yaml", f"mechanism={mechanism}"]
    return main([*line, "--out", out, *more])


def about(folder="out"):
    with open(f"{folder}/ledger.json") as file:
        return json.load(file)


def text(folder="out"):
    with open(f"{folder}/statement.md") as file:
        return file.read()


def refused(capsys):
    return capsys.readouterr().err


# --- what is written -------------------------------------------------------------------------------------------------


def test_rows_are_read_back_with_the_types_of_the_table(own, tmp_path):
    assert made("epsilon=1") == 0
    there, back = pd.read_csv("my.csv", dtype={"region": str}), pd.read_csv("out/synthetic.csv", dtype={"region": str})
    assert back.dtypes.equals(there.dtypes) and list(back) == list(there)
    assert set(back["region"]) <= {"01", "02", "03"} and back["age"].nunique() > 12
    assert (back["income"].round(1) == back["income"]).all()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()} == {0o600}


def test_middles_of_bins_are_an_option():
    assert made("--numbers", "middle") == 0
    assert pd.read_csv("out/synthetic.csv")["age"].nunique() <= 12


def test_coefficients_are_those_of_the_table_at_a_large_epsilon(own):
    model = ["dataset.target=income", "model=linear_marginals"]
    assert made("epsilon=1e6", *model, mechanism="gaussian_marginals") == 0
    found = pd.read_csv("out/coefficients.csv").set_index("feature")
    plain = np.column_stack([own["age"], own["grade"], own["region"] == 2, own["region"] == 3])
    known = LinearRegression().fit(plain, own["income"])
    names = ["age", "grade", "region=02", "region=03"]
    assert found.loc[names, "own_estimate"].to_numpy() == pytest.approx(known.coef_, abs=0.15)
    assert found.loc["(intercept)", "own_estimate"] == pytest.approx(known.intercept_, abs=1)
    assert found.loc["age", "own_estimate"] == pytest.approx(found.loc["age", "estimate"] * 100 / 42)
    for name in ("coefficients.md", "coefficients.tex"):
        with open(f"out/{name}") as file:
            assert "1000 dollars for one unit of a feature" in file.read()


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("residual_planner", []),  # of released marginals
        ("aim", ["++mechanism.aim.answers=false"]),  # of a distribution
    ],
)
def test_answers_to_queries_are_those_of_the_table_at_a_large_epsilon(own, mechanism, more):
    """Without a target, and with the bins and levels by name."""
    workload = f"++mechanism.{mechanism}.workload=2"
    assert (
        made("epsilon=10000", "relation=replace", "model=released_answers", workload, *more, mechanism=mechanism) == 0
    )
    found = pd.read_csv("out/answers.csv", dtype={"value_1": str, "value_2": str})
    assert list(found) == ["attribute_1", "value_1", "attribute_2", "value_2", "count"]
    assert found.groupby(["attribute_1", "attribute_2"]).ngroups == 6
    asked = found[(found["attribute_1"] == "age") & (found["attribute_2"] == "region")]
    assert len(asked) == 12 * 3
    first = asked[(asked["value_1"] == "16 to 23") & (asked["value_2"] == "02")]["count"]
    assert first.item() == pytest.approx(((own["age"] < 23) & (own["region"] == 2)).sum(), abs=3)
    assert "answers.csv: answers to queries" in text() and not Path("out/coefficients.csv").exists()


def test_answers_of_a_mechanism_without_a_workload_are_of_three_attributes_and_a_wrong_workload_is_refused(own, capsys):
    assert made("epsilon=1", "model=released_answers", mechanism="privsyn") == 0  # of its rows
    found, rows = pd.read_csv("out/answers.csv"), pd.read_csv("out/synthetic.csv")
    triples = found.groupby(["attribute_1", "attribute_2", "attribute_3"])["count"].sum()
    assert len(triples) == 4 and (triples == len(rows)).all()
    more = ["epsilon=1", "model=released_answers", "++mechanism.residual_planner.workload=5"]
    assert made(*more, mechanism="residual_planner", out="other") == 2
    assert "nothing was drawn" not in (said := refused(capsys)) and "5" in said and entries(capsys) == 1


def test_several_models_each_with_the_errors_it_gives():
    models = "model=[linear_statistics,linear_statistics_intervals]"
    more = ["dataset.target=income", "epsilon=50", "sample.train_rows=1000"]
    assert made(*more, models, mechanism="ssp_intervals") == 0
    found = pd.read_csv("out/coefficients.csv").set_index("model")
    assert found.loc["linear_statistics", "lower"].isna().all()
    both = found.loc["linear_statistics_intervals"]
    assert (both["lower"] < both["estimate"]).all() and (both["estimate"] < both["upper"]).all()
    with open("out/coefficients.md") as file:
        assert "Intervals of linear\\_statistics\\_intervals: 95%" in file.read()


def test_the_statement_has_the_numbers_of_the_ledger():
    assert made("epsilon=0.7", "delta=1e-6") == 0
    found, said = about(), text()
    cost = spent(Ledger.from_list(found["ledger"]), 1e-6)
    assert found["budget"] == {"epsilon": 0.7, "delta": 1e-6, "relation": "add_remove"}
    assert found["spent"]["epsilon"] == cost.epsilon == pytest.approx(0.7)
    for sentence in (
        "a factor of e^ε = 2.01375 at most",
        "| ε spent | 0.7 |",
        f"| μ of Gaussian DP | {cost.mu:.6g} |",
        "1/(1 + e^-ε) = 66.8 %",
        "| 50 % | 66.8 % |",
        "symmetric distance is 1",
        "Nothing: all that depends on the rows was paid for",
        "| age | 12 bins | \\[16, 100\\] years, bins of 7 |",
        "A table with a value outside of them is refused.",
    ):
        assert sentence in said, sentence
    with open("out/statement.html") as file:
        page = file.read()
    assert "<td>50 %</td><td>66.8 %</td>" in page and "<h2>What is not covered</h2>" in page


def test_the_statement_tells_the_name_and_a_keyed_checksum_of_the_table_and_no_value_of_it(own, tmp_path):
    import hashlib

    made()
    plain = hashlib.sha256((tmp_path / "my.csv").read_bytes()).hexdigest()
    assert keyed(plain) in text() and plain not in text() and str(tmp_path) not in text() + json.dumps(about())
    assert "1,000" not in text() and "1000 rows" not in text()


def test_the_share_left_out_is_named_and_said_to_be_unpaid(tmp_path, capsys):
    rows = (tmp_path / "my.csv").read_text().splitlines()
    (tmp_path / "my.csv").write_text("\n".join([*rows[:601], *[f"-1,{row.split(',', 1)[1]}" for row in rows[601:]]]))
    assert made("dataset.outside=drop") == 0
    said = "about 40 % of the rows, left out for a value outside its domain"
    assert f"A row with a value outside of them is left out. This left out {said}" in text()
    assert said in text().split("## What was read without payment")[1] and said in capsys.readouterr().out


def test_what_the_settings_took_from_the_rows_is_named():
    assert made("+dataset.bounds=data", "delta=n**-1.1") == 0
    unpaid = text().split("## What was read without payment")[1].split("##")[0]
    assert "the bounds of the attributes" in unpaid and "a power of the number of training rows" in unpaid
    assert "are in part computed from the rows" in text()


@pytest.mark.parametrize("mechanism", ["aim", "mst", "gaussian_marginals", "adassp", "binagg"])
def test_missing_values_go_through_every_kind_of_release(own, mechanism, tmp_path):
    """A tenth of the ages and of the regions are missing; at a large epsilon the shares and coefficients are right."""
    rng = np.random.default_rng(1)
    some = own.assign(region="0" + own["region"].astype(str)).astype({"age": object})
    some.loc[rng.random(1000) < 0.1, "age"] = "NA"
    some.loc[rng.random(1000) < 0.1, "region"] = ""
    some.to_csv("my.csv", index=False)
    declared = DOMAIN.replace("decimals: 0}", "decimals: 0, missing: true}").replace('"03"]}', '"03"], missing: true}')
    (tmp_path / "my.yaml").write_text(declared)
    model = {"adassp": "linear_statistics", "binagg": "bin_regression", "aim": "linear_rows"}
    models = ["dataset.target=income", f"model={model.get(mechanism, 'linear_marginals')}"]
    assert made("epsilon=1e5", *models, mechanism=mechanism) == 0
    assert "12 bins, or missing" in text() and "3 levels, or missing" in text()
    found = pd.read_csv("out/coefficients.csv").set_index("feature")["own_estimate"]
    age = some["age"].replace("NA", 58).astype(float)
    levels = [some["region"] == level for level in ("02", "03", "")]
    plain = np.column_stack([age, some["age"] == "NA", own["grade"], *levels])
    known = LinearRegression().fit(plain, own["income"])
    names = ["age", "age=(missing)", "grade", "region=02", "region=03", "region=(missing)"]
    if mechanism not in ("mst", "binagg"):  # which measure few pairs, and add much noise
        assert found[names].to_numpy() == pytest.approx(known.coef_, abs=4 if mechanism == "aim" else 1.5)
    if mechanism in ("aim", "mst"):
        back = pd.read_csv("out/synthetic.csv", dtype={"region": str})
        assert back[["age", "region"]].isna().mean().to_numpy() == pytest.approx(0.1, abs=0.03)


# --- the sum of all releases -----------------------------------------------------------------------------------------


def test_two_releases_add_up_and_a_limit_refuses_the_third_before_its_noise(capsys, monkeypatch):
    assert made("epsilon=1", "--limit", "2", out="one") == 0
    assert made("epsilon=1", out="two") == 0
    mus = [about(name)["spent"]["mu"] for name in ("one", "two")]
    together = gaussian_epsilon(math.hypot(*mus), 1e-5)
    assert about("two")["all releases of the table"]["spent"]["epsilon"] == pytest.approx(together)
    assert f"they spent ε = {together:.6g} at δ = 1e-05. The limit on ε is 2." in text("two")
    capsys.readouterr()
    monkeypatch.setattr(command, "make_release", None)  # is not reached
    assert made("epsilon=1", out="three") == 2
    assert "would exceed the limit of 2" in refused(capsys)
    assert main(["release", "--history", "dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml"]) == 0
    said = capsys.readouterr().out
    assert (
        "my.csv: 2 releases" in said and f"together: epsilon = {together:.6g}" in said and "limit: epsilon = 2" in said
    )


def test_what_was_released_is_kept_for_other_models(own, capsys):
    flat = own.assign(region="01")  # two levels that no row has
    flat.to_csv("my.csv", index=False)
    line = ("dataset.target=income", "model=linear_statistics_intervals", "epsilon=1e6")
    for _ in range(20):  # noise is fresh, and by chance X'X is positive definite now and then: 20 times below 1e-6
        if made(*line, mechanism="ssp_intervals") == 1:
            break
        shutil.rmtree("out")
    assert "release.npz has what was released" in refused(capsys) and not Path("out/coefficients.csv").exists()
    kept = dpbench.read_release("out/release.npz")
    assert kept.ledger.to_list() == about()["ledger"]
    own_units = dpbench.fit(kept, model="linear_statistics", target="income").table().set_index("feature")
    least = LinearRegression().fit(own[["age", "grade"]], own["income"]).coef_
    assert own_units["own_estimate"][["age", "grade"]].to_numpy() == pytest.approx(least, rel=0.05)
    with pytest.raises(dpbench.UserError, match="the release is for the target 'income', not 'age'"):
        dpbench.fit(kept, model="linear_statistics", target="age")


def test_the_file_of_a_release_is_read_back_to_the_bit_and_others_are_refused(tmp_path):
    assert made("epsilon=1") == 0
    kept, rows = dpbench.read_release("out/release.npz"), pd.read_csv("out/synthetic.csv")
    assert len(kept.rows) == len(rows) and kept.rows["region"].value_counts().tolist() == (
        rows["region"].value_counts().tolist()
    )
    Path("copy.npz").write_bytes(release_bytes(kept))
    assert Path("copy.npz").read_bytes() == Path("out/release.npz").read_bytes()
    np.savez("other.npz", np.arange(3))
    with np.load("out/release.npz") as found:
        np.savez("cut.npz", **{name: found[name][:-1] if found[name].ndim > 1 else found[name] for name in found.files})
    Path("text.npz").write_text("no archive")
    for name, message in (
        ("other.npz", "no release"),
        ("cut.npz", "must"),
        ("text.npz", "no release"),
        ("absent.npz", "No such file"),
    ):
        with pytest.raises(dpbench.UserError, match=message):
            dpbench.read_release(name)


def test_a_release_is_on_record_before_it_is_written(monkeypatch, capsys):
    def dies(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_write", dies)
    assert made() == 130
    assert entries(capsys) == 1 and '"entry":"spent"' in Odometer().path.read_text()


def test_what_stops_before_its_noise_does_not_count_and_after_it_counts_in_full(capsys, monkeypatch):
    def stops(draws):
        def mechanism(part, table, budget, rng, *rest):
            rng.random(draws)
            raise NoEstimateError("nothing to estimate from")

        return mechanism

    def spawns(part, table, budget, rng, *rest):
        for one in rng.spawn(2)[1].spawn(2):
            one.random(int(part.name == "mst"))
        raise NoEstimateError("nothing to estimate from")

    monkeypatch.setattr(command, "make_release", spawns)
    assert made(mechanism="aim", out="spawned") == 2
    assert "nothing was drawn" in refused(capsys) and entries(capsys) == 0
    assert made(mechanism="mst", out="spawned") == 2
    assert "counts for what was asked" in refused(capsys) and entries(capsys) == 1
    monkeypatch.setattr(command, "make_release", stops(0))
    assert made(out="none") == 2 and "nothing to estimate from" in refused(capsys)
    assert entries(capsys) == 1
    monkeypatch.setattr(command, "make_release", stops(1))
    assert made(out="some") == 2 and "counts for what was asked" in refused(capsys)
    assert entries(capsys) == 2


def entries(capsys):
    capsys.readouterr()
    assert main(["release", "--history", "dataset=csv", "dataset.path=my.csv"]) == 0
    return int(re.search(r"(\d+) releases", capsys.readouterr().out)[1])


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["mechanism=[aim,mst]"], "a release has one mechanism, not 2: aim, mst"),
        (["epsilon=[1,2]"], "a release has one epsilon, not 2"),
        (["repetitions=3"], "repetitions is for dpbench run"),
        (["mechanism=adassp"], "no rows: say what is to be estimated from it"),
        (["mechanism=adassp", "model=linear_statistics"], "linear_statistics regresses: give the target"),
        (["mechanism=mst", "model=linear_statistics", "dataset.target=income"], "linear_statistics reads statistics"),
        (["mechanism=exact_table"], "epsilon=math.inf"),
        (["--limit", "-1"], "a limit on epsilon must be positive"),
    ],
)
def test_it_says_what_is_wrong_and_begins_nothing(capsys, more, said):
    assert made(*more) == 2 and said in refused(capsys)
    assert entries(capsys) == 0


def test_a_folder_with_something_in_it_is_left_alone(capsys, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    assert made() == 2 and "there is something already" in refused(capsys)
    assert main(["release", "dataset=csv", "dataset.path=my.csv"]) == 2
    assert "name the mechanism of the release" in refused(capsys)


def test_noise_is_fresh_each_time():
    made(out="one")
    made(out="two")
    assert not pd.read_csv("one/synthetic.csv").equals(pd.read_csv("two/synthetic.csv"))
    assert len(Odometer().path.read_text().splitlines()) == 4


# --- scores of the rows ----------------------------------------------------------------------------------------------


def test_scores_are_written_if_asked_for_and_the_statement_calls_them_unpaid(tmp_path, capsys):
    assert made("--quality", "epsilon=1e4", "dataset.target=grade") == 0
    page = (tmp_path / "out" / "quality.html").read_text()
    frame = pd.read_csv("out/quality.csv", keep_default_na=False)
    whole = frame[frame["of"] == ""].set_index("score")["value"]
    assert whole["one_way"] < 0.01 and whole["two_way_measured"] < whole["two_way_unmeasured"]
    assert "against 1,000 real rows" in page and "efficacy_linear" in set(frame["score"])
    unpaid = text().split("## What was read without payment")[1].split("##")[0]
    assert "No ε above covers them" in unpaid and "not for publication" in unpaid
    assert "quality.html: scores of the synthetic rows" in text()
    assert "quality" not in json.dumps(about()), "the ledger is of what is private"


def test_without_it_no_score_is_computed_and_it_needs_rows(tmp_path, capsys):
    assert made() == 0
    assert not list((tmp_path / "out").glob("quality*")) and "quality.csv" not in text()
    model = ["dataset.target=income", "model=linear_statistics"]
    assert made("--quality", *model, mechanism="ssp", out="none") == 2
    assert "ssp releases none" in refused(capsys) and entries(capsys) == 1


def test_rows_that_cannot_be_scored_are_released_all_the_same(tmp_path, capsys):
    head, row = (tmp_path / "my.csv").read_text().splitlines()[:2]
    (tmp_path / "my.csv").write_text(f"{head}\n{row}\n")
    assert made("--quality") == 1 and "a comparison needs two or more" in refused(capsys)
    assert (tmp_path / "out" / "synthetic.csv").is_file() and "quality.csv" not in text()
