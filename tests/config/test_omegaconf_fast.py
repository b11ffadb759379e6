"""What is merged on plain data is what OmegaConf makes of it, and whole compositions are those of Hydra alone."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from dpbench.config import compose
from dpbench.config.hydra_merge import _by_hydra, _plain, merge
from dpbench.config.omegaconf_fast import NotPlain, is_plain, over, resolved, with_setting

TEXTS = [
    "",
    "x",
    "???",
    "${a}",
    "${a.b}",
    "is ${b}, ${a.b}",
    "${oc.select:b.a,[1]}",
    "${oc.select:b.a,${a.b}}",
    "${oc.select:z, ${a} }",
    "$",
    "\\\\${a}",
    "${.a}",
]
VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1e-5]) | st.sampled_from(TEXTS)
NODES = st.recursive(VALUES, lambda one: st.lists(one, max_size=2) | st.dictionaries(st.sampled_from("abc"), one))
CONFIGS = st.dictionaries(st.sampled_from("abc"), NODES)


@given(CONFIGS, CONFIGS)
@settings(max_examples=100, derandomize=True)
def test_one_mapping_over_another_is_omegaconfs_merge(below, above):
    try:
        found = over(below, above)
    except NotPlain:
        return
    try:
        wanted = OmegaConf.to_container(OmegaConf.merge(below, above))
    except TypeError:  # a list over an interpolation that names a mapping
        assert "${" in str(below)
        return
    assert found == wanted and list(found) == list(wanted)


@given(CONFIGS)
@settings(max_examples=100, derandomize=True)
def test_interpolations_name_what_they_name_to_omegaconf(config):
    try:
        found = resolved(config)
    except NotPlain:
        return
    assert repr(found) == repr(OmegaConf.to_container(OmegaConf.create(config), resolve=True))


@given(CONFIGS, st.sampled_from(["a", "b.a", "a.b.c", "a.0"]), NODES, st.booleans())
@settings(max_examples=100, derandomize=True)
def test_a_setting_is_omegaconfs_update(config, names, value, add):
    try:
        found = with_setting(config, names, value, add)
    except NotPlain:
        return
    wanted = OmegaConf.create(config)
    OmegaConf.set_struct(wanted, True)
    OmegaConf.update(wanted, names, value, force_add=add)
    assert found == OmegaConf.to_container(wanted)


def test_plain_data_are_those_that_are_read_without_omegaconf():
    assert is_plain({"a": [1, None, {"b": "${a.b} and ${c}"}], "d": "${oc.select:a.b,[0.2,1]}"})
    for odd in ({1: 2}, ["${"], "\\\\${a}", "${oc.env:HOME}", "${.a}", b"x"):
        assert not is_plain(odd), odd


@pytest.mark.parametrize(
    "overrides",
    [
        [
            "experiment=dd_ssp/linreg_adult",
            "as=authors",
            "epsilon=[0.5]",
            "++mechanism.aim.rounds=3",
            "~report.figures",
        ],
        ["dataset=abalone", "mechanism=[aim,exact]", "+sweep={seed:[0,1]}", "title='${name} of ${seed}'", "mu=null"],
        ["experiment=arena/arena_lite_queries", "+design.exact=true", "slurm={mem:8G}", "hydra.verbose=true"],
    ],
)
def test_a_composition_is_hydras(overrides):
    assert repr(merge("config", overrides, None)) == repr(_plain(_by_hydra("config", overrides, None)))


def test_an_own_file_that_is_written_anew_is_read_anew(tmp_path: Path):
    """Even one of the same size, as old as the one before."""
    file = tmp_path / "experiment" / "mine.yaml"
    file.parent.mkdir()
    for seed in (1, 2, 1):
        file.write_text(f"# @package _global_\ndefaults: [/experiment/quickstart, _self_]\nname: mine\nseed: {seed}\n")
        os.utime(file, (1e9, 1e9))
        assert compose(["experiment=mine"], tmp_path).seed == seed
