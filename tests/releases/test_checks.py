"""Arrays, plain data and lists that a plug-in may hand over."""

import numpy as np
import pytest

from dpbench.errors import ContractError
from dpbench.releases.checks import check_array, check_plain, kind_of, listed


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0], "must be a numpy array of numbers, not list"),
        (np.array(["a", "b"]), "must be a numpy array of numbers, not numpy.ndarray"),
        (np.ma.array([1.0, 2.0]), "not numpy.ma.MaskedArray"),
        (np.zeros(3), r"must have the shape \(2,\), not \(3,\)"),
        (np.array([0.0, np.nan]), "must be finite"),
    ],
)
def test_what_is_no_array_of_the_shape(value, message):
    with pytest.raises(ContractError, match=message):
        check_array("theta", value, (2,))


def test_an_array_may_be_infinite_where_that_is_allowed():
    check_array("theta", np.array([0.0, np.inf]), (2,), finite=False)
    check_array("theta", np.array([0, 1]), (2,))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": [np.zeros(2)]}}, "numpy.ndarray"),
        ({1: 2}, "the key 1"),
        (float("inf"), "float inf"),
        (2**63, "int"),
        ({"a": "x" * 2**18}, "must have at most"),
    ],
)
def test_what_is_not_plain(value, message):
    with pytest.raises(ContractError, match=message):
        check_plain("notes", value)


def test_lists_that_hold_themselves_end():
    loop: list = []
    loop.append(loop)
    with pytest.raises(ContractError, match="more than 20 levels"):
        check_plain("notes", loop)


def test_a_tuple_of_the_length_is_asked_for():
    assert listed("pair", (1, 2), 2) == (1, 2)
    with pytest.raises(ContractError, match="pair must be a tuple of 2, not str"):
        listed("pair", "ab", 2)
    assert (kind_of(None), kind_of(1.0), kind_of(np.float32(1))) == ("None", "float", "numpy.float32")
