"""Workers that are forked of one template are as fresh ones, and outlive it."""

import subprocess
import sys

import pytest

from dpbench.grid.template import IMPORTED

OWN = """
import os, signal
import numpy as np
from dpbench.data.encode import Design
from dpbench.mechanisms.ssp import ssp

def numbers(train, budget, rng, *, design: Design):
    with open(os.environ["NUMBERS"], "a") as file:
        file.write(f"{np.random.random()}\\n")
    return ssp(train, budget, rng, design=design)

def fatal(train, budget, rng, *, design: Design):
    os.kill(os.getppid(), signal.SIGKILL)
    return ssp(train, budget, rng, design=design)
"""


@pytest.fixture
def run(bench, monkeypatch):
    """Runs an own mechanism, of four releases; the exit code."""
    folder = bench.folder / "own"
    (folder / "mechanism").mkdir(parents=True)
    (folder / "own_mechanisms.py").write_text(OWN)
    for name in ("numbers", "fatal"):
        text = f"{name}: {{_target_: own_mechanisms.{name}, _offers_: [statistics]}}\n"
        (folder / "mechanism" / f"{name}.yaml").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    def call(name, *more):
        settings = [f"mechanism=[{name}]", "epsilon=1", "repetitions=4", "--config-dir", str(folder), "--unchecked"]
        return bench.run(*settings, *more)

    return call


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


def test_it_imports_nothing_whose_threads_a_fork_would_cut_off():
    code = f"import {', '.join(IMPORTED)}, sys; print([n for n in ('jax', 'torch', 'numba') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
