"""`dpbench recommend`: from the committed results of the arena, for a table that is not in it."""

import hashlib
import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.commands.recommend import outcomes_of_trials
from dpbench.commands.release import checked
from dpbench.config import compose
from dpbench.config.experiment import single
from dpbench.report.outcomes import shipped
from dpbench.resources import PACKAGE, conf_dir

RESULTS = PACKAGE.parent / "results"
arena = pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")


INTERVALS = ("--need", "intervals", "--rows", "5000", "--columns", "4", "epsilon=1")


@cache
def answer(*line):
    with redirect_stdout(StringIO()) as out:
        assert main(["recommend", f"results={RESULTS}", *line]) == 0
    return out.getvalue()


def methods(text):
    """The names of the methods, and of each what stands in the columns."""
    rows = [
        re.split(r" {2,}", row) for row in re.search(r"\nmethod .*?(?=\n1\. )", text, re.DOTALL)[0].splitlines()[1:]
    ]
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}


def commands(text):
    return [shlex.split(line) for line in re.findall(r"^\d\. (dpbench .*)$", text, re.MULTILINE)]


@arena
def test_for_few_rows_it_says_where_no_method_beats_the_mean():
    """The rule that was right more often names the methods that are best on the nearest tables."""
    out = answer("dataset=diabetes", "epsilon=0.1")
    assert out.startswith("diabetes: 442 rows, 11 columns, 11 coefficients. Error: 1 - r2 in arena_regression.")
    assert re.search(r"\nNo method beats the mean here: by two standard errors none does on [345] of these 5\.", out)
    assert "mean of the target" in methods(out), "so it is among the best"
    without = [columns["no value in"].split(" of ") for columns in methods(out).values()]
    assert all(int(lacking) < int(runs.removesuffix(" runs")) for lacking, runs in without)
    assert len(methods(out)) == len(commands(out)) == 3
    assert all(line[:3] == ["dpbench", "release", "dataset=diabetes"] for line in commands(out))
    assert len(out.splitlines()) <= 24  # a screen
    rule = r"Recommended: the best on the nearest 5\. .* best in (\d+) of 60 cases, the best over all in (\d+)"
    near, overall = map(int, re.search(rule, out).groups())
    assert 30 < overall <= near < 60


@arena
def test_intervals_that_cover_too_little_are_not_recommended_and_missing_ones_are_counted():
    out = answer(*INTERVALS)
    named = methods(out)
    assert "SSP" in named and named["SSP"]["no interval in"] == "16 of 100 runs"  # on Fire 12 of 20, on Taxi 4
    assert all(float(row["coverage of 0.9"].split()[0]) > 0.85 for row in named.values())
    never = re.search(r"Not to be used, for undercoverage .*", out)[0]
    for name in ("AIM-Synth, taken for real rows", "MST-Synth, taken for real rows", "JLT"):
        assert re.search(rf"{name} 0\.[0-8]", never) and name not in named
    assert "DD-SSP with MST, bootstrap 100 of 100 runs" in out
    assert "Extrapolated" not in out


@arena
@pytest.mark.slow
def test_a_named_method_runs_by_its_command(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    line = next(line for line in commands(answer(*INTERVALS)) if "model=linear_statistics_intervals" in line)
    rest = [item for item in line[1:-1] if not item.startswith(("dataset", "epsilon"))]
    folder = tmp_path / "out"
    assert main([*rest, str(folder), "dataset=diabetes", "epsilon=1e6"]) == 0  # with little noise it has intervals
    assert "Intervals of linear\\_statistics\\_intervals: 90%" in (folder / "coefficients.md").read_text()


@arena
def test_far_from_all_tables_it_says_how_far_and_a_table_is_no_evidence_for_itself():
    out = answer("--need", "queries", "dataset=compas_queries", "epsilon=0.01")
    assert "ε = 0.01 is 10 times less than the least, 0.1." in out
    near = re.search(r"the nearest by .*: (.*)\.", out)[1]
    assert "churn_queries at 0.1" in near and "compas" not in near
    assert "the best trivial answer here: by two standard errors" in out
    assert all(line[1:4] == ["run", "experiment=arena_queries", "dataset=compas_queries"] for line in commands(out))


@arena
@pytest.mark.parametrize("target", [True, False])
def test_rows_are_those_nearest_to_the_real_ones_and_each_command_is_a_release(tmp_path, target):
    own = sick(tmp_path) if target else sick(tmp_path)[:-1]
    (tmp_path / "my.csv").unlink()  # no row is read
    out = answer(*own, "epsilon=1", "--rows", "5000", *(["--need", "rows"] if target else []))
    assert out.startswith("csv: 5,000 rows, 2 columns, 2 coefficients. No row of it was read. ")
    assert "Error: two_way in arena_rows" in out and "of the gain over independent attributes kept" in out
    assert len(methods(out)) == 3
    for line in commands(out):
        assert line[: 2 + len(own)] == ["dpbench", "release", *own]
        part, _ = checked(single(line[2:-2]), None)
        assert "rows" in part.offers


@arena
def test_rows_are_counted_where_neighbours_replace_one_and_that_is_said(tmp_path):
    counted = "Its rows were counted: their number is public where neighbours replace a record"
    out = answer(*sick(tmp_path), "epsilon=1", "relation=replace")
    assert out.startswith(f"csv: 1,000 rows, 2 columns, 2 coefficients. {counted}.")


def sick(folder):
    (folder / "my.yaml").write_text("age: {bounds: [0, 100], bins: 10}\nsick: {levels: ['no', 'yes']}\n")
    (folder / "my.csv").write_text("age,sick\n" + "30,no\n60,yes\n" * 500)
    return ["dataset=csv", f"dataset.path={folder}/my.csv", f"dataset.domain={folder}/my.yaml", "dataset.target=sick"]


def test_the_number_of_private_rows_is_asked_for_unless_it_is_public_or_declared(tmp_path, capsys):
    line = ["recommend", *sick(tmp_path), "epsilon=1", f"results={tmp_path}"]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert said.startswith("dpbench: the number of rows of csv is not public") and said.endswith("--rows 20000\n")
    for public, rows in (("dataset.public=true", "1,000"), ("+dataset.card.rows=70", "70")):
        assert main([*line, public]) == 0
        assert f"csv: {rows} rows, 2 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--rows", "5"], "--rows and --columns go together"),
        (["--rows", "0", "--columns", "3"], "must be at least 1"),
        (["--rows", "5", "--columns", "3", "dataset=adult"], "of one that is named give --rows alone"),
        (["--rows", "0", "dataset=diabetes"], "must be at least 1"),
        (["dataset=csv", "dataset.domain=my.yaml", "--need", "intervals"], "give the attribute that is predicted"),
        (["dataset=simulation"], "simulation has as many rows as are drawn"),
        (["--rows", "5", "--columns", "3", "model=[]"], "can be set, not model=[]"),
        (["--need", "rows", "experiment=arena_queries", "dataset=diabetes"], "leave experiment=arena_queries out"),
        (["--need", "classifier", "dataset=diabetes"], "the target target does not have two levels"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(line, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sick(tmp_path)
    assert main(["recommend", *line]) == 2
    assert told in capsys.readouterr().err


def test_what_is_missing_is_told(tmp_path, capsys):
    """What ships is no answer where other trials were asked for."""
    run = "holds no trials of linreg_adult on other tables; dpbench run experiment=linreg_adult makes them"
    own = [*sick(tmp_path), "--rows", "9", "experiment=linreg_adult", "epsilon=1"]
    for line, told in ((["epsilon=1"], "name a table"), (own, run)):
        assert main(["recommend", *line, f"results={tmp_path}"]) == 2
        assert told in capsys.readouterr().err


def test_what_ships_answers_alone_and_own_trials_of_an_arena_replace_it(tmp_path):
    line = ("--rows", "5000", "--columns", "4", "epsilon=1")
    shipped = answer(*line, f"results={tmp_path}")
    assert "Recommended: the best" in shipped
    (tmp_path / "arena_regression" / "trials").mkdir(parents=True)
    assert main(["recommend", *line, f"results={tmp_path}"]) == 2


@arena
def test_what_ships_is_what_the_exports_have():
    """As scripts/write_outcomes.py writes it."""
    found = compose(["experiment=arena_queries", f"results={RESULTS}"])
    kept, made = shipped(found, "arena"), outcomes_of_trials(found, None)
    assert kept.notes == made.notes
    pd.testing.assert_frame_equal(kept.cells, made.cells, check_dtype=False, rtol=1e-9)
    exports = {path.name.split(".")[0]: path for path in (RESULTS / "arena" / "exports").iterdir()}
    for path in (conf_dir() / "outcomes").iterdir():
        digest = hashlib.sha256(exports[path.stem].read_bytes()).hexdigest()
        assert digest in path.read_text(encoding="utf-8").partition("\n")[0]
