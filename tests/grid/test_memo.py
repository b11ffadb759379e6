"""What is kept from one process to the next: additions of several, and nothing that a file may hold is an error."""

import pytest

from dpbench.errors import UserError
from dpbench.grid import code
from dpbench.grid.code import Memo


def test_additions_of_several_are_kept_and_the_last_ones_only(tmp_path, monkeypatch):
    one, other = Memo(tmp_path / "memo.json"), Memo(tmp_path / "memo.json")
    one.add("a", [1])
    one.keep()
    other.add("b", [2])
    assert (other.get("a"), other.get("b")) == (None, [2])
    other.keep()
    assert (Memo(tmp_path / "memo.json").get("a"), other.get("a")) == ([1], [1])
    monkeypatch.setattr(code, "MOST", 1)
    one.add("c", [3])
    one.keep()
    assert [Memo(tmp_path / "memo.json").get(key) for key in "abc"] == [None, None, [3]]


@pytest.mark.parametrize("content", ["", "[]", '{"a": ', "[" * 100_000, "\xff"])
def test_a_file_of_something_else_holds_nothing(tmp_path, content):
    (tmp_path / "memo.json").write_text(content, encoding="latin1")
    assert Memo(tmp_path / "memo.json").get("a") is None


def test_where_nothing_can_be_written_keep_says_so_and_nothing_new_is_not_written(tmp_path):
    (tmp_path / "file").write_text("")
    kept = Memo(tmp_path / "file" / "memo.json")
    kept.keep()
    kept.add("a", 1)
    with pytest.raises(UserError):
        kept.keep()


def test_the_digest_of_a_module_is_that_of_its_text_whatever_was_kept_of_others(tmp_path, monkeypatch):
    """Read anew, from what is kept and from a damaged file alike; it stands where nobody else may write."""
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))

    def digest():
        code._KNOWN.clear()
        code._read.cache_clear()
        code._texts.cache_clear()
        return code.code_of("dpbench.mechanisms.ssp.ssp")

    first, kept = digest(), tmp_path / "state" / "code.json"
    assert kept.parent.stat().st_mode & 0o077 == 0
    written = kept.stat().st_mtime_ns
    monkeypatch.setattr(code, "_tree", None)  # nothing is parsed
    assert digest() == first and kept.stat().st_mtime_ns == written
    monkeypatch.undo()
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    kept.write_text('{"a": 1}')
    assert digest() == first
