"""Checks of single values: what is allowed passes, and a message says what is not."""

import math

import pytest

from dpbench.config.values import DEEPEST, check_values, checked_name, checked_type, integer, listed, number
from dpbench.errors import UserError


def test_numbers_keep_their_bounds():
    assert number("x", 2, above=0) == 2.0 and number("x", 3, above=0, most=3) == 3.0
    for value in (0, -1, 4, True, "1", None, math.nan):
        with pytest.raises(UserError, match=r"x must be .*greater than 0 and at most 3, not"):
            number("x", value, above=0, most=3)
    with pytest.raises(UserError, match="between 0 and 1, both excluded"):
        number("delta", 1, above=0, below=1)


def test_whole_numbers_keep_their_bounds():
    assert integer("jobs", 4, 1, 8) == 4
    for value in (0, 9, 1.0, True, "1"):
        with pytest.raises(UserError, match="jobs must be a whole number of at least 1 and at most 8"):
            integer("jobs", value, 1, 8)


def test_a_value_is_the_list_of_itself():
    assert listed(1) == [1] and listed((1, 2)) == [1, 2] and listed("ab") == ["ab"]


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 101, True, "a b"])
def test_a_name_is_that_of_a_folder(name):
    with pytest.raises(UserError, match="it names a folder"):
        checked_name(name)
    assert checked_name("table_1.b-2") == "table_1.b-2"


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        ("int", [1], [1.0, True, "1", None]),
        ("float | None", [1, 1.5, None], ["1", [1]]),
        ("bool", [True], [1, "true"]),
        ("Sequence[float]", [[1.0]], [1.0]),
        ("Mapping[str, int | str]", [{}], [[]]),
        ("np.ndarray", [5, "left for the function to check"], []),
    ],
)
def test_a_type_is_what_its_annotation_names(annotation, good, bad):
    for value in good:
        checked_type("where", value, annotation)
    for value in bad:
        with pytest.raises(UserError, match="where must be"):
            checked_type("where", value, annotation)


def test_a_configuration_is_bounded():
    deep = {}
    for _ in range(DEEPEST + 1):
        deep = {"a": deep}
    for config, message in (
        (deep, "too large"),
        ({"a": [0.0, math.inf]}, r"a\.1 must be a finite number"),
        ({"a": {"b": 2**63}}, r"a\.b must be less than 2\^63"),
        ({"a": "\0"}, "without NUL"),
        ({"a": object()}, "a text, a number, a list or a mapping"),
    ):
        with pytest.raises(UserError, match=message):
            check_values(config)
    check_values({"a": [1, 2.5, "x", None, True, {"b": []}]})
