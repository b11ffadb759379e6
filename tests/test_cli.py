"""The command line itself: it starts at once, and ends without a traceback."""

import re
import subprocess
import sys

import pytest

from dpbench.cli import main


def test_starting_up_imports_no_heavy_library():
    code = "import sys; from dpbench.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('jax', 'mbi', 'torch', 'matplotlib', 'pandas', 'hydra') if m in sys.modules])"
    for line in (["--help"], ["list", "mechanisms"]):
        done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", line


def test_closed_output_ends_without_a_traceback():
    line = f"{sys.executable} -u -m dpbench list datasets | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")  # as for any program that is cut off


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["run", "quickstart"], "quickstart: no such folder (settings look like name=value); did you mean experiment="),
        (["show", "aim"], "aim: no setting (settings look like name=value); did you mean mechanism=aim?"),
        (["figures", "dd_ssp"], "did you mean paper=dd_ssp?"),
        (["run", "linreg_adlt"], "did you mean experiment=linreg_adult?"),
        (["run", "experiment=quickstart", "epsilon=[0.1,", "1]", "jobs=1"], "write epsilon=[0.1,1], without any"),
        (["run", "sweep={seed:", "[1,", "2]}"], "write sweep={seed:[1,2]}, without any"),
        (["run", "--fast"], "unknown argument '--fast'; settings look like name=value (see dpbench run --help)"),
        (["compare", "A", "B", "paper=dd_ssp"], "unknown argument 'paper=dd_ssp'; this command takes no settings"),
        (["list", "cakes"], "invalid choice: 'cakes'"),
        ([], "Run what is missing of a grid"),
    ],
)
def test_a_line_that_cannot_be_read_ends_with_2_and_says_why(capsys, line, said):
    with pytest.raises(SystemExit) as ended:
        main(line)
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "figures", "report", "status", "export"])
def test_a_folder_that_is_not_there_is_told_without_the_usage(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "results/absent"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dpbench: results/absent: no such folder (settings look like name=value)\n"


def test_help_of_a_command_gives_an_example_that_it_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")  # one line per option
    mechanisms = tmp_path / "own" / "mechanism"
    mechanisms.mkdir(parents=True)
    (mechanisms / "mine.yaml").write_text("mine:\n  _target_: dpbench.mechanisms.ssp.ssp\n  _offers_: [statistics]\n")
    for command in ("show", "check", "run"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        (example,) = re.findall(r"  setting=value .* such as (.*)", capsys.readouterr().out)
        assert main([command, *example.split(), *["--dry-run"][: command == "run"]]) == 0, example


def test_a_folder_of_ones_own_that_is_not_there_is_told(tmp_path, capsys):
    assert main(["list", "datasets", "--config-dir", str(tmp_path / "absent")]) == 2
    assert "absent: no such folder" in capsys.readouterr().err
