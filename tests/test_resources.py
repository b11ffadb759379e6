"""The memory that a process may use, and the folders that ship with the package."""

from dpbench.resources import MEMORY, conf_dir, data_dir, memory_mb


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
