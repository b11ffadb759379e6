"""Completion of lines, as bash asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """eval "$(register-python-argcomplete dpbench)"
COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete dpbench
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dpbench re", ["recommend", "release", "report"]),
        (
            "dpbench run experiment=linreg_adult_",
            ["linreg_adult_all_attributes", "linreg_adult_fixed_split", "linreg_adult_model_size"],
        ),
        ("dpbench run experiment=linreg_adult mechanism=[aim,adas", ["[aim,adassp,", "[aim,adassp]"]),
        ("dpbench data card liver", ["liver_disorders"]),
    ],
)
def test_bash_is_offered_what_the_configs_have(line, offered):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", line], capture_output=True, text=True, env={**os.environ, "PATH": path}, check=True
    )
    assert sorted(done.stdout.replace("\\", "").split()) == offered
