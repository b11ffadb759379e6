"""Sweeps, simulated rows and trials without an estimate, as a user of `dpbench run` sees them."""

from dpbench.cli import main
from dpbench.grid.store import Store

PAPER = ["design.intercept=false", "+design.scaled=false", "+design.exact=true", "mu=[1]", "delta=n**-1.1"]


def trials(folder):
    return [trial.to_dict() for trial in Store(folder, "grid").all_trials()]


def test_a_sweep_over_the_number_of_simulated_rows(tmp_path):
    settings = ["dataset=simulation", "mechanism=[exact]", "model=[linear_statistics]", "metric=[coefficient_error]"]
    sweep = ["+sweep={sample.train_rows:[100,10000]}", "dataset.target_bounds=[-10,20]", "repetitions=5", "jobs=1"]
    assert main(["run", *settings, *PAPER, *sweep, "sample.test_rows=0", f"results={tmp_path}"]) == 0
    errors = {100: [], 10000: []}
    for trial in trials(tmp_path):
        errors[trial["key"]["release"]["split"]["train_rows"]].append(trial["scores"][0]["value"])
    assert len(errors[100]) == len(errors[10000]) == 5
    assert max(errors[10000]) < min(errors[100])
    assert len(set(errors[100])) == 5  # fresh rows in each repetition


ELSEWHERE = """\
_target_: dpbench.data.uci.load
name: elsewhere
sources:
  - {file: elsewhere/rows.data, url: "http://127.0.0.1:9/rows.data", sha256: "%s"}
attributes: {x: {bounds: [0, 1], bins: 4}, y: {bounds: [0, 1], bins: 4}}
target: y
public: true
"""


def test_data_sets_whose_files_are_nowhere_are_left_out_and_named(tmp_path, caplog, capsys):
    (tmp_path / "own" / "dataset").mkdir(parents=True)
    (tmp_path / "own" / "dataset" / "elsewhere.yaml").write_text(ELSEWHERE % ("0" * 64))
    line = ["run", "mechanism=[exact]", "repetitions=2", "jobs=1", f"--config-dir={tmp_path / 'own'}"]
    line += [f"results={tmp_path / 'results'}"]
    assert main([*line, "+sweep={dataset:[elsewhere,adult_synth]}"]) == 1
    assert "left out, as their files are not here and cannot be downloaded: elsewhere; get them with" in caplog.text
    assert {trial["key"]["release"]["dataset"]["name"] for trial in trials(tmp_path / "results")} == {"adult_synth"}
    assert "2 of 4 trials are missing" in capsys.readouterr().err
    assert main([*line, "dataset=elsewhere"]) == 2
    assert "the data file elsewhere/rows.data is not here. Tried:" in capsys.readouterr().err


def test_where_the_noise_leaves_nothing_the_trial_says_so_and_is_no_failure(tmp_path, capsys):
    settings = ["dataset=simulation", "mechanism=[binagg]", "model=[bin_regression]", "metric=[coefficient_error]"]
    line = ["run", *settings, *PAPER, "sample.train_rows=20", "sample.test_rows=0", "repetitions=2", "jobs=1"]
    assert main([*line, f"results={tmp_path}"]) == 0
    assert "2 of them have no estimate" in capsys.readouterr().out
    found = trials(tmp_path)
    assert [trial["status"] for trial in found] == ["no_estimate"] * 2
    assert {trial["phase"] for trial in found} == {"model"}
    assert "more than 5, the number of features" in found[0]["error"]["message"]
    assert main([*line, f"results={tmp_path}", "--retry-failed"]) == 0
    assert "0 ran now" in capsys.readouterr().out


def test_bounds_read_off_the_rows_are_named_in_the_trial(tmp_path):
    settings = ["dataset=simulation", "mechanism=[exact]", "model=[linear_statistics]", "metric=[rel_mse]"]
    assert main(["run", *settings, "+dataset.bounds=data", f"results={tmp_path}"]) == 2  # nothing to read off
    line = ["run", "mechanism=[adassp]", "model=[linear_statistics]", "metric=[mse]", "repetitions=1"]
    (tmp_path / "my.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 11}\n" for i in range(60)))
    (tmp_path / "my.yaml").write_text("x: {bounds: [-50, 50], bins: 4}\ny: {bounds: [-50, 50], bins: 4}\n")
    own = ["dataset=csv", f"dataset.path={tmp_path}/my.csv", f"dataset.domain={tmp_path}/my.yaml", "dataset.target=y"]
    for bounds in ("data", "declared"):
        folder = tmp_path / bounds
        assert main([*line, *own, f"+dataset.bounds={bounds}", "sample.test_rows=0.2", f"results={folder}"]) == 0
        (trial,) = trials(folder)
        taken = [name for name in trial["nonprivate_inputs"] if "bounds" in name]
        assert len(taken) == (bounds == "data")
