"""`dpbench slurm` with a stand-in for sbatch that runs the tasks of the array one after the other."""

import os
import re
import stat

import pytest

from dpbench.cli import main
from dpbench.grid.plan import read_plan

SBATCH = """#!/bin/bash
# what sbatch does, on this machine and at once, from another folder and without the user's variables
range=$(sed -n 's/^#SBATCH --array=//p' "$2")
for task in $(seq "${range%-*}" "${range#*-}"); do
    (cd / && unset DPBENCH_DATA_MIRRORS && SLURM_ARRAY_TASK_ID=$task bash "$2" >> "$2.log" 2>&1) || exit 1
done
echo "1;cluster"
"""
REFUSES = """#!/bin/bash
echo "sbatch: error: invalid partition specified: nowhere" >&2
exit 1
"""
QUEUED = """#!/bin/bash
case "$1" in --parsable) echo 7;; *) echo "7_1|RUNNING"; echo "7_2|CANCELLED";; esac
"""


@pytest.fixture
def install(bench, monkeypatch):
    """Put programs of these texts on the PATH."""
    folder = bench.folder / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(**programs):
        for name, text in programs.items():
            path = folder / name
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IEXEC)

    return write


def script(bench, capsys, *more):
    """The script of a grid, and the folder of its shards."""
    capsys.readouterr()
    assert main(["slurm", "--print", *bench.settings(*more)]) == 0
    text = capsys.readouterr().out
    return text, next(path for path in bench.results.glob("grid/slurm/*") if path.name in text)


def test_the_array_runs_the_whole_plan_to_the_same_results(bench, install, capsys):
    install(sbatch=SBATCH)
    assert main(["slurm", *bench.settings("shards=2", "dataset.path=my.csv", "dataset.domain=my.yaml")]) == 0
    assert "job 1: 2 tasks for 6 trials" in capsys.readouterr().out
    by_array = bench.trials()
    bench.results = bench.folder / "plain"
    bench.has_run()
    assert by_array == bench.trials()
    assert len(by_array) == 6


def test_a_task_shows_its_own_cells_alone_and_leaves_the_plan_as_it_is(bench, capsys):
    _, folder = script(bench, capsys, "epsilon=[1,2]", "mechanism=[adassp]", "repetitions=1", "shards=2")
    assert [len(read_plan(folder / f"shard-{number}.jsonl").trial_ids) for number in (1, 2)] == [1, 1]
    assert main(["run", "--plan", str(folder / "shard-1.jsonl"), f"results={bench.results}", "jobs=1"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 trials" in out
    assert ("ε = 1" in out) != ("ε = 2" in out)
    assert main(["status", f"results={bench.results}"]) == 0
    assert "2 trials planned" in capsys.readouterr().out


def test_what_is_missing_is_shared_out_anew(bench, capsys):
    bench.has_run("repetitions=1")
    text, folder = script(bench, capsys, "shards=6")
    assert "#SBATCH --array=1-4\n" in text
    assert sum(len(read_plan(path).trial_ids) for path in folder.glob("shard-*")) == 4
    assert main(["slurm", *bench.settings("repetitions=1", "shards=2")]) == 0
    assert "nothing is submitted: no trial of 2 is missing" in capsys.readouterr().out


def test_what_a_task_is_at_work_on_is_not_submitted_again(bench, install, capsys):
    install(sbatch=QUEUED, squeue=QUEUED)
    assert main(["slurm", *bench.settings("shards=2")]) == 0
    capsys.readouterr()
    assert main(["slurm", *bench.settings("shards=2")]) == 0
    told = "job 7: 2 tasks for 3 trials; 3 are left to tasks of job 7 that wait or run"
    assert told in capsys.readouterr().out


def test_options_of_sbatch_are_quoted(bench, capsys):
    options = ["partition=short", "constraint='intel&gpu'", "gpus=2", "throttle=3", "account=null"]
    lines = "slurm.lines=['module load \"x y\"','#SBATCH --exclusive']"
    text, _ = script(bench, capsys, *(f"slurm.{option}" for option in options), "+slurm.qos='a b'", lines, "shards=4")
    head, _, rest = text.partition("module load")
    assert "#SBATCH --array=1-4%3\n" in head
    assert "#SBATCH --partition=short\n" in head
    assert "#SBATCH --constraint='intel&gpu'\n" in head
    assert "#SBATCH --gpus=2\n" in head
    assert "#SBATCH --qos='a b'\n" in head
    assert "#SBATCH --exclusive\n" in head, "sbatch reads options up to the first command"
    assert "#SBATCH" not in rest
    assert "account" not in text
    assert not bench.trials()


def test_where_the_data_are_and_the_interpreter_are_frozen(bench, monkeypatch, capsys):
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", "my data:$HOME")
    monkeypatch.setattr("sys.executable", "/my env/python")
    text, _ = script(bench, capsys, "shards=2")
    assert f"\ncd {bench.folder} || exit\n" in text
    assert "\nexport DPBENCH_DATA_MIRRORS='my data:$HOME'\n" in text
    assert re.search(r"^exec '/my env/python' -m dpbench run ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["shards=99"], "shards=99, but the plan has only 6 releases"),
        (["shards=0"], "shards must be a whole number of at least 1"),
        (["slurm.throttle=0"], "slurm.throttle must be a whole number of at least 1"),
        (["slurm.lines=['a\nb']"], "slurm.lines: each is one line"),
        (["+slurm.array=1-3"], "slurm.array is set by dpbench"),
        (["slurm.constraint='it\\'s'"], "slurm.constraint must be one line without quotes"),
    ],
)
def test_invalid_settings_are_refused(bench, capsys, settings, message):
    assert main(["slurm", *bench.settings(*settings)]) == 2
    assert message in capsys.readouterr().err


def test_without_slurm_the_message_says_where_the_script_is(bench, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(bench.folder))
    assert main(["slurm", *bench.settings("shards=2")]) == 2
    assert "array.sh" in capsys.readouterr().err


def test_what_sbatch_refuses_is_told(bench, install, capsys):
    install(sbatch=REFUSES)
    assert main(["slurm", *bench.settings("shards=2")]) == 2
    assert "invalid partition specified: nowhere" in capsys.readouterr().err
    assert main(["status", f"results={bench.results}"]) == 0
    assert "SLURM" not in capsys.readouterr().out
