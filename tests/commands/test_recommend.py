"""`dpbench recommend`: from the committed results of the arena, for a table that is not in it."""

import re

import pytest

from dpbench.cli import main
from dpbench.resources import PACKAGE

RESULTS = PACKAGE.parent / "results"


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_methods_are_ranked_by_the_nearest_tables_and_the_choice_is_put_to_the_test(capsys):
    assert main(["recommend", "dataset=adult_synth", "epsilon=[1]", "sample.test_rows=0", f"results={RESULTS}"]) == 0
    out = capsys.readouterr().out
    assert "adult_synth: 48,842 rows, 15 columns, 101 coefficients. Error: mse in arena_regression" in out
    near, methods = (block.splitlines() for block in re.split(r"\n\n", out)[2::2][:2])
    assert len(near) == 6 and near[1].startswith("adult_regression ")  # Adult itself is as large
    assert methods[0].split("  ")[0] == "method" and 1 <= float(re.search(r"  ([\d.]+) ", methods[1])[1]) < 2
    assert re.search(r"with each table left out in turn, .* in \d+ of \d+ cases", out)


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_a_table_of_the_arena_is_no_evidence_for_itself(capsys):
    line = ["recommend", "dataset=adult_regression", "epsilon=[1]", "sample.test_rows=0", f"results={RESULTS}"]
    assert main(line) == 0
    near = re.split(r"\n\n", capsys.readouterr().out)[2].splitlines()
    assert len(near) == 6 and not any(row.startswith("adult_regression ") for row in near)


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_methods_that_were_not_run_at_all_places_are_named(capsys):
    line = ["recommend", "dataset=adult_synth", "epsilon=[100]", "sample.test_rows=0", f"results={RESULTS}"]
    assert main(line) == 0
    told = r"Not run, or without a value, on some of these 5, so that they stand last or are left out: .*DD-SSP"
    assert re.search(told, capsys.readouterr().out)


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_a_target_of_two_levels_is_for_the_arena_of_classification(tmp_path, capsys):
    (tmp_path / "my.yaml").write_text("age: {bounds: [0, 100], bins: 10}\nsick: {levels: ['no', 'yes']}\n")
    (tmp_path / "my.csv").write_text("age,sick\n" + "30,no\n60,yes\n" * 500)
    own = ["dataset=csv", f"dataset.path={tmp_path}/my.csv", f"dataset.domain={tmp_path}/my.yaml"]
    assert main(["recommend", *own, "dataset.target=sick", "epsilon=1", f"results={RESULTS}"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("csv: 1,000 rows, 2 columns, 2 coefficients. The rows were counted, which no ledger pays for")
    assert "Error: 1 - auc in arena_classification" in out
    assert "\nObjPert " in out and "AdaSSP" not in out


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_intervals_are_ranked_by_a_score_and_not_by_their_coverage(capsys):
    line = ["recommend", "experiment=arena_intervals", "dataset=adult_synth", "epsilon=1", f"results={RESULTS}"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert "Error: interval_score in arena_intervals" in out
    methods = re.split(r"\n\n", out)[4].splitlines()
    assert re.search(r"  [\d.]+ ", methods[1])  # the first of the list has a finite multiple
    assert not methods[1].startswith("AIM-Synth, taken for real rows")


@pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")
def test_a_size_stands_for_a_table(capsys):
    size = ["--rows", "48842", "--columns", "15", "--coefficients", "101"]
    told = []
    for own in (["dataset=adult_synth", "sample.test_rows=0"], [*size, "experiment=arena_regression"]):
        assert main(["recommend", *own, "epsilon=1", f"results={RESULTS}"]) == 0
        told.append(capsys.readouterr().out)
    assert told[1] == told[0].replace("adult_synth:", "A table:")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--rows", "5"], "--rows and --columns go together"),
        (["--rows", "0", "--columns", "3"], "must be at least 1"),
        (["--rows", "5", "--columns", "3"], "name the arena"),
        (["--rows", "5", "--columns", "3", "dataset=adult"], "or give its size alone"),
        (["--rows", "5", "--columns", "3", "experiment=arena_regression", "model=[]"], "can be set, not model=[]"),
    ],
)
def test_a_size_that_says_nothing_is_refused(line, told, capsys):
    assert main(["recommend", *line]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.skipif(not (RESULTS / "dd_ssp").is_dir(), reason="results/dd_ssp is in the repository alone")
def test_a_metric_without_a_better_direction_ranks_nothing(capsys):
    line = ["recommend", "experiment=coverage_adult", "--rows", "500", "--columns", "4", "epsilon=1"]
    assert main([*line, f"results={RESULTS}"]) == 2
    assert "coverage cannot rank methods: neither low nor high values of it are better" in capsys.readouterr().err


def test_what_is_missing_is_told(tmp_path, capsys):
    for line, told in ((["epsilon=1"], "name a table"), (["dataset=adult_synth"], "run it (dpbench run experiment=")):
        assert main(["recommend", *line, f"results={tmp_path}"]) == 2
        assert told in capsys.readouterr().err
