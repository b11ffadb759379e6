"""`dpbench slurm` on a real SLURM: whatever becomes of its tasks, submitting again ends as an undisturbed run does."""

import os
import re
from contextlib import redirect_stdout
from io import StringIO

import pytest

from dpbench.cli import main

from .cluster import Cluster, lacking, wait_for

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(lacking()), reason=f"not installed: {', '.join(lacking())}; make test-slurm installs them"),
]

OWN = '''
import os
import time
from pathlib import Path

from dpbench.mechanisms.adassp import adassp


def gated(train, budget, rng, *, design):
    """AdaSSP, which at epsilon = 1 waits until the file is there that DPBENCH_GATE names."""
    while budget.epsilon == 1 and not Path(os.environ["DPBENCH_GATE"]).exists():
        time.sleep(0.05)
    return adassp(train, budget, rng, design=design)
'''
CONFIG = "gated: {_target_: own_gated.gated, _offers_: [statistics], _relations_: [add_remove]}"
TRIALS = 15  # of a run; 5 of them wait


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("slurm") / "node") as running:
        yield running


class User:
    """A folder with a table of one's own, and what a user does there with results in a folder of a name."""

    def __init__(self, bench, cluster):
        self.bench, self.cluster = bench, cluster
        (bench.folder / "own" / "mechanism").mkdir(parents=True)
        (bench.folder / "own" / "own_gated.py").write_text(OWN)
        (bench.folder / "own" / "mechanism" / "gated.yaml").write_text(CONFIG)

    def line(self, results):
        """The settings of a run; the paths in them are relative to the folder."""
        table = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=grade"]
        grid = ["mechanism=[exact,gated]", "epsilon=[1,2]", "repetitions=5", "sample.test_rows=0.125", "jobs=1"]
        return [*table, *grid, f"results={results}", "--config-dir", "own", "--unchecked"]

    def open(self, results):
        """Let those go on that wait."""
        os.environ["DPBENCH_GATE"] = str(self.bench.folder / f"{results}.open")
        (self.bench.folder / f"{results}.open").touch()

    def submit(self, results, *more):
        """Submit what is missing; the job."""
        os.environ["DPBENCH_GATE"] = str(self.bench.folder / f"{results}.open")
        printed = self.printed("slurm", *self.line(results), "slurm.mem=100M", *more)
        return "".join(re.findall(r"^job (\d+):", printed, re.MULTILINE)) or printed

    def status(self, results):
        return self.printed("status", f"results={results}")

    def printed(self, *line):
        with redirect_stdout(StringIO()) as out:
            assert main(line) == 0
        return out.getvalue()

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
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DPBENCH_GATE", "")
        yield User(workbench(folder), cluster)


@pytest.fixture(scope="module")
def over(user, cluster):
    """The job of a task that is over its time: SLURM looks every 30 s, and others run meanwhile."""
    job = user.submit("over", "shards=1")
    user.wait_for_trials("over", 4)
    cluster.client("scontrol", "update", f"JobId={job}_1", "EndTime=now+1")
    return job


@pytest.fixture(scope="module")
def undisturbed(user, over):
    """The trials of a local run."""
    user.open("local")
    user.printed("run", *user.line("local"))
    return user.trials("local")


def test_an_array_ends_as_a_local_run_does(user, cluster, undisturbed):
    user.open("array")
    job = user.submit("array", "shards=2")
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    assert user.trials("array") == undisturbed
    assert f"{TRIALS} done, 0 left" in user.status("array")
    assert "nothing is submitted" in user.submit("array", "shards=2")


def test_a_cancelled_task_is_told_and_submitted_again_alone(user, cluster, undisturbed):
    job = user.submit("cancelled", "shards=2", "slurm.throttle=1")
    user.wait_for_trials("cancelled", 4)
    told = user.status("cancelled")
    assert "running (task 1)" in told
    assert "pending (task 2)" in told
    assert "nothing is submitted" in user.submit("cancelled"), "tasks that wait or run are not doubled"
    cluster.client("scancel", f"{job}_1")
    user.open("cancelled")
    assert cluster.wait(job) == {1: "CANCELLED", 2: "COMPLETED"}
    left = TRIALS - len(user.trials("cancelled"))
    assert f"{left} cancelled (task 1)" in user.status("cancelled")
    again = user.submit("cancelled", "shards=1")
    assert set(cluster.wait(again).values()) == {"COMPLETED"}
    assert user.trials("cancelled") == undisturbed


def test_a_task_over_its_time_is_told_and_submitted_again(user, cluster, undisturbed, over):
    assert cluster.wait(over) == {1: "TIMEOUT"}
    left = TRIALS - len(user.trials("over"))
    assert f"{left} timed out (task 1)" in user.status("over")
    user.open("over")
    again = user.submit("over", "shards=1")
    assert cluster.wait(again) == {1: "COMPLETED"}
    assert user.trials("over") == undisturbed


def test_the_tasks_of_a_node_that_dies_run_again_when_it_is_back(user, cluster, undisturbed):
    job = user.submit("died", "shards=1")
    user.wait_for_trials("died", 6)
    cluster.kill_node()
    assert "pending (task 1)" in user.status("died")
    assert "nothing is submitted" in user.submit("died")
    user.open("died")
    cluster.start_node()
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    assert user.trials("died") == undisturbed
