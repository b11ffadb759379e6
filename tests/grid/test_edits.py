"""Stored results survive every edit that leaves alone what their parts compute, and no other."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from dpbench.resources import PACKAGE

GRID = ["experiment=quickstart", "mechanism=[exact,ssp,adassp]", "epsilon=[1]", "repetitions=2", "jobs=1"]
HARMLESS = {
    "a message": ("errors.py", "did you mean", "do you mean"),
    "a comment": ("privacy/noise.py", "import numpy", "# arrays\nimport numpy"),
    "a docstring": ("mechanisms/ssp.py", '"""', '"""Again: '),
    "a figure": ("report/figures/lines.py", "def ", "def unused(): ...\n\n\ndef "),
    "another mechanism": ("mechanisms/jlt.py", "def jlt(", "SPARE = 1\n\n\ndef jlt("),
    "a refactoring": ("privacy/sensitivity.py", "import annotations", "import annotations\n\nUNUSED = 1"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project that can be edited."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpbench", "conf", "data"):
        shutil.copytree(
            PACKAGE.parent / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


def run(copy):
    """The last line of a run, which says how many trials ran."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "DPBENCH_CACHE": str(copy / "cache")}
    line = [sys.executable, "-m", "dpbench", "run", *GRID, f"results={copy / 'results'}"]
    done = subprocess.run(line, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def edit(copy, name, old, new):
    path = copy / "dpbench" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.slow
def test_stored_trials_survive_edits_of_everything_but_what_they_compute(copy):
    first = run(copy)
    planned = int(re.search(r"of (\d+) trials", first)[1])
    assert f"{planned} ran now" in first
    for what, change in HARMLESS.items():
        edit(copy, *change)
        assert " 0 ran now" in run(copy), what
    edit(copy, "mechanisms/ssp.py", "multiplier = xx_multiplier = ", "multiplier = xx_multiplier = 1.0000001 * ")
    assert f" {planned // 3} ran now" in run(copy), "SSP's trials, and no others"
