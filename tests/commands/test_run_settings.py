"""A run is found again by its name or its folder, with the settings that it was made with."""

import shutil
import sys

import pytest
import yaml

from dpbench.cli import main
from dpbench.grid import seeds

SETTINGS = [
    "sample=smoke",
    "mechanism=[adassp]",
    "repetitions=2",
    "epsilon=[0.5,2]",
    "metric=[r2,xtx_error]",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an ad hoc run."""
    root = tmp_path_factory.mktemp("results")
    assert main(["run", "name=my_run", *SETTINGS, "jobs=1", f"results={root}"]) == 0
    return root / "my_run"


def test_the_composed_configuration_stands_beside_the_plan(folder):
    stored = yaml.safe_load((folder / "experiment.yaml").read_text())
    assert stored["configuration"]["epsilon"] == [0.5, 2]
    assert set(stored["configuration"]["metric"]) == {"r2", "xtx_error"}


@pytest.mark.parametrize("by", ["name", "folder"])
def test_a_run_goes_on_by_its_name_or_folder_alone(folder, capsys, by):
    line = [str(folder)] if by == "folder" else ["name=my_run", f"results={folder.parent}"]
    assert main(["run", *line]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 trials are stored" in out
    assert "0 ran now" in out


def test_the_table_after_a_run_is_of_a_metric_that_it_has(folder, capsys):
    assert main(["run", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "r2" in out
    assert "AdaSSP" in out


def test_figures_and_status_find_it_too(folder, capsys):
    assert main(["status", str(folder)]) == 0
    assert "my_run: 4 trials planned" in capsys.readouterr().out
    assert main(["figures", "name=my_run", f"results={folder.parent}"]) == 0
    assert "my_run/tables/" in capsys.readouterr().out
    assert main(["figures", str(folder)]) == 0


def test_a_table_that_was_named_from_one_folder_is_found_from_another(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "my.csv").write_text("age,pay\n" + "30,1\n40,2\n" * 50)
    (tmp_path / "data" / "my.yaml").write_text("age: {bounds: [0, 100], bins: 4}\npay: {values: [1, 2]}\n")
    monkeypatch.chdir(tmp_path / "data")
    own = ["dataset=csv", "dataset.path=my.csv", "dataset.domain='my.yaml'", "dataset.target=pay"]
    assert main(["run", "name=own", *own, "mechanism=[adassp]", "epsilon=[1]", "repetitions=1", "results=r"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["figures", str(tmp_path / "data" / "r" / "own")]) == 0
    assert "own/tables/" in capsys.readouterr().out


def test_what_all_releases_cost_together_is_of_all_that_are_stored(tmp_path, capsys):
    for line in (["mechanism=[adassp]"], ["mechanism=[ssp]"]):
        given = [*SETTINGS, "repetitions=1", "epsilon=[1]", *line, "jobs=1", "name=mine", f"results={tmp_path}"]
        assert main(["run", *given]) == 0
    assert main(["figures", str(tmp_path / "mine")]) == 0
    assert "all 2 private releases of" in (tmp_path / "mine" / "tables" / "mine_runs.md").read_text()


def test_other_figures_of_it_are_drawn(folder, capsys):
    assert main(["figures", str(folder), "report.figures=[{name: other, metric: r2, title: R2}]"]) == 0
    assert "my_run/figures/other.png" in capsys.readouterr().out


def test_a_folder_with_an_export_alone_is_the_paper_or_experiment_of_its_name(folder, tmp_path, capsys):
    assert main(["figures", str(folder)]) == 0
    for name in ("quickstart", "dd_ssp", "my_run"):
        (tmp_path / name).mkdir()
        shutil.copy(folder / "trials.jsonl.xz", tmp_path / name)
    capsys.readouterr()
    assert main(["export", str(tmp_path / "dd_ssp")]) == 0
    assert "dd_ssp.parquet" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "quickstart")]) == 2
    assert "no trial of quickstart is stored" in capsys.readouterr().err, "those of another grid"
    assert main(["report", str(tmp_path / "my_run")]) == 2
    assert "unknown paper or experiment 'my_run'" in capsys.readouterr().err


def test_other_settings_beside_the_name_are_a_run_of_their_own(folder, capsys):
    assert main(["run", "--dry-run", "name=my_run", f"results={folder.parent}", "repetitions=1"]) == 0
    assert "4 planned" not in capsys.readouterr().out


def test_other_settings_beside_the_folder_are_those_of_the_run_but_for_them(folder, capsys):
    assert main(["run", str(folder), "repetitions=3", "--dry-run"]) == 0
    assert "6 planned, 4 stored" in capsys.readouterr().out
    assert main(["figures", str(folder), "seed=0"]) == 0


def test_a_folder_with_a_name_or_another_folder_is_refused(folder, capsys):
    assert main(["status", str(folder), "name=other"]) == 2
    assert main(["status", str(folder), str(folder.parent)]) == 2
    assert "give the folder of one run" in capsys.readouterr().err


def test_a_record_that_cannot_be_read_is_one_message(tmp_path, capsys):
    (tmp_path / "my_run").mkdir()
    (tmp_path / "my_run" / "experiment.yaml").write_text("[")
    assert main(["figures", str(tmp_path / "my_run")]) == 2
    assert "give the settings of the run again" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["figures", "report", "status"])
def test_a_folder_in_which_nothing_is_stored_is_one_message(command, tmp_path, capsys):
    assert main([command, str(tmp_path)]) == 2
    assert f"{tmp_path} holds neither a run nor an export of trials" in capsys.readouterr().err


STRANGE = """
from pathlib import Path

Path(__file__).with_name("ran").touch()


def draw(*_, **__):
    raise SystemExit
"""


@pytest.fixture
def strangers(folder, tmp_path, monkeypatch):
    """The folder of a run by somebody else, whose record names a folder with a kind of figure, and a scheduler."""
    root = tmp_path / "theirs"
    shutil.copytree(folder.parent, root)
    (root / "own" / "figure").mkdir(parents=True)
    (root / "own" / "stranger_code.py").write_text(STRANGE)
    (root / "own" / "figure" / "scatter.yaml").write_text("_target_: stranger_code.draw\n")
    path = root / "my_run" / "experiment.yaml"
    record = yaml.safe_load(path.read_text())
    record["settings"] += [
        "report.figures=[{kind: scatter, name: x, metric: r2, title: x}]",
        "executor=tcp://10.0.0.1:1",
    ]
    record["config_dir"] = str(root / "own")
    path.write_text(yaml.safe_dump(record))
    yield root / "my_run"
    sys.modules.pop("stranger_code", None)


@pytest.mark.parametrize("command", ["figures", "report", "run", "slurm", "export"])
def test_the_record_of_a_stranger_is_shown_and_not_obeyed(strangers, capsys, command):
    """It could name code to import, a scheduler to work for, or lines of a script."""
    for line in ([str(strangers)], ["name=my_run", f"results={strangers.parent}"]):
        assert main([command, *line]) == 2
        said = capsys.readouterr().err
        assert "is not signed with your secret salt" in said
        assert "'mechanism=[adassp]' repetitions=2" in said and "executor=tcp" in said
        assert f"--config-dir {strangers.parent}/own" in said
    assert not (strangers.parent / "own" / "ran").exists()


def test_what_is_stored_of_a_stranger_is_counted_and_drawn_by_settings_that_are_given_again(strangers, capsys):
    assert main(["status", str(strangers)]) == 0
    assert "4 trials planned" in capsys.readouterr().out
    assert main(["figures", *SETTINGS, "name=my_run", f"results={strangers.parent}"]) == 0


def test_a_record_is_obeyed_by_whoever_has_the_salt_it_was_signed_with(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "of another user"))
    assert main(["figures", str(folder)]) == 2
    assert "Give those that you trust" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["figures", str(folder)]) == 0


def test_a_run_goes_on_where_no_salt_can_be_had(tmp_path, monkeypatch, capsys):
    """The rows are public: nothing but the record needs it, which then is not obeyed later."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(seeds.SALT, str(tmp_path / "file" / "salt"))
    line = [*SETTINGS, "repetitions=1", "epsilon=[1]", "jobs=1", "name=mine", f"results={tmp_path}"]
    assert main(["run", *line]) == 0
    assert "signed" not in yaml.safe_load((tmp_path / "mine" / "experiment.yaml").read_text())
    assert main(["figures", *line]) == 0
