"""Who may read what is stored of a table that is not public: its owner alone."""

import os
import stat

import pytest

from dpbench.cli import main


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022, "a command leaves the process as it was"


def readable_by_others(folder):
    paths = [folder, *folder.rglob("*")]
    return sorted(str(path) for path in paths if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def test_results_on_a_private_table_are_readable_by_their_owner_alone(bench):
    """Those of the exact reference are statistics of the rows without any noise; scores compare with them."""
    assert bench.run("mechanism=[exact,adassp]", "repetitions=1") == 0
    run = ["name=grid", f"results={bench.results}"]
    submitted = ["slurm", "--print", *bench.settings("shards=2")]
    for command in (["figures", *run], ["report", *run], ["export", *run], submitted):
        assert main(command) == 0
    assert len(list(bench.results.rglob("*"))) > 20
    assert not readable_by_others(bench.results)


def test_results_on_a_public_table_are_as_other_files(bench):
    assert bench.run("mechanism=[adassp]", "repetitions=1", "dataset.public=true") == 0
    (log,) = (bench.results / "grid" / "trials").iterdir()
    assert stat.S_IMODE(log.stat().st_mode) == 0o644
    assert bench.run("mechanism=[adassp]", "repetitions=1", "name=private") == 0
    assert not readable_by_others(bench.results / "private")
    logs = {path: path.stat().st_mode & 0o077 for path in (bench.results / "releases").iterdir()}
    assert sorted(map(bool, logs.values())) == [False, False, True, True], "each log has a writer, each writer a table"
