"""The script of each paper, outside of an environment, with a stand-in for `dpbench` that prints what it was asked."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dpbench.config import choices

SCRIPTS = Path(__file__).parents[1] / "scripts"
PAPERS = sorted(path.stem for path in SCRIPTS.glob("*.sh") if path.stem != "reproduce")
PATH = "/usr/bin:/bin"


@pytest.fixture
def clone(tmp_path):
    """A clone in which `make install` has run."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    program = tmp_path / ".venv/bin/dpbench"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$*"\n')
    program.chmod(0o755)
    return tmp_path


def _asked(clone, paper, *settings):
    line = ["bash", str(clone / f"scripts/{paper}.sh"), *settings]
    return subprocess.run(line, env={"PATH": PATH}, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("paper", PAPERS)
def test_it_runs_and_draws_every_experiment_of_the_paper_and_then_the_paper(paper, clone):
    *each, last = _asked(clone, paper, "repetitions=2").stdout.splitlines()
    ran = [line.split()[1].removeprefix("experiment=") for line in each if line.startswith("run ")]
    own = {name for name, path in choices("experiment").items() if path.parent.name == paper}
    assert sorted(ran) == sorted(own)
    assert each == [f"{verb} experiment={name} repetitions=2" for name in ran for verb in ("run", "figures")]
    assert last == f"figures paper={paper} repetitions=2"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_dry_run_draws_nothing(paper, clone):
    lines = _asked(clone, paper, "--dry-run").stdout.splitlines()
    assert lines
    assert all(line.startswith("run experiment=") and line.endswith(" --dry-run") for line in lines)


def test_without_an_installation_it_says_what_to_do(clone):
    shutil.rmtree(clone / ".venv")
    done = _asked(clone, "dd_ssp")
    assert (done.returncode, done.stdout) == (1, "")
    assert "make install" in done.stderr
