"""Croissant descriptions: files with checksums, licences, and what is declared of the attributes."""

import json

import pytest

from dpbench.cli import main
from dpbench.config import composed
from dpbench.data.croissant import croissant
from dpbench.data.dataset import Dataset


def described(name):
    return croissant(Dataset.of(composed([f"dataset={name}"])["dataset"]))


def test_the_description_of_adult():
    found = described("adult")
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert (found["name"], found["license"]) == ("adult", "CC BY 4.0")
    assert [one["name"] for one in found["distribution"]] == ["adult/adult.data", "adult/adult.test"]
    assert all(len(one["sha256"]) == 64 and one["contentUrl"].startswith("https://") for one in found["distribution"])
    measured = {one["name"]: one for one in found["variableMeasured"]}
    assert (measured["age"]["minValue"], measured["age"]["maxValue"], measured["age"]["unitText"]) == (16, 100, "years")
    assert measured["sex"]["value"] == ["Female", "Male"]


@pytest.mark.parametrize("name", ["simulation", "diabetes", "adult_synth", "taxi"])
def test_data_without_files_or_bounds_are_described_too(name):
    found = described(name)
    assert found["description"] and json.loads(json.dumps(found)) == found


def test_the_command_prints_it_and_wants_a_name(capsys):
    assert main(["data", "croissant", "adult"]) == 0
    assert json.loads(capsys.readouterr().out)["@type"] == "sc:Dataset"
    assert main(["data", "croissant"]) == 2
    assert "dpbench data croissant adult" in capsys.readouterr().err
