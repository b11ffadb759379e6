"""Five journeys of outsiders: what they do first, in an empty folder, with the wheel in an environment of its own.

Each prints its commands with their seconds. The files and settings are those that docs/ shows.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dpbench.resources import PACKAGE

pytestmark = pytest.mark.journeys
ROOT = PACKAGE.parent
UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])) or "uv"


def blocks(page, language):
    """The blocks of a page of docs/ in a language."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """A virtual environment with the wheel, without extras and without the repository."""
    folder = tmp_path_factory.mktemp("installed")
    python = folder / "env" / "bin" / "python"
    build = ["build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", str(folder), str(ROOT)]
    for line in (
        [*build, "--python", sys.executable],
        ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder / "env")],
    ):
        subprocess.run([UV, *line], check=True)
    (wheel,) = folder.glob("*.whl")
    install(python, str(wheel))
    return python.parent


def install(python, *packages):
    line = [UV, "pip", "install", "--quiet", "--python", str(python), *packages]
    subprocess.run(line, check=True)


class Outsider:
    """An empty folder, in which lines are run as in a shell; `said` is what the last one wrote."""

    def __init__(self, folder, programs):
        self.folder, self.programs, self.said, self.seconds = folder, programs, "", 0.0
        self.variables = {"HOME": str(folder.parent / "home"), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.variables |= {"DPBENCH_SALT": str(folder.parent / "salt"), "OMP_NUM_THREADS": "1"}
        for path in (folder, folder.parent / "home"):
            path.mkdir()

    def does(self, line, code=0, **variables):
        """Run a line, which must end with this exit code and without a traceback."""
        start, env = time.perf_counter(), self.variables | variables
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        self.said, seconds = done.stdout + done.stderr, time.perf_counter() - start
        self.seconds += seconds
        print(f"{seconds:5.1f} s  exit {done.returncode}  {shlex.join(words)}")
        assert done.returncode == code and "Traceback" not in self.said, self.said
        return self.said

    def writes(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def reads(self, name):
        return (self.folder / name).read_text()


@pytest.fixture
def outsider(tmp_path, environment):
    one = Outsider(tmp_path / "folder", environment)
    yield one
    print(f"{one.seconds:5.1f} s  all")


def test_first_figure(outsider):
    assert "quickstart" in outsider.does("dpbench list experiments")
    assert "dataset=adult_synth" in outsider.does("dpbench show experiment=quickstart")
    said = outsider.does("dpbench run experiment=quickstart")
    assert "84 of 84 trials are stored in results/quickstart" in said and "AIM-Synth" in said
    said = outsider.does("dpbench figures experiment=quickstart")
    assert "results/quickstart/figures/quickstart.png" in said
    with Image.open(outsider.folder / "results/quickstart/figures/quickstart.png") as image:
        assert image.width > 500 and len(image.convert("RGB").getcolors(2**24)) > 20
    drawn = pd.read_csv(outsider.folder / "results/quickstart/figures/quickstart.csv")
    assert {0.1, 0.5, 1.0} <= set(drawn["x"]) and (drawn["count"] == 3).all() and (drawn["mean"] > 0).all()
    assert "84 done, 0 left" in outsider.does("dpbench status")
    assert "**Privacy**" in outsider.does("dpbench show mechanism=aim")
    missing = outsider.does("dpbench report experiment=quickstart", code=2)
    assert missing == "dpbench: vl_convert is not installed: pip install 'dpbench[html]'\n"
    assert "1. dpbench release" in outsider.does("dpbench recommend epsilon=1 --rows 20000 --columns 8")


def test_own_method(outsider):
    for language in ("yaml", "python"):
        for text in blocks("plugins", language):
            for name, content in re.findall(
                r"^# (own/[\w/]+\.\w+)\n(.*?)(?=^# own/|\Z)", text, re.MULTILINE | re.DOTALL
            ):
                outsider.writes(name, content)
    said = outsider.does("dpbench check mechanism=noisy_moments --config-dir own")
    assert "ok     rows are read through its noise only" in said and "wrong" not in said
    grid = "'mechanism=[exact,adassp,mean_target,noisy_moments]' 'model=[linear_statistics,released_coefficients]'"
    settings = f"name=mine dataset=adult_synth epsilon=[1] repetitions=2 {grid} --config-dir own"
    said = outsider.does(f"dpbench run {settings}")
    assert re.search(r"^noisy_moments +0\.\d+ ± ", said, re.MULTILINE) and "not checked" not in said
    assert "results/mine/figures/mse.png" in outsider.does("dpbench figures name=mine --config-dir own")
    table = outsider.reads("results/mine/tables/mine.tex")
    assert table.count(r"\toprule") == table.count(r"\end{tabular}") > 1
    assert re.search(r"noisy\\_moments & (\\textbf\{)?0\.\d+ \$\\pm\$ 0\.\d+\}? \(2\) &", table)
    text = outsider.reads("own/my_parts.py").replace("share**-0.5 / mu", "0.1 * share**-0.5 / mu")
    outsider.writes("own/my_parts.py", text)
    assert "wrong" in outsider.does("dpbench check mechanism=noisy_moments --config-dir own", code=1)
    said = outsider.does(f"dpbench run {settings}", code=1)
    assert "2 trials failed in check: dpbench check mechanism=noisy_moments finds what is wrong" in said
    assert "its noise costs epsilon = 9.4" in said


def loans():
    """A table that fits the declaration of docs/own_table.md."""
    rng, n = np.random.default_rng(0), 600
    table = pd.DataFrame({"granted": pd.to_datetime("2023-01-01") + pd.to_timedelta(rng.integers(0, 730, n), "D")})
    table["amount"] = rng.integers(0, 50_001, n)
    table["debt"] = rng.uniform(0, 200, n).round(1)
    table.loc[table["debt"] > 150, "debt"] = np.nan
    table["reason"] = rng.choice(["home", "car", "debts", ""], n)
    table["children"], table["repaid"] = rng.integers(0, 7, n), rng.choice(["no", "yes"], n)
    return table


def test_own_table(outsider):
    loans().to_csv(outsider.folder / "loans.csv", index=False)
    (declared,), (script,) = blocks("own_table", "yaml"), blocks("own_table", "python")
    declare, check, releases, history = blocks("own_table", "sh")
    outsider.does(declare)
    assert "granted: {dates: [FIRST, LAST], by: month}" in outsider.reads("skeleton.yaml")
    said = outsider.does(check.replace("loans.yaml", "skeleton.yaml"), code=2)
    assert "attribute 'granted': dates are written as 2024-12-31, not FIRST" in said
    outsider.writes("loans.yaml", declared)
    assert "600 rows x 6 attributes fit their declaration" in outsider.does(check)
    synthetic, coefficients = re.split(r"(?<!\\)\n", releases.strip())
    assert "the only release of loans.csv: epsilon = 1 at delta" in outsider.does(synthetic)
    assert "all 2 releases of loans.csv together" in outsider.does(coefficients)
    statement = outsider.reads("rows/statement.md")
    assert "It spent a privacy loss of ε = 1 at δ = 1e-05" in statement and "The limit on ε is 3" in statement
    said = outsider.does(
        synthetic.replace("epsilon=1", "epsilon=2").replace("--limit 3", "").replace("rows", "more"), 2
    )
    assert "would exceed the limit of 3. Nothing was released" in said and not (outsider.folder / "more").exists()
    assert "loans.csv: 2 releases" in outsider.does(history)
    rows, real = (pd.read_csv(outsider.folder / name) for name in ("rows/synthetic.csv", "loans.csv"))
    assert rows.dtypes.to_dict() == real.dtypes.to_dict() and len(rows) > 100
    assert rows["granted"].between("2023-01-01", "2024-12-31").all() and rows["debt"].isna().any()
    outsider.writes("script.py", script)
    evaluate = "dpbench evaluate rows/synthetic.csv dataset=csv dataset.path=loans.csv dataset.domain=loans.yaml"
    for line in (evaluate, "python script.py"):
        assert "sklearn is not installed: pip install 'dpbench[learn]'" in fails(outsider, line)
    install(outsider.programs / "python", "dpbench[learn]")  # as it was told
    outsider.does(evaluate)
    assert (outsider.folder / "results/quality/synthetic").is_dir()
    assert "own_estimate" in outsider.does("python script.py")


def fails(outsider, line):
    """What a line says that fails; a script of one's own may have a traceback, whose last line counts."""
    words, env = shlex.split(line), outsider.variables
    done = subprocess.run(words, cwd=outsider.folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode
    return done.stderr.splitlines()[-1]


def test_one_claim(outsider):
    """On Adult, where it is at hand; else the message says what to do."""
    shutil.copytree(ROOT / "results" / "dd_ssp" / "exports", outsider.folder / "results" / "dd_ssp" / "exports")
    mirrors = os.environ.get("DPBENCH_DATA_MIRRORS", "")
    assert "dataset=adult" in outsider.does("dpbench show experiment=linreg_adult")
    if not mirrors:
        said = outsider.does("dpbench run experiment=linreg_adult repetitions=1 results=again", code=2)
        assert "or use the data that ship with the project: dataset=adult_synth" in said
        pytest.skip("DPBENCH_DATA_MIRRORS names no folder with Adult")
    outsider.variables["DPBENCH_DATA_MIRRORS"] = mirrors
    outsider.does("dpbench data fetch adult")
    (again,) = (text for text in blocks("check_a_claim", "sh") if "results=again\ndpbench compare" in text)
    _, run, compare = again.strip().splitlines()
    assert "16 of 16 trials are stored in again/linreg_adult" in outsider.does(run)
    said = outsider.does(compare)
    assert "again: 16 trials, made by an installation without a commit (16)" in said
    assert not re.search(r"^adult +adassp", said, re.MULTILINE), "AdaSSP's scores are equal, or but for rounding"
    assert "8 cells are in both" in said and "values missing in the second" not in said
    assert outsider.does("dpbench verify results=again").count("no problem found") == 2
    said = outsider.does(
        "dpbench audit mechanism=[adassp] calibration=tight relation=add_remove results=again --runs 40"
    )
    assert re.search(r"^adassp tight add_remove +10 +10 +10\.000  exact", said, re.MULTILINE)


def test_one_cluster(outsider):
    grid = "experiment=quickstart mechanism=[exact,adassp] epsilon=[1] repetitions=2"
    script = outsider.does(f"dpbench slurm {grid} shards=2 slurm.partition=short results=tasks --print")
    assert script.startswith("#!/bin/bash\n") and "#SBATCH --array=1-2\n#SBATCH" in script
    assert "#SBATCH --partition=short\n" in script and str(outsider.programs / "python") in script
    assert "8 trials planned (limits full), none stored, 8 left" in outsider.does("dpbench status results=tasks")
    if shutil.which("sbatch", path=outsider.variables["PATH"]) is None:
        said = outsider.does(f"dpbench slurm {grid} shards=2 results=tasks", code=2)
        assert "sbatch is not on the PATH" in said
    (array,) = outsider.folder.glob("tasks/quickstart/slurm/*/array.sh")
    for task, left in (("1", 4), ("2", 0)):  # as SLURM would start them
        outsider.does(f"bash {array}", SLURM_ARRAY_TASK_ID=task)
        assert f"{8 - left} done, {left} left" in outsider.does("dpbench status results=tasks")
    for shard in ("1/2", "2/2"):  # as another scheduler would
        assert "4 ran now" in outsider.does(f"dpbench run {grid} results=shards --shard {shard}")
    assert "8 ran now" in outsider.does(f"dpbench run {grid} results=whole")
    for other in ("tasks", "shards"):
        assert "with 24 scores: 24 equal" in outsider.does(f"dpbench compare whole {other} --tolerance 0")
        assert outsider.does(f"dpbench verify results={other}").count("no problem found") == 2
