"""What `dpbench list`, `show`, `data` and `--help` say, and how soon."""

import json
import subprocess
import sys

import pytest

from dpbench.cli import main
from dpbench.config import choices, compose


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("datasets", ["adult", "adult_synth", "csv"]),
        ("mechanisms", ["adassp", "aim", "exact", "ssp"]),
        ("models", ["linear_marginals", "linear_rows", "linear_statistics"]),
        ("experiments", ["linreg_adult", "linreg_adult_all_attributes", "quickstart"]),
    ],
)
def test_list_names_the_group(capsys, group, names):
    assert main(["list", group]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert set(names) <= set(listed)


@pytest.mark.parametrize("mechanism", sorted(choices("mechanism")))
def test_show_gives_source_privacy_and_parameters(capsys, mechanism):
    assert main(["show", f"mechanism={mechanism}"]) == 0
    out = capsys.readouterr().out
    for part in ("**Source**", "**Privacy**", "**Shapes**", "offers "):
        assert part in out, part


def test_show_names_a_parameter_as_it_is_set(capsys):
    main(["show", "mechanism=aim"])
    assert "mechanism.aim.max_model_mb=80" in capsys.readouterr().out


@pytest.mark.parametrize("experiment", sorted(choices("experiment")))
@pytest.mark.parametrize("limits", sorted(choices("limits")))
def test_every_experiment_composes_under_every_limit(experiment, limits):
    made = compose([f"experiment={experiment}", f"limits={limits}"])
    assert made.name == experiment
    assert made.limits.name == limits


def test_starting_up_imports_no_heavy_library():
    code = "import sys; from dpbench.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('jax', 'mbi', 'torch', 'matplotlib', 'pandas', 'hydra') if m in sys.modules])"
    for line in (["--help"], ["list", "mechanisms"]):
        done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", line


def test_a_card_states_how_the_synthetic_copy_was_made(capsys):
    assert main(["data", "card", "adult_synth"]) == 0
    out = capsys.readouterr().out
    for word in ("AIM", "epsilon", "delta", "seed", "commit"):
        assert word in out


def test_check_holds_a_table_against_its_card(tmp_path, capsys):
    (tmp_path / "my.csv").write_text("a,b\n1,0\n0,1\n")
    (tmp_path / "sizes.json").write_text(json.dumps({"a": 2, "b": 2}))
    settings = [f"dataset.path={tmp_path}/my.csv", f"dataset.domain={tmp_path}/sizes.json", "dataset.target=a"]
    assert main(["data", "check", *settings]) == 0
    assert "2 rows x 2 attributes fit" in capsys.readouterr().out
    (tmp_path / "my.csv").write_text("a,b\n1,0\n0,2\n")
    assert main(["data", "check", *settings]) == 2


def test_an_absent_download_names_file_places_command_and_alternative(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("DPBENCH_DATA_MIRRORS", raising=False)
    monkeypatch.setenv("DPBENCH_CACHE", str(tmp_path))
    assert main(["data", "fetch", "adult", "--offline"]) == 2
    error = capsys.readouterr().err
    for part in (
        "adult.data",
        str(tmp_path),
        "DPBENCH_DATA_MIRRORS",
        "dpbench data fetch adult",
        "dataset=adult_synth",
    ):
        assert part in error


def test_output_that_nobody_reads_ends_without_a_traceback():
    line = f"{sys.executable} -u -m dpbench list datasets | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")  # as for any program that is cut off
