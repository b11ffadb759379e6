"""`dpbench status`; of tasks on SLURM see tests/grid/test_slurm_tasks.py."""

from dpbench.cli import main


def test_status_says_what_is_stored(bench, capsys):
    assert main(["status", f"results={bench.results}"]) == 0
    assert f"nothing was run in {bench.results} yet" in capsys.readouterr().out
    bench.has_run()
    assert main(["status", f"results={bench.results}"]) == 0
    assert "grid: 6 trials planned (limits full), 6 done, 0 left" in capsys.readouterr().out


def test_status_counts_what_is_exported_and_was_not_run_here(bench, capsys):
    bench.has_run()
    bench.keep_the_export_alone()
    (bench.results / "grid" / "plan.jsonl").unlink()
    capsys.readouterr()
    assert main(["status", f"results={bench.results}"]) == 0
    assert capsys.readouterr().out.startswith("grid: 6 trials in an export; dpbench figures ")
    (bench.results / "grid" / "trials.jsonl.xz").write_bytes(b"damaged")
    assert main(["status", f"results={bench.results}"]) == 0
    assert "grid: trials that cannot be counted (" in capsys.readouterr().out


def test_a_plan_that_cannot_be_read_hides_no_other_run(bench, capsys):
    bench.has_run()
    damaged = bench.results / "another"
    damaged.mkdir()
    (damaged / "plan.jsonl").write_text("garbage\n")
    assert main(["status", f"results={bench.results}"]) == 0
    told = capsys.readouterr().out
    assert "another: " in told and "is not a plan" in told and "grid: 6 trials planned" in told
    assert main(["status", f"results={bench.results}", "name=another"]) == 2


def test_the_folder_of_a_paper_has_no_run(capsys):
    assert main(["status", "paper=arena"]) == 2
    assert "dpbench figures and dpbench report show" in capsys.readouterr().err


def test_a_run_whose_folder_was_renamed_is_counted_by_its_new_name(bench, capsys):
    bench.has_run("mechanism=[adassp]", "repetitions=2")
    (bench.results / "grid").rename(bench.results / "renamed")
    capsys.readouterr()
    assert main(["status", str(bench.results / "renamed")]) == 0
    assert "renamed: 2 trials planned (limits full), 2 done, 0 left" in capsys.readouterr().out
