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
    assert re.search(r"Not run at all 5, so that they stand last or are left out: .*DD-SSP", capsys.readouterr().out)


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


def test_what_is_missing_is_told(tmp_path, capsys):
    for line, told in ((["epsilon=1"], "name a table"), (["dataset=adult_synth"], "run it (dpbench run experiment=")):
        assert main(["recommend", *line, f"results={tmp_path}"]) == 2
        assert told in capsys.readouterr().err
