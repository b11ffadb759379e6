"""A light installation: what it runs without the packages of extras, and what it says where one is missing."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dpbench.errors import EXTRAS
from dpbench.grid.golden import arithmetic
from dpbench.resources import PACKAGE

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {"scikit-learn": "sklearn", "xgboost-cpu": "xgboost", "vl-convert-python": "vl_convert", "pillow": "PIL"}
IMPORTED_AS |= {"hydra-core": "hydra", "dp-accounting": "dp_accounting"}
COMES_ALONG = {
    "jax": "numpyro",
    "omegaconf": "hydra",
    "yaml": "hydra",
    "requests": "pooch",
}  # as a dependency of another package
SMALL = ["sample=smoke", "limits=smoke", "repetitions=1", "epsilon=[1]", "calibration=tight", "jobs=1"]

HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def names(requirements):
    found = [re.match(r"[\w.-]+", one)[0] for one in requirements]
    return {IMPORTED_AS.get(name, name) for name in found if name != "dpbench"}


def imported():
    """The packages that the modules of dpbench import, anywhere in them."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield str(node.module).split(".")[0]


def test_what_is_imported_is_a_dependency_or_in_the_extra_that_a_message_names():
    extras = {
        name: extra
        for extra, given in PROJECT["optional-dependencies"].items()
        if extra not in ("all", "dev", "dask")
        for name in names(given)
    }
    assert extras | {"jax": extras["numpyro"]} == EXTRAS
    known = names(PROJECT["dependencies"]) | set(EXTRAS) | set(COMES_ALONG) | {"dask", "distributed", "dpbench"}
    own_environment = {"snsynth", "opacus", "opendp", "torch"}  # that of smartnoise-synth, `make snsynth`
    assert set(imported()) - set(sys.stdlib_module_names) - known - own_environment == set()


@pytest.fixture
def python(tmp_path):
    """Run Python as in an installation without any extra."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDING.format(list(EXTRAS)))
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

    def run(*line):
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, *line], env=env, capture_output=True, text=True, timeout=300, check=False
        )

    return run


COMMANDS = """
import contextlib, io, json, sys
from dpbench.cli import main
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(line)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


@pytest.fixture
def light(tmp_path, python):
    """Run commands of `dpbench` as in an installation without any extra: of each its exit code, output and errors."""

    def run(*lines):
        done = python("-c", COMMANDS, json.dumps([[*line, f"results={tmp_path / 'results'}"] for line in lines]))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_quickstart_needs_no_extra(light):
    small = ["experiment=quickstart", *SMALL, "mechanism=[exact,aim]"]
    ran, drawn, written = light(*([command, *small] for command in ("run", "figures", "report")))
    assert ran[0] == 0, ran
    assert drawn[0] == 0 and "quickstart.png" in drawn[1], drawn
    code, _, errors = written
    assert (code, errors) == (2, "dpbench: vl_convert is not installed: pip install 'dpbench[html]'\n")


def test_a_mechanism_whose_package_is_missing_says_what_to_install(light):
    ((code, _, errors),) = light(
        ["run", "experiment=queries_adult_reduced", "dataset=adult_synth", "mechanism=[gem]", *SMALL]
    )
    assert code == 1
    assert "1 trial failed in release: torch is not installed: pip install 'dpbench[networks]'" in errors
    assert "Traceback" not in errors


def test_edited_code_is_compared_without_the_packages_of_extras_unless_it_needs_one(python, monkeypatch):
    """In an installation of Python of another version all code counts as edited."""
    known = arithmetic()
    monkeypatch.setattr("dpbench.grid.golden.LIBRARIES", ("numpy", "no-such-library"))
    arithmetic.cache_clear()
    assert arithmetic() != known
    arithmetic.cache_clear()
    compared = python("-m", "dpbench.grid.golden", "mechanism/ssp", "mechanism/gem")
    assert (compared.returncode, compared.stdout) == (0, '{"mechanism/ssp": "", "mechanism/gem": null}\n'), (
        compared.stderr
    )


CALLS = """
import dpbench, pandas
from dpbench.errors import UserError
rows = pandas.DataFrame({"a": [0, 1] * 9, "b": [1, 0] * 9})
domain = {name: {"levels": [0, 1]} for name in "ab"}
for call in (
    lambda: dpbench.fit(rows, model="logistic_rows", target="a", domain=domain),
    lambda: dpbench.evaluate(rows, rows, domain, "a"),
):
    try:
        call()
    except UserError as error:
        print(error)
"""


def test_python_names_the_extra_of_a_model_and_of_scores(python):
    done = python("-c", CALLS)
    assert done.stdout == 2 * "sklearn is not installed: pip install 'dpbench[learn]'\n", done.stderr
