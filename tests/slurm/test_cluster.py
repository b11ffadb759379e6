"""`dpbench slurm` on a real SLURM: whatever becomes of its tasks, submitting again ends as an undisturbed run does."""

import os
import re

import pytest

from dpbench.cli import main

from .cluster import Cluster, lacking, wait_for

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(lacking()), reason=f"not installed: {', '.join(lacking())}; make test-slurm installs them"),
]

OWN = '''
import time
from pathlib import Path

from dpbench.mechanisms.adassp import adassp


def gated(train, budget, rng, *, design, gate: str):
    """AdaSSP, which at epsilon = 1 waits until a file is there."""
    while budget.epsilon == 1 and not Path(gate).exists():
        time.sleep(0.05)
    return adassp(train, budget, rng, design=design)
'''
CONFIG = """
gated:
  _target_: own_gated.gated
  _offers_: [statistics]
  _relations_: [add_remove]
  gate: {gate}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("slurm") / "node") as running:
        yield running


class User:
    """A folder with a table of one's own, and what a user does there."""

    def __init__(self, bench, cluster):
        self.bench, self.cluster, self.gate = bench, cluster, bench.folder / "open"
        (bench.folder / "own" / "mechanism").mkdir(parents=True)
        (bench.folder / "own" / "own_gated.py").write_text(OWN)
        (bench.folder / "own" / "mechanism" / "gated.yaml").write_text(CONFIG.format(gate=self.gate))

    def line(self, results):
        """Of 15 trials, 10 do not wait for the gate. Paths are relative to the folder."""
        table = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=grade"]
        grid = ["mechanism=[exact,gated]", "epsilon=[1,2]", "repetitions=5", "sample.test_rows=50", "jobs=1"]
        return [*table, *grid, f"results={results}", "--config-dir", "own"]

    def submit(self, results, capsys, *more):
        """The job of what is submitted; "" if nothing is."""
        assert main(["slurm", *self.line(results), "slurm.mem=100M", *more]) == 0
        return "".join(re.findall(r"^job (\d+):", capsys.readouterr().out, re.MULTILINE))

    def status(self, results, capsys):
        assert main(["status", f"results={results}"]) == 0
        return capsys.readouterr().out

    def trials(self, results):
        self.bench.results = self.bench.folder / results
        return self.bench.trials()

    def wait_for_trials(self, results, count):
        """Wait until so many are stored."""
        wait_for(lambda: len(self.trials(results)) >= count, f"{count} trials of {results}", 60)


@pytest.fixture(scope="module")
def user(workbench, cluster, tmp_path_factory):
    """At work in a folder with a blank and an apostrophe in its name."""
    folder = tmp_path_factory.mktemp("user") / "it's mine"
    folder.mkdir()
    before = os.getcwd()
    os.chdir(folder)
    yield User(workbench(folder), cluster)
    os.chdir(before)


@pytest.fixture(scope="module")
def undisturbed(user):
    """The trials of a local run."""
    user.gate.touch()
    assert main(["run", *user.line("local")]) == 0
    user.gate.unlink()
    return user.trials("local")


def test_an_array_ends_as_a_local_run_does(user, cluster, undisturbed, capsys):
    user.gate.touch()
    job = user.submit("array", capsys, "shards=3")
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    user.gate.unlink()
    assert user.trials("array") == undisturbed
    assert "15 done, 0 left" in user.status("array", capsys)
    assert user.submit("array", capsys, "shards=3") == ""


def test_a_cancelled_task_is_told_and_submitted_again_alone(user, cluster, undisturbed, capsys):
    job = user.submit("cancelled", capsys, "shards=2", "slurm.throttle=1")
    user.wait_for_trials("cancelled", 4)
    told = user.status("cancelled", capsys)
    assert "of task 1 running" in told
    assert "of task 2 pending" in told
    assert user.submit("cancelled", capsys) == "", "tasks that wait or run are not doubled"
    cluster.client("scancel", f"{job}_1")
    user.gate.touch()
    assert cluster.wait(job) == {1: "CANCELLED", 2: "COMPLETED"}
    left = 15 - len(user.trials("cancelled"))
    assert f"{left} of task 1 cancelled" in user.status("cancelled", capsys)
    again = user.submit("cancelled", capsys)
    assert set(cluster.wait(again).values()) == {"COMPLETED"}
    assert len(cluster.states(again)) <= left
    user.gate.unlink()
    assert user.trials("cancelled") == undisturbed


def test_a_task_over_its_time_is_told_and_submitted_again(user, cluster, undisturbed, capsys):
    job = user.submit("over", capsys, "shards=1")
    user.wait_for_trials("over", 4)
    cluster.client("scontrol", "update", f"JobId={job}_1", "EndTime=now+1")  # SLURM looks every 30 s
    assert cluster.wait(job) == {1: "TIMEOUT"}
    left = 15 - len(user.trials("over"))
    assert f"{left} of task 1 timed out" in user.status("over", capsys)
    user.gate.touch()
    cluster.wait(user.submit("over", capsys, "shards=1"))
    user.gate.unlink()
    assert user.trials("over") == undisturbed


def test_the_tasks_of_a_node_that_dies_run_again_when_it_is_back(user, cluster, undisturbed, capsys):
    job = user.submit("died", capsys, "shards=2")
    user.wait_for_trials("died", 6)
    cluster.kill_node()
    assert "pending" in user.status("died", capsys)
    assert user.submit("died", capsys) == ""
    user.gate.touch()
    cluster.start_node()
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    user.gate.unlink()
    assert user.trials("died") == undisturbed
    assert user.submit("died", capsys) == ""
