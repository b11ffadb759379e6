import pytest

from dpbench.errors import UserError
from dpbench.files import write_file


def test_a_file_is_written_with_its_folder_and_nothing_else_is_left(tmp_path):
    path = write_file(tmp_path / "new" / "a.md", "ε")
    assert path.read_text() == "ε"
    assert [one.name for one in path.parent.iterdir()] == ["a.md"]


def test_what_stood_there_stays_if_the_new_file_cannot_be_written(tmp_path, monkeypatch):
    path = write_file(tmp_path / "a.md", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(UserError, match="No space left"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.md"]
