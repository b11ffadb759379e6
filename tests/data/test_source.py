"""Sources: what a config may say of the files that a dataset is read from."""

import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import Source
from dpbench.errors import UserError

ENTRY = {"file": "toy/toy.data", "url": "https://example.org/toy.data", "sha256": "0" * 64}


def test_entries_of_a_config_become_sources():
    (found,) = Dataset.of({"name": "toy", "sources": [{**ENTRY, "members": ["a.csv", "b.csv"]}]}).sources
    assert (found.name, found.members, found.fetched_by) == ("toy.data", ("a.csv", "b.csv"), "toy")
    assert Dataset.of({"name": "toy"}).sources == ()


@pytest.mark.parametrize("entry", [5, {}, {"file": "toy/a"}, {**ENTRY, "size": 5}])
def test_an_entry_needs_file_url_and_checksum(entry):
    with pytest.raises(UserError, match="needs file, url and sha256 only"):
        _ = Dataset.of({"sources": [entry]}).sources


@pytest.mark.parametrize("file", ["toy.data", "../toy.data", "toy/../../x", "/etc/passwd", "toy/.hidden"])
def test_a_file_stays_in_the_cache(file):
    with pytest.raises(UserError, match="must be <dataset>/<name>"):
        Source(file, "", "0" * 64)


def test_a_checksum_may_be_unknown_of_a_zip_file_only():
    assert Source("toy/toy.zip", "", "", holds="toy.csv").sha256 == ""
    for sha256 in ("", "0" * 63, "G" * 64):
        with pytest.raises(UserError, match="64 lower-case hex digits"):
            Source("toy/toy.data", "", sha256)


def test_a_function_of_the_config_must_be_one_of_the_data_layer():
    with pytest.raises(UserError, match=r"dataset=toy: sources\._target_: 'os\.listdir' is not allowed"):
        _ = Dataset.of({"name": "toy", "sources": {"_target_": "os.listdir"}}).sources
