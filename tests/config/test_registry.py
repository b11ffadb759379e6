"""Config files: found by name, those of the user over the project's, and read with the place of what is wrong."""

import pytest

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
