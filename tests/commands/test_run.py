"""Running, resuming, failing: what a user sees of `dpbench run`."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from dpbench.cli import main
from dpbench.config import compose
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.cells import terminal_table

OWN = '''
import os, time
import numpy as np
from dpbench.data.encode import Design
from dpbench.mechanisms.exact import exact
from dpbench.releases import Release
from dpbench.privacy.ledger import Ledger

def slow(train, budget, rng, *, design: Design, seconds: float = 0.2) -> Release:
    """Waits, then adds its noise."""
    time.sleep(seconds)
    from dpbench.mechanisms.ssp import ssp
    return ssp(train, budget, rng, design=design)

def fragile(train, budget, rng, *, design: Design, how: str = "raise") -> Release:
    """Fails in the way it is told."""
    if how == "raise":
        raise RuntimeError("the bottom is out")
    if how == "memory":
        np.ones(2**36)
    if how == "killed":
        os.kill(os.getpid(), 9)
    if how == "hang":
        time.sleep(60)
    if how == "overspend":
        from dpbench.mechanisms.ssp import ssp
        from dpbench.privacy.budget import Budget
        made = ssp(train, Budget(2 * budget.epsilon, budget.delta), rng, design=design)
        return Release(made.domain, budget, made.ledger, made.parts)
    raise AssertionError(how)

def deadly(release, *, design: Design):
    """A model that takes its process down."""
    os.kill(os.getpid(), 9)
'''


@pytest.fixture
def own(bench):
    """A folder of a user's own mechanisms, as --config-dir takes it."""
    folder = bench.folder / "own"
    (folder / "mechanism").mkdir(parents=True)
    (folder / "own_mechanisms.py").write_text(OWN)
    for name in ("slow", "fragile"):
        parameter = "seconds: 0.2" if name == "slow" else "how: raise"
        text = f"{name}:\n  _target_: own_mechanisms.{name}\n  _offers_: [statistics]\n  {parameter}\n"
        (folder / "mechanism" / f"{name}.yaml").write_text(text)
    (folder / "model").mkdir()
    (folder / "model" / "deadly.yaml").write_text("deadly:\n  _target_: own_mechanisms.deadly\n  _needs_: statistics\n")
    return folder


def command(bench, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "dpbench", "run", "--unchecked", *bench.settings(*arguments)]


def test_a_run_stores_its_trials_and_shows_the_table(bench, capsys):
    assert bench.run("epsilon=[0.5,1]") == 0
    out = capsys.readouterr().out
    trials = bench.trials()
    assert len(trials) == 3 + 2 * 3
    assert {trial["status"] for trial in trials.values()} == {"done"}
    assert re.search(r"non-private .* \(3\)", out)
    assert re.search(r"AdaSSP .* ± .* \(3\)", out)
    spent = {t["spent"]["epsilon"] for t in trials.values() if t["key"]["release"]["mechanism"]["name"] == "adassp"}
    assert all(epsilon == pytest.approx(0.5) or epsilon == pytest.approx(1) for epsilon in spent)
    assert all(json.dumps(trial).count(str(bench.folder)) == 0 for trial in trials.values())


@pytest.mark.parametrize(
    "line",
    [["run"], ["run", "--dry-run"], ["run", "name=absent"], ["slurm", "--print"], ["export"], ["export", "results=no"]],
)
def test_a_line_that_names_nothing_to_run_says_what_there_is(tmp_path, monkeypatch, capsys, line):
    monkeypatch.chdir(tmp_path)
    assert main(line) == 2
    verb = "export" if line[0] == "export" else "run"
    assert f"say what to {verb}: an experiment, such as experiment=quickstart" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_same_line_again_runs_nothing_and_more_repetitions_run_the_difference(bench, capsys):
    bench.has_run()
    stamps = {path: path.stat().st_mtime_ns for path in bench.results.rglob("*.json")}
    assert bench.run() == 0
    assert "6 of 6 trials are stored" in capsys.readouterr().out
    bench.run("repetitions=4")
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert len(bench.trials()) == 8


def test_results_do_not_depend_on_workers_shards_or_order(bench):
    bench.has_run()
    expected = bench.trials()
    for folder, arguments in [
        ("two", [["jobs=2"]]),
        ("shards", [["--shard", "2/2", "jobs=1"], ["--shard", "1/2", "jobs=1"]]),
    ]:
        bench.results = bench.folder / folder
        for more in arguments:
            assert main(["run", *bench.settings(*more)]) == 0
        assert bench.trials() == expected


@pytest.mark.slow
def test_force_runs_everything_again_to_the_same_result(bench):
    bench.has_run()
    expected = bench.trials()
    for path in (bench.results / "grid" / "trials").iterdir():
        path.write_text("{}\n")
    assert main(["run", *bench.settings("--force", "jobs=1")]) == 0
    assert bench.trials() == expected


def test_dry_run_counts_and_writes_nothing(bench, capsys):
    assert main(["run", *bench.settings("--dry-run")]) == 0
    out = capsys.readouterr().out
    assert "6 planned, 0 stored" in out
    assert "to run: adassp, 3 releases" in out
    assert not bench.results.exists()


def test_killed_in_the_middle_the_same_line_ends_as_if_undisturbed(bench, own):
    line = command(bench, "--config-dir", str(own), "mechanism=[slow]", "repetitions=12", "jobs=2")
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(bench.trials()) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    interrupted = bench.trials()
    assert 3 <= len(interrupted) < 12
    assert main(line[3:]) == 0
    resumed = bench.trials()
    assert {identity: resumed[identity] for identity in interrupted} == interrupted
    bench.results = bench.folder / "undisturbed"
    assert bench.run("--unchecked", "--config-dir", str(own), "mechanism=[slow]", "repetitions=12") == 0
    assert bench.trials() == resumed
    assert len(resumed) == 12


def test_two_processes_on_one_folder_end_with_each_trial_once(bench, own):
    line = command(bench, "--config-dir", str(own), "mechanism=[slow]", "repetitions=8", "jobs=1")
    processes = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert len(bench.trials()) == 8
    assert all("(8)" in out for out, _ in outputs)
    assert sum(int(re.search(r"(\d+) ran now", out)[1]) for out, _ in outputs) == 8, "each is computed once"
    assert not list((bench.results / "claims").iterdir())


HELD = """
import os, time
from dpbench.data.encode import Design
from dpbench.mechanisms.ssp import ssp

def held(train, budget, rng, *, design: Design, by: str):
    \"\"\"SSP, as soon as a file is gone.\"\"\"
    while os.path.exists(by):
        time.sleep(0.01)
    return ssp(train, budget, rng, design=design)
"""


def test_what_a_killed_runner_had_claimed_is_computed_by_another_that_waits_for_it(bench, own):
    hold, claims, deadline = bench.folder / "hold", bench.results / "claims", time.monotonic() + 120
    hold.touch()
    (own / "own_held.py").write_text(HELD)
    (own / "mechanism" / "held.yaml").write_text("held: {_target_: own_held.held, _offers_: [statistics], by: ''}\n")
    line = command(
        bench, "--config-dir", str(own), "mechanism=[held]", f"mechanism.held.by={hold}", "repetitions=2", "jobs=1"
    )
    runners = []
    for count in (1, 2):  # each has claimed a release
        runners.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        while len(list(claims.glob("*.0"))) < count and time.monotonic() < deadline:
            time.sleep(0.02)
    runners[0].kill()
    runners[0].communicate()
    hold.unlink()
    out, _ = runners[1].communicate(timeout=120)
    assert runners[1].returncode == 0
    assert "2 of 2 trials are stored" in out and "2 ran now" in out
    assert not list(claims.iterdir())


@pytest.mark.parametrize(
    ("how", "status", "message", "more"),
    [
        ("raise", "failed", "the bottom is out", []),
        ("memory", "oom", "allocate", ["limits.memory_mb=3000"]),
        ("hang", "timeout", "limit of 0.5 s", ["limits.seconds=0.5"]),
        ("overspend", "failed", "the budget was 1", []),
    ],
)
def test_a_failure_is_a_status_in_the_table_and_stops_nothing(
    bench, own, capsys, monkeypatch, how, status, message, more
):
    monkeypatch.syspath_prepend(str(own))
    arguments = ["--config-dir", str(own), "mechanism=[exact,fragile]", f"mechanism.fragile.how={how}", "epsilon=1"]
    arguments.append("--unchecked")
    assert bench.run(*arguments, *more) == 1
    captured = capsys.readouterr()
    states = sorted(trial["status"] for trial in bench.trials().values())
    assert states == sorted(["done"] * 3 + [status] * 3)
    assert "all 3 failed" in captured.out
    assert message in captured.err
    failed = next(trial for trial in bench.trials().values() if trial["status"] != "done")
    assert failed["phase"] == ("budget" if how == "overspend" else "release")
    assert str(bench.folder) not in failed["error"]["traceback"]
    assert bench.run(*arguments, *more) == 1  # a stored failure is not run again, and not forgotten
    assert "0 ran now" in capsys.readouterr().out
    assert bench.run(*arguments, *more, "--retry-failed") == 1
    assert "3 ran now" in capsys.readouterr().out


def test_fail_fast_stops_at_the_first_failure(bench, own, monkeypatch):
    monkeypatch.syspath_prepend(str(own))
    assert bench.run("--config-dir", str(own), "mechanism=[fragile]", "--fail-fast") == 1
    assert len(bench.trials()) == 1


def test_a_worker_killed_by_the_system_is_one_failed_trial(bench, own, capsys):
    arguments = ["--config-dir", str(own), "mechanism=[slow,fragile]", "mechanism.fragile.how=killed", "jobs=2"]
    assert bench.run("--unchecked", *arguments) == 1
    states = {}
    for trial in bench.trials().values():
        states.setdefault(trial["key"]["release"]["mechanism"]["name"], []).append(trial["status"])
    assert states == {"slow": ["done"] * 3, "fragile": ["crashed"] * 3}
    assert "Traceback" not in capsys.readouterr().err


def test_a_trial_that_was_finished_outlives_the_worker_that_a_later_one_kills(bench, own):
    arguments = ["--config-dir", str(own), "mechanism=[exact]", "model=[linear_statistics,deadly]", "jobs=2"]
    assert bench.run("--unchecked", *arguments) == 1
    states = {(trial["key"]["model"]["name"], trial["status"]) for trial in bench.trials().values()}
    assert states == {("linear_statistics", "done"), ("deadly", "crashed")}


def test_damaged_files_are_made_again(bench):
    bench.has_run()
    expected = bench.trials()
    (path,) = (bench.results / "releases").glob("*.bin")
    path.write_bytes(path.read_bytes()[:-40])
    bench.drop_trials()
    assert bench.run() == 0
    assert bench.trials() == expected


def test_an_unwritable_results_folder_is_one_message(bench, capsys):
    (bench.folder / "file").write_text("")
    assert main(["run", *bench.settings(f"results={bench.folder}/file/results")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_full_disk_stops_the_run_and_loses_nothing(bench, monkeypatch, capsys):
    from dpbench.grid import trial_log

    bench.has_run("repetitions=1")
    before = bench.trials()
    write, torn = os.write, []

    def full(descriptor, content):
        if torn:
            raise OSError(28, "No space left on device")
        if b'"status"' not in bytes(content):
            return write(descriptor, content)
        torn.append(descriptor)
        return write(descriptor, content[: len(content) // 2])  # a part of a trial still fits

    monkeypatch.setattr(trial_log.os, "write", full)
    assert bench.run("repetitions=3") == 2
    assert "No space left on device. What was stored before is untouched" in capsys.readouterr().err
    assert bench.trials() == before
    monkeypatch.undo()
    assert bench.run("repetitions=3") == 0
    assert len(bench.trials()) == 6


ONCE = """
from pathlib import Path
from dpbench.data.encode import Design
from dpbench.models.linear import linear_statistics

def once(release, *, design: Design, marks: str):
    \"\"\"Least squares, the first time that it sees a release.\"\"\"
    mark = Path(marks, str(float(release.parts[0].xty[0])))
    mark.touch(exist_ok=False)
    return linear_statistics(release, design=design)
"""


def test_a_metric_that_is_added_is_scored_on_the_stored_fits(bench, own, capsys):
    """The model fails if it sees a release a second time, and so does the mechanism."""
    (own / "own_once.py").write_text(ONCE)
    (own / "model" / "once.yaml").write_text("once: {_target_: own_once.once, _needs_: statistics, marks: ''}\n")
    (bench.folder / "marks").mkdir()
    line = ["--config-dir", str(own), "mechanism=[adassp]", "model=[once]", f"model.once.marks={bench.folder}/marks"]
    assert bench.run(*line, "metric=[mse]") == 0
    one = {trial["key"]["release"]["repetition"]: trial for trial in bench.trials().values()}
    stamps = {path: path.stat().st_mtime_ns for path in (bench.results / "releases").rglob("*")}
    assert bench.run(*line, "metric=[mse,r2]") == 0
    assert "3 ran now" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    two = [trial for trial in bench.trials().values() if len(trial["scores"]) == 2]
    assert len(two) == 3
    for trial in two:
        before = one[trial["key"]["release"]["repetition"]]
        assert trial["scores"][0] == before["scores"][0]
        assert trial["notes"] == before["notes"]
    assert bench.run(*line, "metric=[mse,r2]", "--force") == 1  # everything again: the model does run, and fails


def test_a_table_with_private_pgms_json_of_sizes_runs_the_same_grid(bench, capsys):
    """The codes of the grades of `my.csv`, 0 to 4, declared by sizes alone."""
    rows = [line.split(",") for line in (bench.folder / "my.csv").read_text().splitlines()[1:]]
    lines = [f"{int(age) // 20},{'fm'.index(sex)},{int(grade) - 1}" for age, sex, grade in rows]
    (bench.folder / "my.csv").write_text("age,sex,grade\n" + "\n".join(lines) + "\n")
    (bench.folder / "sizes.json").write_text('{"age": 5, "sex": 2, "grade": 5}')
    settings = [f"dataset.domain={bench.folder}/sizes.json", "mechanism=[exact,aim]", "limits.model_mb=1"]
    assert bench.run(*settings) == 2
    assert "numeric" in capsys.readouterr().err
    assert bench.run(*settings, "dataset.numeric=[grade]") == 0
    assert "DD-SSP" in capsys.readouterr().out


def test_a_task_says_by_its_exit_code_whether_it_ran(bench):
    refused = ["mechanism=[adassp]", "mechanism.adassp.failure=2", "repetitions=1"]
    assert bench.run(*refused) == 2
    assert [trial["error"]["type"] for trial in bench.trials().values()] == ["UserError"]
    task = ["run", f"results={bench.results}", "jobs=1", "--plan"]
    assert main([*task, str(bench.results / "grid" / "plan.jsonl")]) == 1, "it ran, and stored its failures"
    assert main([*task, "none.jsonl"]) == 2


def test_with_nothing_to_do_the_table_is_the_same_and_no_trial_is_made_for_it(bench, capsys, monkeypatch):
    """At a million stored trials that is most of the time and the memory."""
    line = ["mechanism=[exact,adassp,ssp]", "repetitions=2", "metric=[mse,r2]", "epsilon=[0.5,2]"]
    assert bench.run(*line) == 0
    before = capsys.readouterr().out
    trials = [*Store(bench.results, "grid").all_trials()]
    labels = compose(bench.settings(*line)).report["labels"]
    monkeypatch.setattr(Trial, "from_dict", lambda *_: pytest.fail("a trial was made"))
    for more in ([], ["report.metrics=[r2]"]):
        assert bench.run(*line, *more) == 0
        out = capsys.readouterr().out
        assert terminal_table(trial_frame(trials), labels, "r2" if more else "mse") in out
        assert "10 of 10 trials are stored" in out and "; 0 ran now" in out
        assert more or out.replace("; 0 ran", "; 10 ran") == before
