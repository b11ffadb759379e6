"""`dpbench slurm` with a stand-in for sbatch that runs the tasks of the array one after the other."""

import os
import stat

from dpbench.cli import main

SBATCH = """#!/bin/bash
# what sbatch does, on this machine and at once
range=$(sed -n 's/^#SBATCH --array=//p' "$1")
for task in $(seq "${range%-*}" "${range#*-}"); do
    SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1 bash "$1" >> "$1.log" 2>&1 || exit 1
done
echo "Submitted batch job 1"
"""


def install(folder, monkeypatch):
    path = folder / "bin" / "sbatch"
    path.parent.mkdir()
    path.write_text(SBATCH)
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


def test_the_array_runs_the_whole_plan_to_the_same_results(bench, monkeypatch, capsys):
    install(bench.folder, monkeypatch)
    assert main(["slurm", *bench.settings("shards=3")]) == 0
    assert "Submitted batch job" in capsys.readouterr().out
    by_array = bench.trials()
    bench.results = bench.folder / "plain"
    bench.run()
    assert by_array == bench.trials()
    assert len(by_array) == 6


def test_print_shows_the_script_and_submits_nothing(bench, monkeypatch, capsys):
    install(bench.folder, monkeypatch)
    settings = bench.settings("shards=2", "slurm.partition=short", "slurm.account=null")
    assert main(["slurm", "--print", *settings]) == 0
    out = capsys.readouterr().out
    assert "#SBATCH --array=1-2" in out
    assert "#SBATCH --partition=short" in out
    assert "account" not in out
    assert not bench.trials()


def test_without_slurm_the_message_says_where_the_script_is(bench, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(bench.folder))
    assert main(["slurm", *bench.settings("shards=2")]) == 2
    assert "array.sh" in capsys.readouterr().err


def test_more_shards_than_releases_are_refused(bench, capsys):
    assert main(["slurm", *bench.settings("shards=99")]) == 2
    assert "shards=99" in capsys.readouterr().err
