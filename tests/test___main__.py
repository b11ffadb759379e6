"""`python -m dpbench` is the command line."""

import subprocess
import sys

import pytest

from dpbench import __version__


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["--version"], 0, f"dpbench {__version__}"),
        (["show", "mechanism=adasp"], 2, "dpbench: unknown mechanism 'adasp'; did you mean 'adassp'?"),
    ],
)
def test_python_m_runs_a_line_and_ends_with_its_code(line, code, said, tmp_path):
    command = [sys.executable, "-m", "dpbench", *line]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code and said in done.stdout + done.stderr
