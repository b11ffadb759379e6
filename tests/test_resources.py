"""The memory and threads that a process may use, and the folders that ship with the package."""

import subprocess
import sys

import pytest

from dpbench.resources import MEMORY, conf_dir, data_dir, memory_mb, threads, with_threads

XLA = """
import jax, os
jax.numpy.ones(3).sum().block_until_ready()
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
print(sum("XLAEigen" in name for name in names))
"""


def test_the_limit_of_a_run_counts_where_it_is_below_the_machines_memory(monkeypatch):
    monkeypatch.delenv(MEMORY, raising=False)
    machine = memory_mb()
    assert machine > 100
    monkeypatch.setenv(MEMORY, "64")
    assert memory_mb() == 64
    monkeypatch.setenv(MEMORY, "1e18")
    assert memory_mb() == machine


def test_configs_and_data_travel_with_the_package():
    assert (conf_dir() / "config.yaml").is_file() and (data_dir() / "adult_synth.csv.gz").is_file()


def test_threads_are_one_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads() == 1
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert with_threads()["OPENBLAS_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    assert with_threads()["MKL_NUM_THREADS"] == "3"


@pytest.mark.parametrize("number", [1, 3])
def test_jax_has_no_more_threads_than_that(monkeypatch, number):
    monkeypatch.setenv("OMP_NUM_THREADS", str(number))
    monkeypatch.setenv("NPROC", "7")
    line = [sys.executable, "-c", XLA]
    done = subprocess.run(line, env=with_threads(), capture_output=True, text=True, check=True)
    assert int(done.stdout) == number
