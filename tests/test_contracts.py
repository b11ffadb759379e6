"""Signatures of plug-ins, held against the protocol of their kind."""

import pytest

from dpbench.contracts import check_signature
from dpbench.errors import UserError


def fine(train, budget, rng, *, design, strength=1.0): ...


def reordered(train, rng, budget): ...


def positional(train, budget, rng, strength): ...


def open_ended(train, budget, rng, **parameters): ...


def no_design(release, *, strength=1.0): ...


@pytest.mark.parametrize(
    ("kind", "function", "message"),
    [
        (
            "mechanism",
            reordered,
            "another order; a mechanism takes (train, budget, rng, *, ...), but this one takes (train, rng",
        ),
        ("mechanism", positional, "'strength' must be keyword-only"),
        ("mechanism", open_ended, "each parameter needs a name"),
        ("model", no_design, "no parameter 'design'"),
        ("model", fine, "no positional parameter 'release'"),
        ("metric", fine, "no positional parameter 'evaluation'"),
        ("dataset", print, "no positional parameter 'config'"),
    ],
)
def test_a_wrong_signature_is_told_with_its_file(kind, function, message):
    with pytest.raises(UserError) as caught:
        check_signature(kind, function, "mechanism.mine")
    assert message in str(caught.value)
    assert function is print or "test_contracts.py, line" in str(caught.value)


def test_a_right_signature_passes():
    check_signature("mechanism", fine, "mechanism.mine")
