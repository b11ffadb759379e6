"""Workers that are forked from one template are as fresh ones, and outlive it."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpbench.grid import fork_server
from dpbench.grid.channel import Page, memory
from dpbench.grid.fork_server import IMPORTED, start_worker, wait
from dpbench.grid.process_tree import processes

OWN = """
import atexit, os, signal, threading, time
import numpy as np
from dpbench.data.encode import Design
from dpbench.mechanisms.ssp import ssp

def numbers(train, budget, rng, *, design: Design):
    with open(os.environ["NUMBERS"], "a") as file:
        file.write(f"{np.random.random()}\\n")
    return ssp(train, budget, rng, design=design)

def leaving(train, budget, rng, *, design: Design):
    def say(what):
        with open(os.environ["NUMBERS"], "a") as file:
            file.write(what)

    atexit.register(say, "exit ")
    threading.Thread(target=lambda: (time.sleep(0.1), say("thread "))).start()
    return ssp(train, budget, rng, design=design)

def fatal(train, budget, rng, *, design: Design):
    os.kill(os.getppid(), signal.SIGKILL)
    return ssp(train, budget, rng, design=design)
"""


FORK = """
import os, sys, threading, time
from dpbench.grid import fork_server
from dpbench.grid.process_tree import processes

if len(sys.argv) > 1:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
left_open = os.open(os.devnull, os.O_RDONLY)
os.set_inheritable(left_open, True)
sys.stdout.write("said once, ")
fork_server.fork_here()
below = [pid for pid, process in processes().items() if process.parent == os.getpid()]
for pid in below:
    files = f"/proc/{pid}/fd"
    while len(names := sorted(os.listdir(files), key=int)) > 4:
        time.sleep(0.01)
    links = [os.readlink(f"{files}/{name}").split(":")[0] for name in names]
    print(os.getsid(pid) == pid, links)
print(len(below), "below")
"""


@pytest.fixture
def run(bench, monkeypatch):
    """Runs an own mechanism, of four releases; the exit code."""
    folder = bench.folder / "own"
    (folder / "mechanism").mkdir(parents=True)
    (folder / "own_mechanisms.py").write_text(OWN)
    for name in ("numbers", "fatal", "leaving"):
        text = f"{name}: {{_target_: own_mechanisms.{name}, _offers_: [statistics]}}\n"
        (folder / "mechanism" / f"{name}.yaml").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    def call(name, *more):
        settings = [f"mechanism=[{name}]", "epsilon=1", "repetitions=4", "--config-dir", str(folder), "--unchecked"]
        return bench.run(*settings, *more)

    return call


@pytest.fixture
def own_files():
    """The numbers of a channel, a page and a file, as a worker takes them."""
    here, there = socket.socketpair()
    with here, there, Page.file() as page, memory() as output:
        yield there.fileno(), page.fileno(), output.fileno()


def test_no_two_draw_the_same_numbers_of_a_global_generator_and_each_has_todays_environment(run, bench, monkeypatch):
    """The template was started by the first run at the latest, with another environment than that of the second."""
    drawn = []
    for name in ("first", "second"):
        file = bench.folder / name
        monkeypatch.setenv("NUMBERS", str(file))
        assert run("numbers", f"name={name}", f"results={bench.folder}/{name}s", "jobs=2") == 0
        drawn += file.read_text().split()
    assert len(drawn) == len(set(drawn)) == 8


def test_a_run_goes_on_without_its_template(run, bench):
    assert run("fatal") == 0
    assert [trial["status"] for trial in bench.trials().values()] == ["done"] * 4
    assert run("fatal", "--force") == 0, "with another one"


def test_a_worker_that_leaves_waits_for_its_threads_and_does_what_was_registered(run, bench, monkeypatch):
    file = bench.folder / "file"
    monkeypatch.setenv("NUMBERS", str(file))
    assert run("leaving", "repetitions=1") == 0
    assert file.read_text() == "thread exit "


def test_it_imports_nothing_whose_threads_a_fork_would_cut_off():
    code = f"import {', '.join(IMPORTED)}, sys; print([n for n in ('jax', 'torch', 'numba') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_fork_has_nothing_open_of_its_parents_and_says_nothing_of_what_that_was_saying():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60)
    files = ["/dev/null", "/memfd", "/memfd", "socket"]
    assert done.stdout == f"said once, True {files}\n1 below\n"
    assert not done.stderr


def test_a_process_with_another_thread_is_not_forked():
    done = subprocess.run([sys.executable, "-c", FORK, "thread"], capture_output=True, text=True, check=True)
    assert done.stdout == "said once, 0 below\n"


def test_a_command_line_whose_workers_are_forked_of_it_stores_what_others_do(bench):
    assert bench.run() == 0
    expected = bench.trials()
    line = [sys.executable, "-m", "dpbench", "run", *bench.settings("jobs=2", f"results={bench.folder}/forked")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert "of 6 trials are stored" in done.stdout
    bench.results = bench.folder / "forked"
    assert bench.trials() == expected


def test_a_fork_ends_well_where_exit_codes_of_children_are_not_kept():
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); from dpbench.grid.fork_server import fork_here"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}; fork_here()"], capture_output=True, text=True, check=True)
    assert not done.stdout + done.stderr


def test_several_threads_ask_for_one_exit_code(own_files):
    """All of them while the template is held up, so that it has not answered the first when the others ask."""
    process, other = start_worker(*own_files), start_worker(*own_files)
    parent = processes()[process.pid].parent
    os.kill(process.pid, signal.SIGKILL)
    os.kill(parent, signal.SIGSTOP)
    with ThreadPoolExecutor(8) as threads:
        codes = threads.map(wait, [process] * 8)
        time.sleep(0.2)
        os.kill(parent, signal.SIGCONT)
        assert set(codes) == {-signal.SIGKILL}
    os.kill(other.pid, signal.SIGTERM)
    assert wait(other) == -signal.SIGTERM, "the template goes on"


def test_what_keeps_a_template_from_starting_is_said(own_files, tmp_path, monkeypatch):
    (tmp_path / "pandas.py").write_text("raise ImportError('no pandas today')")
    monkeypatch.setattr(fork_server, "_key", object)  # another template than that of this process
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(OSError, match="no process can be started: ImportError: no pandas today"):
        start_worker(*own_files)
