"""`executor=` on real Dask workers: whatever becomes of them, a run ends as one by local processes does."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dpbench.cli import main
from dpbench.grid import dask
from dpbench.grid.process_tree import below, processes

OWN = '''
import os
import time

from dpbench.mechanisms.adassp import adassp


def gated(train, budget, rng, *, design, gate: str):
    """AdaSSP, which at epsilon = 1 waits until a file is there."""
    while budget.epsilon == 1 and not os.path.exists(gate):
        time.sleep(0.05)
    return adassp(train, budget, rng, design=design)
'''
CONFIG = "gated: {_target_: own_gated.gated, _offers_: [statistics], _relations_: [add_remove], gate: open}"
TRIALS = 9  # of a run; 3 of them wait
SECONDS = 180  # of waiting at most, on a machine that may have other work


def test_a_missing_extra_and_what_is_no_executor_are_told(bench, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert bench.run("executor=dask") == 2
    assert "pip install 'dpbench[dask]'" in capsys.readouterr().err
    assert bench.run("executor=10.0.0.1:8786") == 2
    assert "such as tcp://10.0.0.1:8786, not '10.0.0.1:8786'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def distributed():
    return pytest.importorskip("distributed", reason="Dask is not installed: make test-dask installs it")


@pytest.fixture(scope="module")
def cluster(distributed):
    """A scheduler with two workers, which are started again when they die."""
    own = {"threads_per_worker": 1, "memory_limit": None, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **own) as one:
        yield one


@pytest.fixture(scope="module")
def user(workbench, tmp_path_factory):
    """At work in a folder with a mechanism and a table of their own; the paths in the settings are relative."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "own" / "mechanism").mkdir(parents=True)
    (folder / "own" / "own_gated.py").write_text(OWN)
    (folder / "own" / "mechanism" / "gated.yaml").write_text(CONFIG)
    return workbench(folder)


def start(user, results, *more):
    """A run in the background."""
    user.results = user.folder / results
    table = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.target=grade"]
    grid = ["mechanism=[exact,gated]", "epsilon=[1,2]", "repetitions=3", "sample.test_rows=0.125", "shards=2"]
    line = [*table, *grid, f"results={results}", "--config-dir", "own", *more]
    command = [sys.executable, "-m", "dpbench", "run", "--unchecked", *line]
    return subprocess.Popen(command, cwd=user.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(run):
    """What a run printed that ended well."""
    out, err = run.communicate(timeout=2 * SECONDS)
    assert run.returncode == 0, err
    return out


def wait_for(holds, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def undisturbed(user):
    """The trials of a run by local processes."""
    (user.folder / "open").touch()
    end(start(user, "local", "jobs=1"))
    (user.folder / "open").unlink()
    return user.trials()


def at_work(*workers):
    """The processes of the tasks of these workers."""
    below_them = below(workers, processes())
    return below([pid for pid in below_them if b"-m\0dpbench\0run" in command_of(pid)], processes())


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def workers(distributed, cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


@pytest.mark.dask
def test_a_worker_that_is_killed_takes_its_processes_with_it_and_another_goes_on(
    user, distributed, cluster, undisturbed
):
    run = start(user, "killed", f"executor={cluster.scheduler_address}")
    wait_for(lambda: len(user.trials()) >= 2)
    died = workers(distributed, cluster)[0]
    theirs = at_work(died)
    assert theirs
    os.kill(died, signal.SIGKILL)
    wait_for(lambda: not theirs & processes().keys(), 5)
    (user.folder / "open").touch()
    assert f"{TRIALS} of {TRIALS} trials are stored in killed/grid; {TRIALS} ran now" in end(run)
    (user.folder / "open").unlink()
    assert user.trials() == undisturbed
    lines = [line for path in (user.results / "grid" / "trials").iterdir() for line in path.read_text().splitlines()]
    assert sum('"status"' in line for line in lines) == TRIALS, "each is stored once"
    assert not list((user.results / "claims").iterdir())


@pytest.mark.dask
def test_tasks_end_with_the_run_that_waits_for_them_and_the_same_line_goes_on(user, distributed, cluster, undisturbed):
    run = start(user, "gone", f"executor={cluster.scheduler_address}")
    wait_for(lambda: len(user.trials()) >= 2)
    theirs = at_work(*workers(distributed, cluster))
    assert theirs
    run.kill()
    run.communicate()
    wait_for(lambda: not theirs & processes().keys(), 10)
    assert len(user.trials()) < TRIALS
    (user.folder / "open").touch()
    assert f"{TRIALS} of {TRIALS}" in end(start(user, "gone", "executor=dask", "jobs=2")), "on a cluster of its own"
    assert user.trials() == undisturbed


@pytest.mark.dask
@pytest.mark.parametrize("workers", [1, 2])
def test_trials_that_were_refused_do_not_end_the_tasks_of_the_others(bench, distributed, workers):
    refused = ["mechanism=[adassp]", "mechanism.adassp.failure=2", "repetitions=4"]
    assert bench.run(*refused, f"results={bench.folder}/local") == 2
    assert main(["run", *bench.settings(*refused, "executor=dask", "shards=4", f"jobs={workers}")]) == 2
    on_dask, bench.results = bench.trials(), bench.folder / "local"
    assert on_dask == bench.trials() and len(on_dask) == 4


@pytest.mark.dask
def test_a_scheduler_without_workers_and_one_that_is_not_there_are_told(bench, distributed, capsys, monkeypatch):
    monkeypatch.setattr(dask, "ANSWER_SECONDS", 1.0)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        address = empty.scheduler_address
        assert bench.run(f"executor={address}") == 2
        assert f"executor={address}: the Dask scheduler has no worker" in capsys.readouterr().err
    assert bench.run(f"executor={address}") == 2
    assert f"executor={address}: no Dask scheduler answers there" in capsys.readouterr().err


@pytest.mark.dask
def test_workers_of_this_machine_take_no_orders_from_others(distributed):
    """Who reaches a scheduler has it run code, and any user of a login node reaches its ports."""
    psutil = pytest.importorskip("psutil")

    def ports():
        return {one.laddr for one in psutil.Process().net_connections() if one.status == psutil.CONN_LISTEN}

    before = ports()  # of other tests
    with dask._client("dask", 2) as client:
        assert client.scheduler.address.startswith("inproc://")
        assert client.submit(sum, [1, 2]).result() == 3
        for port in ports() - before:
            assert port.ip == "127.0.0.1"
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port.port}/info/main/workers.html", timeout=SECONDS)


@pytest.mark.dask
def test_a_scheduler_that_is_killed_ends_in_one_message(user, distributed):
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    address = next(re.search(r"tcp://\S+", line)[0] for line in scheduler.stderr if "Scheduler at" in line)
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        run = start(user, "lost", f"executor={address}")
        wait_for(lambda: len(user.trials()) >= 1)
        scheduler.kill()
        _, err = run.communicate(timeout=2 * SECONDS)
        assert run.returncode == 2 and "the Dask scheduler is gone" in err and "Traceback" not in err, err
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        scheduler.stderr.close()
