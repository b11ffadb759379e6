"""What the parts of the project compute is what is stored of their last version, and every version differs."""

from dataclasses import replace

import pytest

from dpbench.config import choices
from dpbench.config.registry import PARTS
from dpbench.grid import golden, outputs
from dpbench.grid.code import code_of
from dpbench.privacy.noise import gaussian

AGAIN = "run `make golden`, which stores its outputs, adds a version if they changed, and commit what it wrote"
NAMES = sorted(golden.stored())


@pytest.fixture(scope="module")
def parts():
    return {f"{part.group}/{part.name}": part for part in outputs.tiny_parts(NAMES)}


LONG = (  # configs of a function that another config runs, and bootstraps
    *("mechanism/gem", "mechanism/aim_mixture", "mechanism/pate_laplace", "mechanism/dpgd"),
    *("mechanism/gem_small_search", "model/bayesian_statistics_taylor"),
    *(name for name in NAMES if "bootstrap" in name),
)


def marked(name):
    return pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_it_computes_what_is_stored_of_its_version(parts, name):
    """An edit that changes what a part computes needs a new version: else old and new results would be one cell."""
    where = golden.stored()[name].changed(golden.of_today(parts[name], golden.stored()[name]))
    assert not where, f"{name} computes something else, {where}: {AGAIN}"


def test_every_version_computes_something_else_than_the_one_before():
    """A version that changes nothing would make results of another version of all that is stored."""
    for name, one in golden.stored().items():
        for before, after in zip(one.versions, one.versions[1:], strict=False):
            assert golden.difference(before, after, golden.TOLERANCE), f"{name}: two versions compute the same"


def test_every_part_has_golden_outputs():
    every = {f"{group}/{name}" for group in PARTS for name in choices(group)}
    external = {f"mechanism/{name}" for name in ("dpctgan", "dpgan", "patectgan", "pategan", "snsynth_aim")}
    assert every - external == set(NAMES), AGAIN


def test_what_was_compared_is_the_code_of_today():
    """Else every first run would compare all parts anew."""
    stored = golden.compared_code()
    assert {target: code_of(target) for target in stored} == dict(stored), AGAIN
    assert set(stored) == {one.target for one in golden.stored().values()}, AGAIN


def test_a_factor_of_one_and_a_ten_millionth_in_the_noise_is_seen(parts, monkeypatch):
    def louder(rng, ledger, values, **given):
        return values + 1.0000001 * (gaussian(rng, ledger, values, **given) - values)

    monkeypatch.setattr("dpbench.mechanisms.ssp.gaussian", louder)
    stored = golden.stored()
    for name, differs in (("mechanism/ssp", True), ("mechanism/mst", False)):
        assert bool(stored[name].changed(golden.of_today(parts[name], stored[name]))) == differs


def test_texts_for_people_are_no_output():
    data = {"label": "X'X", "nonprivate_inputs": ["bounds"], "sd": 1.0}
    other = {"label": "X'X of the rows", "nonprivate_inputs": ["the bounds"], "sd": 1.0}
    assert dict(outputs._flat("", data)) == dict(outputs._flat("", other)) == {"sd": 1.0}


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.0 + 1e-7, False),
        ([1.0, 1e-20], [1.0, 2e-20], True),  # rounding of a number far below the largest
        ([1.0, 1e-3], [1.0, 1.0001e-3], False),
        ({"a": 1.0}, {"a": 1.0, "b": 2.0}, False),
        ("inf", 1.0, False),
    ],
)
def test_numbers_agree_up_to_the_arithmetic_of_another_processor(one, two, same):
    assert (golden.difference(one, two, 1e-9) == "") == same


def test_where_rounding_grows_numbers_agree_up_to_the_largest_of_their_array():
    """A logit of a network that is near 0 is as uncertain as the others are."""
    assert golden.difference([1.0, 9e-4], [1.0, 7e-4], 1e-2) == ""
    assert golden.difference([1.0, 9e-4], [1.0, 2e-2], 1e-2) != ""


def test_draws_of_a_chain_are_compared_on_the_same_processor_alone():
    one, two = {"case": {"draws": [1.0], "covariance": [1.0]}}, {"case": {"draws": [-1.0], "covariance": [1.2]}}
    assert golden.difference(one, two, 0.5) == ""
    assert "draws" in golden.difference(one, two, golden.TOLERANCE)


@pytest.mark.parametrize("target", golden.LOOSE)
def test_no_tolerance_passes_whatever_is_computed(target):
    """One of 1 lets any two numbers of one sign agree."""
    assert golden.LOOSE[target] < 1
    assert golden.difference({"coefficients": [1.0, 0.1]}, {"coefficients": [0.3, 0.1]}, golden.LOOSE[target])


def test_what_a_mixture_fits_may_differ_on_another_processor_alone():
    """The graphical model of the same mechanism may not."""
    mixture, model = (golden.stored()[f"mechanism/{name}"] for name in ("aim_mixture", "aim"))
    elsewhere = [replace(one, arithmetic="another") for one in (mixture, model)]
    assert [one.tolerance for one in elsewhere] == [golden.MIXTURE, golden.TOLERANCE]
    assert replace(mixture, arithmetic=golden.arithmetic()).tolerance == golden.TOLERANCE
    assert golden.difference({"coefficients": [1.0]}, {"coefficients": [0.8]}, golden.MIXTURE)
