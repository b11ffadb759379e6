"""Config files: found by name, those of the user over the project's, and read with the place of what is wrong."""

import re

import pytest

from dpbench.cli import main
from dpbench.config.registry import LARGEST, check_own_files, choices, declared, experiments_of, folder_of, read_yaml
from dpbench.errors import UserError


def test_a_file_of_ones_own_comes_over_the_projects(tmp_path):
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "mechanism" / "ssp.yaml").write_text("ssp: {_target_: mine.ssp}\n")
    assert choices("mechanism", tmp_path)["ssp"] == tmp_path / "mechanism" / "ssp.yaml"
    assert declared("mechanism", tmp_path)["ssp"] == {"_target_": "mine.ssp"}
    assert declared("mechanism")["ssp"]["_target_"] == "dpbench.mechanisms.ssp.ssp"


def test_experiments_stand_in_folders_and_bases_are_not_listed(tmp_path):
    for name in ("one", "paper/two", "paper/_base", "_base"):
        (tmp_path / "experiment" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "experiment" / f"{name}.yaml").write_text("# @package _global_\n")
    found = choices("experiment", tmp_path)
    assert {"one", "two", "linreg_adult"} <= set(found) and not [name for name in found if name[0] == "_"]
    assert [folder_of(found[name]) for name in ("one", "two", "linreg_adult")] == ["", "paper/", "dd_ssp/"]
    assert experiments_of("paper", tmp_path) == ["two"] and experiments_of("one", tmp_path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", r"one\.yaml, line 2, column 2"),
        ("- 1", "must hold a mapping"),
        ("", "must hold a mapping"),
        ("a: \udcff", "one.yaml"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, text, message):
    (tmp_path / "one.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=message):
        read_yaml(tmp_path / "one.yaml")


@pytest.mark.parametrize("text", ["a: " + "x" * LARGEST, "a: " + "[" * 40 + "]" * 40, "a: &a [*a]"])
def test_a_file_that_is_too_large_is_refused_before_it_is_built(tmp_path, text):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "own.yaml").write_text(text)
    with pytest.raises(UserError, match="too large for a configuration"):
        check_own_files(tmp_path)


def test_a_folder_of_configs_that_cannot_be_looked_through_is_one_message(tmp_path, monkeypatch):
    """As /proc, where files go while one looks."""

    def gone(*_):
        raise OSError(22, "Invalid argument", str(tmp_path / "1"))

    monkeypatch.setattr(type(tmp_path), "glob", gone)
    with pytest.raises(UserError, match=r"--config-dir .* cannot be read: .*/1: Invalid argument"):
        check_own_files(tmp_path)


@pytest.mark.parametrize("line", ["check mechanism=copied", "run mechanism=[copied] --dry-run", "list mechanisms"])
def test_a_copy_that_kept_the_key_of_the_old_one_is_refused(tmp_path, capsys, line):
    """It would be checked, and run, as the old one."""
    copied = tmp_path / "mechanism" / "copied.yaml"
    copied.parent.mkdir()
    copied.write_text(choices("mechanism")["adassp"].read_text())
    code = main([*line.split(), "--config-dir", str(tmp_path)])
    said = "".join(capsys.readouterr())
    assert code and f"{copied} declares adassp: and would run as that: rename the key to copied:" in said
    copied.write_text(copied.read_text().replace("adassp:", "copied:", 1))
    assert main(["run", "mechanism=[copied]", "--dry-run", "--config-dir", str(tmp_path)]) == 0


@pytest.mark.parametrize("given", ["dataset=copied", "experiment=copied"])
def test_a_copy_that_kept_the_name_of_the_old_one_is_refused(tmp_path, capsys, given):
    """Its results would be taken for those of the old one."""
    group, old = given.partition("=")[0], {"dataset": "adult_synth", "experiment": "quickstart"}
    copied = tmp_path / group / "copied.yaml"
    copied.parent.mkdir()
    copied.write_text(choices(group)[old[group]].read_text())
    line = ["run", given, "mechanism=[ssp]", "--dry-run", "--config-dir", str(tmp_path)]
    assert main(line) == 2
    assert f"{copied} has the name of another {group}, name: {old[group]}, and would run" in capsys.readouterr().err
    copied.write_text(re.sub("^name: .*", "name: copied", copied.read_text(), flags=re.MULTILINE))
    assert main(line) == 0
