"""`dpbench evaluate` and `dpbench.evaluate`: the quality of a synthetic table."""

import json
import re
import shutil

import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.commands.evaluate import measured_in
from dpbench.data.domain import Attribute, Domain


def evaluated(bench, *more, file="syn.csv"):
    own = [f"dataset.path={bench.folder}/my.csv", f"dataset.domain={bench.folder}/my.yaml", "dataset.target=grade"]
    return main(["evaluate", file, "dataset=csv", *own, f"results={bench.results}", *more])


def test_a_copy_has_perfect_scores_in_a_frame_and_on_a_page(bench, capsys):
    shutil.copy(bench.folder / "my.csv", bench.folder / "syn.csv")
    assert evaluated(bench) == 0
    out = capsys.readouterr().out
    assert re.search(r"two_way +0\.0000 +0\.0\d", out)
    frame = pd.read_csv(bench.results / "quality" / "syn" / "quality.csv", keep_default_na=False)
    best = frame[(frame["best"] != "") & ~frame["score"].str.startswith("auc")]
    assert (best["value"].astype(float) - best["best"].astype(float)).abs().max() < 1e-9
    page = (bench.results / "quality" / "syn" / "quality.html").read_text()
    for text in (out, page):
        assert "no privacy budget protects them" in text
    assert "400 synthetic rows against 400 real rows" in page and "age, grade" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page), "it loads nothing"
    assert (bench.results / "quality" / "syn" / "quality.csv").stat().st_mode & 0o077 == 0, "private rows"


def test_pairs_that_a_ledger_measured_are_scored_apart(bench, capsys):
    real = pd.read_csv(bench.folder / "my.csv")
    release = dpbench.release(real, bench.folder / "my.yaml", mechanism="mst", seed=0)
    release.rows.to_csv(bench.folder / "syn.csv", index=False)
    (bench.folder / "release.json").write_text(json.dumps({"ledger": release.ledger.to_list()}))
    assert evaluated(bench, "--measured", "release.json") == 0
    out = capsys.readouterr().out
    measured, rest = (float(re.search(rf"two_way_{which} +([\d.]+)", out)[1]) for which in ("measured", "unmeasured"))
    every = float(re.search(r"two_way +([\d.]+)", out)[1])
    assert (2 * measured + rest) / 3 == pytest.approx(every, abs=1e-4), "a tree of two pairs of three"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age,sex\n20,f\n", "syn.csv: declared but missing: grade"),
        ("age,sex,grade\n20,f,1\n20,x,1\n", "attribute 'sex', row 2: 'x' is not one of its levels f, m"),
        ("", "syn.csv is empty"),
        ("age,sex,grade\n", "syn.csv: there is no row"),
        ("age,sex,grade\n20,f,1\n", "the synthetic table has 1 rows"),
    ],
)
def test_rows_that_cannot_be_scored_are_named(bench, capsys, text, said):
    (bench.folder / "syn.csv").write_text(text)
    assert evaluated(bench) == 2
    assert said in capsys.readouterr().err
    assert not (bench.results / "quality").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["gone.csv", "dataset=adult_synth"], "gone.csv: no such file"),
        (["my.csv"], "name the data set"),
        (["my.csv", "dataset=simulation"], "draws its rows anew"),
        (["my.csv", "dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=x"], "target"),
    ],
)
def test_what_is_not_there_is_named(bench, capsys, line, said):
    assert main(["evaluate", *line]) == 2
    assert said in capsys.readouterr().err


def test_a_ledger_that_is_none_is_refused(bench, capsys):
    shutil.copy(bench.folder / "my.csv", bench.folder / "syn.csv")
    (bench.folder / "release.json").write_text(json.dumps({"ledger": [{"kind": "gaussian", "label": "X'X"}]}))
    for name, said in (("release.json", "no marginal of the attributes"), ("my.csv", "cannot be read as the JSON")):
        assert evaluated(bench, "--measured", name) == 2
        assert said in capsys.readouterr().err


def test_from_python_the_same_scores(bench, capsys):
    real = pd.read_csv(bench.folder / "my.csv")
    synthetic = real.assign(grade=real["grade"].sample(frac=1, random_state=0).to_numpy())
    synthetic.to_csv(bench.folder / "syn.csv", index=False)
    assert evaluated(bench) == 0
    written = pd.read_csv(
        bench.results / "quality" / "syn" / "quality.csv", keep_default_na=False, na_values={"best": ""}
    )
    frame = dpbench.evaluate(real, synthetic, bench.folder / "my.yaml", target="grade")
    pd.testing.assert_frame_equal(frame, written, check_dtype=False, rtol=1e-9)
    with pytest.raises(dpbench.UserError, match="synthetic rows: declared but missing: grade"):
        dpbench.evaluate(real, synthetic.drop(columns="grade"), bench.folder / "my.yaml")
    with pytest.raises(dpbench.UserError, match="attribute"):
        dpbench.evaluate(real, synthetic, bench.folder / "my.yaml", target="gone")


def test_a_marginal_of_intervals_is_one_of_its_attributes():
    domain = Domain((Attribute.binned("age", 0, 80, 8), Attribute.categorical("sex", ["f", "m"])))
    labels = ["marginal age in 32,sex", "marginal sex", "marginal other in 4", "n"]
    assert measured_in([{"label": label} for label in labels], domain) == [("age", "sex"), ("sex",)]
