"""Faults at random points of a run: nothing that is stored is wrong, and the same line ends as an undisturbed run does.

What happens, where and when is drawn for each point anew, from a fixed seed.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.grid.process_tree import below, processes

pytestmark = pytest.mark.slow

SEED, ROUNDS = 20261122, 17  # points of each fault
ORPHAN_SECONDS = 5.0  # for what a run had at work to be gone after it
RUN_SECONDS = 120.0
OWN = '''
import time

from dpbench.mechanisms.adassp import adassp


def slow(train, budget, rng, *, design, seconds: float):
    """AdaSSP, after a moment."""
    time.sleep(seconds)
    return adassp(train, budget, rng, design=design)
'''
CONFIG = "slow: {_target_: own_slow.slow, _offers_: [statistics], _relations_: [add_remove], seconds: 0.03}\n"
GRID = ["mechanism=[exact,slow]", "model=[linear_statistics]", "repetitions=10"]
TRIALS = 20


class Scene:
    """A folder with a table and a mechanism of one's own, and the runs of one line there."""

    def __init__(self, bench, seed=None, undisturbed=None):
        self.bench, self.rng, self.undisturbed = bench, np.random.default_rng(seed), undisturbed
        self.own, self.results = bench.folder / "own", bench.results
        self.mark = f"FAULTS={uuid.uuid4().hex}"
        self.runners, self.said = [], []
        (self.own / "mechanism").mkdir(parents=True)
        (self.own / "own_slow.py").write_text(OWN)
        (self.own / "mechanism" / "slow.yaml").write_text(CONFIG)
        jobs = self.rng.choice([1, 1, 2]) if undisturbed else 1
        self.line = ["run", "--unchecked", *bench.settings(*GRID, f"jobs={jobs}", "--config-dir", str(self.own))]

    def start(self, **popen):
        """The line in a process of its own."""
        command, (name, value) = [sys.executable, "-m", "dpbench", *self.line], self.mark.split("=")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        runner = subprocess.Popen(command, env={**os.environ, name: value}, **pipes, **popen)
        self.runners.append(runner)
        return runner

    def began(self, runner):
        """Wait until the run claims its first release."""
        while not list(self.results.glob("claims/runner-*")) and runner.poll() is None:
            time.sleep(0.005)

    def run_until_a_moment(self, **popen):
        """A run that is anywhere between its first claim and its end."""
        runner = self.start(**popen)
        self.began(runner)
        time.sleep(self.rng.uniform(0, self.undisturbed.seconds))
        return runner

    def ended(self):
        """Wait for all runs; their exit codes. None ends with a traceback."""
        self.said = [runner.communicate(timeout=RUN_SECONDS) for runner in self.runners]
        assert not [errors for _, errors in self.said if "Traceback" in errors], self.said
        return [runner.returncode for runner in self.runners]

    def orphans(self):
        """The processes that runs have started and that live, by their environment."""
        found = []
        for pid, process in processes().items():
            with suppress(OSError):
                if not process.dead and self.mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
        return found

    def again(self, *more):
        """The line in this process; the table that it prints."""
        with redirect_stdout(StringIO()) as out:
            assert main([*self.line, *more]) == 0
        return out.getvalue().partition(f"{TRIALS} of {TRIALS} trials are stored")[0]

    def files(self):
        """The files, without logs and what is drawn or planned."""
        paths = (path for path in self.results.rglob("*") if path.is_file() and path.suffix not in (".bin", ".jsonl"))
        return sorted(str(path.relative_to(self.results)) for path in paths)

    def lines(self):
        """How many trials were written, once or again."""
        return sum(path.read_text().count('"status"') for path in self.results.glob("grid/trials/*.jsonl"))

    def some_folder(self):
        """One of the folders that a run writes to."""
        names = ["", "grid", "grid/trials", "releases", "fits", "claims", "printed", ".tmp"]
        return self.results / str(self.rng.choice(names))


class Undisturbed:
    """What a run ends with that nothing happens to, and how long it takes from its first claim on."""

    def __init__(self, scene):
        runner = scene.start()
        scene.began(runner)
        start = time.monotonic()
        assert scene.ended() == [0]
        self.seconds = time.monotonic() - start
        self.trials, self.table, self.files = scene.bench.trials(), scene.again(), scene.files()
        self.results = scene.results
        self.size = sum(path.stat().st_size for path in self.results.rglob("*") if path.is_file())
        assert len(self.trials) == TRIALS


@pytest.fixture(scope="module")
def undisturbed(workbench, tmp_path_factory):
    return Undisturbed(Scene(workbench(tmp_path_factory.mktemp("undisturbed"))))


# --- faults -----------------------------------------------------------------------------------------------------------


def killed_runner(scene):
    scene.run_until_a_moment().kill()


def killed_process(scene):
    """Any process that works for the run."""
    runner = scene.run_until_a_moment()
    if others := sorted(below([runner.pid], processes()) - {runner.pid}):
        with suppress(ProcessLookupError):
            os.kill(int(scene.rng.choice(others)), signal.SIGKILL)


def killed_machine(scene):
    """All processes at once."""
    runner = scene.run_until_a_moment()
    for pid in below([runner.pid], processes()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def runners_at_once(scene):
    """Two or three; nobody computes what another one has."""
    for _ in range(scene.rng.integers(2, 4)):
        scene.start()
        time.sleep(scene.rng.uniform(0, 0.5))
    assert set(scene.ended()) == {0}, scene.said
    assert scene.lines() == TRIALS


def one_of_several_runners_killed(scene):
    """The others go on with what it had claimed."""
    runners = [scene.start() for _ in range(scene.rng.integers(1, 3))]
    scene.run_until_a_moment().kill()
    scene.ended()
    assert {runner.returncode for runner in runners} == {0}, scene.said
    assert len(scene.bench.trials()) == TRIALS


def damaged_files(scene):
    """Of all that is stored, up to three files: cut, a byte flipped, the end lost in zeros, or taken away."""
    shutil.copytree(scene.undisturbed.results, scene.results)
    if scene.rng.random() < 0.5:
        scene.bench.drop_trials()  # what they were made from is read again
    files = sorted(path for path in scene.results.rglob("*") if path.is_file() and path.stat().st_size)
    for path in scene.rng.choice(files, scene.rng.integers(1, 4), replace=False):
        whole = path.read_bytes()
        place = int(scene.rng.integers(len(whole)))
        path.write_bytes(
            [
                whole[:place],
                whole[:place] + bytes([whole[place] ^ (1 << int(scene.rng.integers(8)))]) + whole[place + 1 :],
                whole[:place] + bytes(len(whole) - place),
                b"",
            ][scene.rng.integers(4)]
        )
        if path.stat().st_size == 0 and scene.rng.random() < 0.5:
            path.unlink()


@contextmanager
def file_system(scene, *options):
    """Have the results on a file system of its own, within the context of these sizes, and then large."""
    scene.results.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(scene.results)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    scene.bench.mounted = scene.results
    yield
    subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=10000", str(scene.results)], check=True)


def no_space(scene):
    pages = scene.undisturbed.size // resource.getpagesize()
    with file_system(scene, f"size={scene.rng.integers(1, pages + 12) * resource.getpagesize()}"):
        scene.start()
        assert set(scene.ended()) <= {0, 2}, scene.said


def no_inodes(scene):
    with file_system(scene, f"nr_inodes={scene.rng.integers(2, 30)}"):
        scene.start()
        assert set(scene.ended()) <= {0, 2}, scene.said


def no_growth(scene):
    """No file may grow beyond some size."""
    most = int(scene.rng.integers(5_000, scene.undisturbed.size // 2))
    scene.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    assert set(scene.ended()) <= {0, 2}, scene.said


def read_only_folder(scene):
    """From a moment of the run on."""
    runner, folder = scene.run_until_a_moment(), scene.some_folder()
    lock, free = (["chattr", "+i"], ["chattr", "-i"]) if os.geteuid() == 0 else (["chmod", "a-w"], ["chmod", "u+w"])
    if subprocess.run([*lock, str(folder)], capture_output=True, check=False).returncode:
        runner.kill()
        pytest.skip("no folder can be made read-only here")
    try:
        assert set(scene.ended()) <= {0, 2}, scene.said
    finally:
        subprocess.run([*free, str(folder)], check=True)


def deleted_folder(scene):
    """At a moment of the run."""
    scene.run_until_a_moment()
    shutil.rmtree(scene.some_folder(), ignore_errors=True)
    assert set(scene.ended()) <= {0, 1, 2}, scene.said


def changed_input(scene):
    """Code, data or config change during the run, and come to what they were."""
    path, old, new = [
        (scene.own / "own_slow.py", "return adassp", "return 1 and adassp"),
        (scene.bench.folder / "my.csv", "m,", "f,"),
        (scene.own / "mechanism" / "slow.yaml", "0.03", "0.04"),
        (scene.bench.folder / "my.yaml", "bins: 4", "bins: 5"),
    ][scene.rng.integers(4)]
    scene.run_until_a_moment()
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    assert path.read_text() != text
    assert set(scene.ended()) <= {0, 1, 2}, scene.said
    path.write_text(text)


FAULTS = (
    killed_runner,
    killed_process,
    killed_machine,
    runners_at_once,
    one_of_several_runners_killed,
    damaged_files,
    no_space,
    no_inodes,
    no_growth,
    read_only_folder,
    deleted_folder,
    changed_input,
)


@pytest.fixture
def mounted(bench):
    yield
    if hasattr(bench, "mounted"):
        subprocess.run(["umount", "--lazy", str(bench.mounted)], check=True)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("point", range(ROUNDS))
def test_whatever_happens_the_same_line_ends_as_an_undisturbed_run(bench, mounted, undisturbed, fault, point):
    scene = Scene(bench, [SEED, FAULTS.index(fault), point], undisturbed)
    fault(scene)
    scene.ended()
    deadline = time.monotonic() + ORPHAN_SECONDS
    while scene.orphans():
        assert time.monotonic() < deadline, "processes outlive the run"
        time.sleep(0.05)
    stored = bench.trials()
    assert stored.keys() <= undisturbed.trials.keys()
    wrong = [one for name, one in stored.items() if one["status"] == "done" and one != undisturbed.trials[name]]
    assert not wrong
    assert scene.again("--retry-failed") == undisturbed.table
    assert bench.trials() == undisturbed.trials
    assert scene.files() == undisturbed.files
    if fault is not damaged_files:  # a damaged release is not made again while its trials are stored
        with redirect_stdout(StringIO()) as out:
            assert main(["verify", f"results={bench.results}"]) == 0, out.getvalue()
