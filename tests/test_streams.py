"""A run does not depend on whether somebody can read what it says."""

import subprocess
import sys

import pytest

RUN = ["mechanism=[adassp]", "repetitions=1", "jobs=1"]


@pytest.mark.parametrize("end", ["2> /dev/full", "2>&-", "2>&- <&- >&-", "2>&1 >&- | true"])
def test_a_run_ends_well_whatever_becomes_of_its_streams(bench, end):
    line = " ".join([f"{sys.executable} -m dpbench run", *(f"'{one}'" for one in bench.settings(*RUN)), end])
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], check=False)
    assert done.returncode == 0
    assert len(bench.trials()) == 1


def test_a_message_that_nobody_can_take_leaves_its_exit_code(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "dpbench", "run", "epsilom=1"], stderr=full, check=False)
    assert done.returncode == 2
