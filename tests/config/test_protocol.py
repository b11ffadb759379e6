"""A line that departs from the protocol of an experiment's file is recorded with what it departs in."""

import pytest

from dpbench.config import choices, compose
from dpbench.config.registry import read_yaml
from dpbench.errors import UserError
from dpbench.grid.plan import one_repetition

LITE = "experiment=arena_lite_regression"


@pytest.mark.parametrize(
    ("settings", "departs"),
    [
        (
            ["results=elsewhere", "name=mine", "mechanism=[exact,adassp]", "model=[linear_statistics]", "metric=[mse]"],
            (),
        ),
        (
            ["epsilon=[0.5]", "sweep.dataset=[abalone]", "repetitions=2", "protocol=arena 9"],
            ("protocol", "epsilon", "repetitions", "sweep.dataset"),
        ),
        (  # not what parameters of AIM follow from the limits
            ["dataset=abalone", "sample.train_rows=100", "limits=smoke", "mechanism=[aim]", "+mechanism.aim.rounds=3"],
            ("dataset", "mechanism.aim.rounds", "sample.train_rows", "limits"),
        ),
    ],
)
def test_departures_are_the_settings_that_the_file_gives_another_value(settings, departs):
    assert compose([LITE, *settings]).departures == departs


def test_an_experiment_that_builds_on_another_has_no_claim_to_its_protocol(tmp_path):
    (tmp_path / "experiment").mkdir()
    lines = ["# @package _global_", "defaults: [/experiment/arena/arena_lite_regression, _self_]", "name: mine"]
    (tmp_path / "experiment" / "mine.yaml").write_text("\n".join([*lines, "epsilon: [5.0]"]) + "\n")
    (departs,) = compose(["experiment=mine"], tmp_path).departures
    assert departs == "the file, which builds on that of the protocol"
    (tmp_path / "experiment" / "mine.yaml").write_text("\n".join([*lines, "protocol: mine 1"]) + "\n")
    assert compose(["experiment=mine"], tmp_path).follows == ["Protocol: mine 1"]


def test_all_experiments_of_the_arena_name_their_protocol_and_no_identity_holds_it():
    named = {name: read_yaml(path).get("protocol") for name, path in choices("experiment").items()}
    assert {name for name, protocol in named.items() if protocol} == {name for name in named if "arena_" in name}
    assert compose(["experiment=quickstart"]).follows == []
    settings = ["experiment=quickstart", "mechanism=[adassp]"]
    with_it = one_repetition(compose([*settings, "protocol=mine"])).trial_ids
    assert with_it == one_repetition(compose(settings)).trial_ids


def test_the_name_of_a_protocol_is_short_text():
    with pytest.raises(UserError, match="longer than 60 characters"):
        compose([LITE, f"protocol={'a' * 61}"])
    with pytest.raises(UserError, match="protocol must be"):
        compose([LITE, "protocol=3"])
