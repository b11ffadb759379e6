"""What is recorded of an error."""

import pytest

from dpbench.errors import NoEstimateError, UnconvergedError, UserError
from dpbench.grid.worker import LONGEST, described, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no"), "failed"),
        (MemoryError(), "oom"),
        (NoEstimateError("none"), "no_estimate"),
        (UnconvergedError("apart"), "unconverged"),
        (SystemExit(1), "failed"),
    ],
)
def test_the_status_of_an_error(error, status):
    assert status_of(error) == status


def raised(error):
    try:
        raise error
    except BaseException as found:
        return described(found)


def test_the_type_the_message_and_the_place_are_told_without_folders():
    found = raised(FileNotFoundError("/home/alice/secret/rows.csv is not there"))
    assert found.type == "FileNotFoundError"
    assert found.message.startswith("FileNotFoundError: rows.csv is not there (")
    assert "test_failures.py:" in found.message
    assert "/home" not in found.message + found.traceback


def test_a_message_of_ours_says_all_that_is_to_be_said():
    assert raised(UserError("give another name")).message == "give another name"


def test_a_long_message_is_cut():
    assert len(raised(RuntimeError("x" * 10**6)).message) < LONGEST + 200
