"""Messages: the nearest name first, never longer than a terminal can show."""

import pytest

from dpbench.errors import (
    CHARACTERS,
    LINES,
    NAMES,
    UserError,
    bounded,
    check_known,
    check_part,
    check_positive,
    shown,
    unknown,
)


def test_the_nearest_name_comes_first():
    said = str(unknown("mechanism", "adasp", ["ssp", "aim", "adassp"]))
    assert said == "unknown mechanism 'adasp'; did you mean 'adassp'? Known: adassp, aim, ssp"
    assert str(unknown("mechanism", "x", [])) == "unknown mechanism 'x'; known: none"
    assert str(unknown("column", "x", ["b", "a", "b"])) == "unknown column 'x'; known: a, b"


def test_many_names_are_cut():
    said = str(unknown("name", "n7", [f"n{k}" for k in range(1000)]))
    assert "did you mean 'n7'" in said and said.count(", ") == NAMES and said.endswith(", ...")


@pytest.mark.parametrize("value", ["x" * 10_000, 10**5000, ["x" * 1000] * 1000, {"a" * 500: "b" * 500}], ids=range(4))
def test_a_value_is_shown_in_a_line(value):
    assert len(shown(value)) < 1200 and "\n" not in shown(value)


def test_a_message_is_cut_to_lines_and_characters():
    assert bounded("short") == "short"
    assert bounded("a\n" * 100).splitlines()[LINES:] == ["... (82 more lines)"]
    assert len(bounded("a" * 10_000)) <= CHARACTERS


def test_a_check_passes_what_is_allowed_and_names_the_rest():
    check_known("engine", "native", ("native", "mbi"))
    with pytest.raises(UserError, match=r"unknown engine 'nativ'; did you mean 'native'\? Known: native, mbi"):
        check_known("engine", "nativ", {"native": 1, "mbi": 2})
    with pytest.raises(UserError, match=r"unknown engine '\['native'\]'|unknown engine \"\['native'\]\""):
        check_known("engine", ["native"], {"native": 1})
    check_part("level", 0.5)
    check_positive("svr", C=1.0, tube=0.1)
    for value in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(UserError, match="level must lie between 0 and 1, both excluded, not"):
            check_part("level", value)
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(UserError, match="svr: tube must be greater than 0, not"):
            check_positive("svr", C=1.0, tube=value)
