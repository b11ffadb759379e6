"""Mechanisms, models and metrics of a configuration: each has parameters that its function takes."""

import pytest

from dpbench.config import part_of
from dpbench.config.parts import parts_of
from dpbench.errors import UserError

TARGET = "dpbench.mechanisms.ssp.ssp"


def test_a_part_of_the_registry_has_its_default_parameters():
    part = part_of("mechanism", "binagg")
    assert part.offers == ("bins",) and part.private and part.parameters["ratio"] == [1, 3, 3, 3]
    with pytest.raises(UserError, match="unknown mechanism 'binag'; did you mean 'binagg'"):
        part_of("mechanism", "binag")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"ssp": {"_target_": TARGET, "calibratio": "tight"}}, "unknown parameter of mechanism.ssp 'calibratio'"),
        ({"ssp": {"_target_": TARGET, "intervals": "yes"}}, r"mechanism\.ssp\.intervals must be bool"),
        ({"ssp": {"_target_": TARGET, "design": {}}}, "unknown parameter of mechanism.ssp 'design'"),
        ({"ssp": {"_target_": TARGET, "_offers_": ["cake"]}}, r"unknown mechanism\.ssp\._offers_ 'cake'"),
        ({"ssp": {"_target_": TARGET, "_offer_": []}}, "did you mean '_offers_'"),
        ({"dpgan": {"_target_": "dpbench.mechanisms.snsynth.snsynth"}}, "which has no default: set mechanism.dpgan"),
        ({}, "name at least one mechanism, such as mechanism="),
        ([], "name at least one mechanism, such as mechanism="),
        (5, "mechanism must name configs"),
        ({"ssp": 5}, "must be a mapping of its parameters"),
    ],
)
def test_what_a_function_does_not_take_is_refused(nodes, message):
    with pytest.raises(UserError, match=message):
        parts_of("mechanism", {"mechanism": nodes})
