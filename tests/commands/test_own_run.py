"""`dpbench run` on a table of one's own: what its owner is warned of."""

import pytest

from dpbench.cli import main


@pytest.fixture
def line(tmp_path, monkeypatch):
    """A run on a table whose target has one class."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "salt"))
    (tmp_path / "my.csv").write_text("a,y\n" + "".join(f"{k % 10},no\n" for k in range(60)))
    (tmp_path / "my.yaml").write_text("a: {values: {from: 0, to: 9}}\ny: {levels: [no, yes]}\n")
    table = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=y"]
    method = ["mechanism=[exact_table,mean_target]", "model=[logistic_rows,released_coefficients]", "metric=[auc]"]
    return ["run", *table, *method, "repetitions=1", "jobs=1"]


def test_weak_budgets_and_a_target_of_one_class_are_warned_of_before_trials_run(line, capsys, caplog):
    assert main([*line, "epsilon=[1,20]", "delta=0.1"]) == 0
    assert sorted(record.message for record in caplog.records) == [
        "dataset=csv: delta = 0.1 is above 1/n: it permits releasing a person's row outright; set delta to 2e-03 or "
        "less",
        "dataset=csv: epsilon = 20 is above 10: that protects little",
        "dataset=csv: y (the target) is 'no' in every row: nothing to predict, and metrics of it have no value",
    ]
    caplog.clear()
    assert main([*line, "epsilon=[1,20]", "delta=0.1"]) == 0  # nothing is left to run, so the rows are not read
    assert caplog.records == [] and "0 ran now" in capsys.readouterr().out
