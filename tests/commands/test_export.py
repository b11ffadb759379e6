"""`dpbench export`: trials for other programs, and the rows of a release for whoever wants to use them."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.commands.export import write_parquet
from dpbench.data.coding import decoded
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.metrics.evaluation import Score
from dpbench.report.frames.frame import TIDY_COLUMNS
from dpbench.report.text import csv_text, plain_cells
from tests.report.made_up import make_trial


@pytest.fixture(scope="module")
def stored(workbench, tmp_path_factory):
    bench = workbench(tmp_path_factory.mktemp("stored"))
    assert bench.run("mechanism=[exact,adassp,aim]", "model=[linear_statistics,linear_rows]", "repetitions=2") == 0
    return bench


def exported(bench, *more):
    return main(["export", "name=grid", f"results={bench.results}", *more])


def trials_of(bench):
    return pd.read_parquet(bench.results / "export" / "grid.parquet")


def test_every_score_of_every_trial_is_a_row_and_the_manifest_says_what_it_is(stored):
    assert exported(stored) == 0
    frame, about = trials_of(stored), json.loads((stored.results / "export" / "grid.json").read_text())
    wanted = {
        (identity, score["name"]): score["value"]
        for identity, trial in stored.trials().items()
        for score in trial["scores"]
    }
    found = {(row.trial, row.metric): row.value for row in frame.itertuples()}
    assert found == pytest.approx(wanted) and list(frame.columns) == list(TIDY_COLUMNS) == list(about["columns"])
    digest = hashlib.sha256((stored.results / "export" / about["parquet"]).read_bytes()).hexdigest()
    assert (about["sha256"], about["trials"], about["rows"]) == (digest, len(stored.trials()), len(frame))
    settings = json.loads(frame["settings"][frame["mechanism"] == "adassp"].iloc[0])
    assert settings["release"]["budget"]["epsilon"] == 1.0 and "repetition" not in settings["release"]


def test_non_private_inputs_are_a_list(tmp_path):
    inputs = ("bounds", "3 of 9 public rows equal a private row; 2 of 9 private rows equal another one")
    parquet, _ = write_parquet([replace(make_trial(), nonprivate_inputs=inputs)], tmp_path, "grid")
    assert list(pd.read_parquet(parquet)["nonprivate_inputs"][0]) == sorted(inputs)


def test_what_a_score_says_of_private_rows_beside_its_value_is_left_out(tmp_path):
    score = Score("coverage", 0.5, "", "none", {"population": [0.515506]})
    made = [make_trial(repetition=k, scores=[score], metrics=["coverage"]) for k in (0, 1)]
    trials = [replace(trial, public=k > 0) for k, trial in enumerate(made)]
    parquet, about = write_parquet(trials, tmp_path, "grid")
    details = pd.read_parquet(parquet).set_index("trial")["detail"].to_dict()
    assert details == {made[0].id: "", made[1].id: '{"population": [0.515506]}'}
    assert "private rows" in json.loads(about.read_text())["columns"]["detail"]


def test_the_rows_of_a_release_are_in_their_units_with_the_ledger_beside_them(stored, capsys):
    exported(stored)
    frame = trials_of(stored)
    release = frame["release"][frame["mechanism"] == "aim"].iloc[0]
    assert exported(stored, "--release", release) == 0
    rows = pd.read_csv(stored.results / "export" / f"{release}.csv")
    assert (
        set(rows["sex"]) <= {"f", "m"} and set(rows["grade"]) <= {1, 2, 3, 4, 5} and rows["age"].between(16, 100).all()
    )
    about = json.loads((stored.results / "export" / f"{release}.json").read_text())
    assert about["rows"] == len(rows) and about["spent"]["epsilon"] <= 1.0 + 1e-9 and len(about["ledger"]) > 1


def test_a_reference_without_privacy_and_a_release_without_rows_are_refused(stored, capsys):
    exported(stored)
    frame = trials_of(stored)
    for mechanism, told in (("exact", "its rows are the private ones"), ("adassp", "has no synthetic rows")):
        release = frame["release"][frame["mechanism"] == mechanism].iloc[0]
        assert exported(stored, "--release", release) == 2
        assert told in capsys.readouterr().err
    assert exported(stored, "--release", "nope") == 2 and "holds no release 'nope'" in capsys.readouterr().err
    assert main(["export", "name=other", f"results={stored.results}"]) == 2
    assert "has no trials of other" in capsys.readouterr().err
    assert main(["export", "paper=binagg", "paper=dd_ssp"]) == 2 and "give one paper" in capsys.readouterr().err


def test_numbers_that_are_known_are_kept_and_the_others_are_those_of_their_bins(small_domain):
    codes = np.array([[0, 2, 1, 4], [5, 0, 0, 0]])
    rows = decoded(Table(small_domain, codes, {"age": np.array([17.5, 99.0])}))
    assert rows["age"].tolist() == [17.5, 99.0]
    assert rows["work"].tolist() == ["none", "private"] and rows["grade"].tolist() == [5, 1]
    assert decoded(Table(small_domain, codes))["age"].tolist() == [23.0, 93.0]


def test_a_text_that_a_spreadsheet_would_run_is_written_as_text():
    table = pd.DataFrame({"@x": ["=cmd|' /C calc'!A0", "-1", "+1e5", "<=50K", "-", "a"], "n": [-1.5, 2, 3, 4, 5, 6]})
    rows = csv_text(table).splitlines()
    assert (
        rows[0] == "'@x,n" and rows[1].startswith("'=cmd") and rows[2:] == ["-1,2", "+1e5,3", "<=50K,4", "-,5", "a,6"]
    )


def test_released_rows_hold_no_formula(small_domain):
    domain = Domain((Attribute.categorical("work", ["=1+1", "b"]),))
    rows = plain_cells(decoded(Table(domain, np.array([[0], [1]]))))
    assert rows["work"].tolist() == ["'=1+1", "b"]
