"""What is said of tasks by squeue, by sacct where squeue has forgotten, and by the log where there is no sacct."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpbench.cli import main
from dpbench.grid.plan import read_plan
from dpbench.grid.slurm import add_job, jobs_file, last_tasks
from dpbench.grid.store import Store

OVER = "slurmstepd-vm: error: *** JOB 8 ON vm CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n"
CANCELLED = "1/6 trials\nslurmstepd: error: *** JOB 9 ON node07 CANCELLED AT 2026-01-02T03:04:05 ***\n"


@pytest.fixture
def submitted(bench, monkeypatch, capsys):
    """The store of a grid of six releases of which job 7 has a task each; and a function that installs programs."""
    assert main(["slurm", "--print", *bench.settings("shards=6")]) == 0
    capsys.readouterr()
    store = Store(bench.results, "grid")
    (folder,) = (store.folder / "slurm").iterdir()
    jobs_file(store).write_text(json.dumps({"job": "7", "folder": folder.name, "tasks": 6}) + "\n")
    monkeypatch.setenv("PATH", str(bench.folder / "bin"))
    (bench.folder / "bin").mkdir()

    def install(name, *lines, code=0):
        path = bench.folder / "bin" / name
        path.write_text("#!/bin/bash\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)

    return store, folder, install


def states(store):
    """The state of each task."""
    trials = read_plan(store.plan_file).trial_ids
    return {task.number: task.state for task in last_tasks(store, trials).values()}


def test_each_source_is_asked_for_what_those_before_do_not_know(bench, submitted, capsys):
    store, folder, install = submitted
    install("squeue", "7_1|RUNNING", "7_2|PENDING", "70_3|RUNNING")
    install("sacct", "7_1|PENDING", "7_3|OUT_OF_MEMORY", "7_4|CANCELLED by 0", "7_6|RUNNING")
    (folder / "7_4.log").write_text(OVER)
    (folder / "7_5.log").write_text("x" * 10_000 + OVER)
    assert states(store) == {
        1: "running",
        2: "pending",
        3: "out of memory",
        4: "cancelled",
        5: "timed out",
        6: "no longer known to SLURM",
    }
    assert main(["status", f"results={bench.results}"]) == 0
    told = capsys.readouterr().out
    assert "6 left" in told
    assert "SLURM job 7: of those left, 1 cancelled (task 4), 1 no longer known to SLURM (task 6)" in told
    assert "4 are missing: dpbench slurm" in told


def test_arrays_that_are_submitted_at_once_are_all_noted(submitted):
    store, folder, _ = submitted
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda job: add_job(store, str(job), folder, 6), range(100, 200)))
    jobs = [json.loads(line)["job"] for line in jobs_file(store).read_text().splitlines()]
    assert jobs[0] == "7" and sorted(jobs[1:]) == [str(job) for job in range(100, 200)]


def test_a_job_whose_line_is_being_written_is_not_there_yet(submitted):
    store, _, install = submitted
    install("squeue", *(f"7_{number}|RUNNING" for number in range(1, 7)))
    with jobs_file(store).open("a") as file:
        file.write('{"job": "8", "fol')
    assert set(states(store).values()) == {"running"}


def test_without_sacct_the_logs_tell(submitted):
    store, folder, install = submitted
    install("squeue")
    install("sacct", "Slurm accounting storage is disabled", code=1)
    (folder / "7_1.log").write_text(CANCELLED)
    (folder / "7_2.log").write_text(OVER)
    found = states(store)
    assert (found.pop(1), found.pop(2)) == ("cancelled", "timed out")
    assert set(found.values()) == {"no longer known to SLURM"}


def test_a_trial_is_of_the_last_task_that_was_to_run_it(bench, submitted):
    store, folder, install = submitted
    again = {"job": "8", "folder": folder.name, "tasks": 2}
    with jobs_file(store).open("a") as file:
        file.write(json.dumps(again) + "\n")
    install("squeue", *(f"7_{number}|FAILED" for number in range(1, 7)), "8_1|RUNNING", "8_2|COMPLETED")
    found = sorted((task.job, task.state) for task in last_tasks(store, read_plan(store.plan_file).trial_ids).values())
    assert found == [("7", "failed")] * 4 + [("8", "completed"), ("8", "running")]


@pytest.mark.parametrize("answers", [False, True])
def test_where_squeue_does_not_answer_nothing_is_submitted_and_status_still_says_what_is_stored(
    bench, submitted, capsys, answers
):
    _, _, install = submitted
    message = "squeue is not on the PATH"
    if answers:
        install("squeue", "slurm_load_jobs error: Unable to contact slurm controller", code=1)
        message = "Unable to contact slurm controller"
    assert main(["status", f"results={bench.results}"]) == 0
    out = capsys.readouterr().out
    assert "6 trials planned" in out
    assert message in out
    assert main(["slurm", *bench.settings("shards=6")]) == 2
    assert message in capsys.readouterr().err
