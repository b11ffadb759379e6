"""What the README and the manual show works from outside of the repository: its files are written, its commands run."""

import re
import shlex

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.grid.store import Store
from dpbench.resources import PACKAGE
from dpbench.targets import use_folder

ROOT = PACKAGE.parent
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("running", "comparing", "python", "plugins"))]
MANUAL = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", MANUAL, re.MULTILINE | re.DOTALL)
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
TINY = ["sample=smoke", "limits=smoke", "repetitions=1", "epsilon=[1]", "jobs=1"]


def files():
    """The files of the README: each begins after a line that names it."""
    for language, text in BLOCKS:
        if language != "sh":
            yield from re.findall(r"^# ([\w/]+\.\w+)\n(.*?)(?=^# [\w/]+\.\w+\n|\Z)", text, re.MULTILINE | re.DOTALL)


def commands(*words):
    """The README's commands with all of these words, as `main` takes them."""
    found = [shlex.split(line, comments=True)[1:] for line in COMMANDS if all(word in line for word in words)]
    assert found, words
    return found


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder with the README's files and a table that fits their declaration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    for name, text in files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    rng = np.random.default_rng(0)
    age, grade, region = (
        rng.integers(16, 100, 300),
        rng.integers(1, 17, 300),
        rng.choice(["north", "south", "west"], 300),
    )
    income = np.clip(10 * grade + rng.normal(0, 5, 300), 0, 200).round(1)
    rows = zip(age, grade, region, income, strict=True)
    (tmp_path / "my.csv").write_text("\n".join(["age,grade,region,income", *(",".join(map(str, row)) for row in rows)]))
    yield tmp_path
    use_folder(None)


def trials(folder):
    return [trial.to_dict() for trial in Store(folder.parent, folder.name).all_trials()]


def test_a_table_of_ones_own(outside, capsys):
    for line in commands("dataset.path=my.csv"):
        assert main([*line, *(TINY if line[0] == "run" else [])]) == 0
    done = trials(outside / "results" / "grid")
    assert {trial["key"]["release"]["mechanism"]["name"] for trial in done} == {"exact", "adassp", "aim"}
    assert {trial["status"] for trial in done} == {"done"}
    assert {"synthetic.csv", "statement.md", "ledger.json"} <= {path.name for path in (outside / "folder").iterdir()}


def test_the_python_interface(outside, capsys):
    (script,) = (text for language, text in BLOCKS if language == "python" and "import dpbench\n" in text)
    names = {}
    exec(script, names)
    assert "<Release of marginals, rows, distribution over 4 attributes: epsilon=1" in capsys.readouterr().out
    assert set(names["scores"]["mechanism"]) == {"exact", "adassp"} and set(names["scores"]["status"]) == {"done"}
    assert (outside / "quickstart.png").stat().st_size > 10_000


def test_parts_of_ones_own(outside, capsys):
    checks, (run,), (figures,) = (commands("--config-dir own", command) for command in ("check", "run", "figures"))
    assert [main(check) for check in checks] == [0, 0]
    said, names = capsys.readouterr().out, ("noisy_moments", "ridge", "survey", "scatter", "seconds")
    assert "wrong" not in said and all(f"{name}\n  ok" in said for name in names)
    assert main([*run, *TINY]) == 0
    assert main([*figures, *TINY]) == 0
    done = trials(outside / "results" / "study")
    scores = {score["name"]: score["value"] for trial in done for score in trial["scores"]}
    assert set(scores) == {"mse", "absolute_error"}
    assert {trial["key"]["model"]["name"] for trial in done} == {"linear_statistics", "ridge"}
    drawn = (outside / "results" / "study" / "figures" / "time.csv").read_text()
    assert "noisy_moments" in drawn and (outside / "results" / "study" / "figures" / "error.png").is_file()
    assert "moments" in (outside / "results" / "study" / "tables" / "fastest.md").read_text()


@pytest.mark.parametrize("line", commands("dpbench run experiment=linreg"), ids=" ".join)
def test_a_line_of_the_main_job_makes_a_plan(tmp_path, capsys, line):
    assert main([*line, "--dry-run", f"results={tmp_path}"]) == 0
    assert re.search(r"trials: +[1-9]", capsys.readouterr().out)


@pytest.mark.parametrize(
    "page",
    [
        "tour",
        "your_method",
        "check_a_claim",
        "submit",
        *(f"concepts/{name}" for name in ("ledger", "relation", "calibrations")),
    ],
)
def test_the_commands_of_a_tutorial_are_accepted(outside, capsys, page):
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line)[1:] for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    assert {line[0] for line in lines} <= {
        "check",
        "run",
        "show",
        "figures",
        "report",
        "data",
        "compare",
        "verify",
        "audit",
        "submit",
        "list",
        "recommend",
    }
    for line in lines:
        if line[0] in ("check", "show"):
            assert main(line) == 0, line
        if line[0] == "run":
            assert main([*line, "--dry-run"]) == 0, line
    assert "wrong" not in capsys.readouterr().out


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", MANUAL, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800
