"""`dpbench status`; of tasks on SLURM see tests/grid/test_slurm_tasks.py."""

from dpbench.cli import main


def test_status_says_what_is_stored(bench, capsys):
    assert main(["status", f"results={bench.results}"]) == 0
    assert f"nothing was run in {bench.results} yet" in capsys.readouterr().out
    bench.run()
    assert main(["status", f"results={bench.results}"]) == 0
    assert "grid: 6 trials planned (limits full), 6 done, 0 left" in capsys.readouterr().out
