"""NIST's excerpts: which file an area and a year have, their real rows, and one year as public data of the other."""

import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import verify
from dpbench.data.load import load_dataset
from dpbench.data.public import public_part, shared_rows
from dpbench.errors import UserError

ROWS = {("ma", 2018): 7244, ("ma", 2019): 7634, ("tx", 2018): 8775, ("tx", 2019): 9276, ("national", 2019): 27253}


def test_an_area_and_a_year_have_a_file(node):
    (source,) = Dataset.of(node("nist_acs", "area=tx", "year=2019")).sources
    assert source.file == "sdnist_acs/tx2019.csv" and source.url.endswith("/texas/tx2019.csv")
    assert source.fetched_by == "nist_acs dataset.area=tx dataset.year=2019"
    assert (
        len({Dataset.of(node("nist_acs", f"area={area}", f"year={year}")).sources[0].sha256 for area, year in ROWS})
        == 5
    )


def test_another_area_or_year_is_refused(node):
    with pytest.raises(UserError, match=r"unknown dataset\.area 'ny'; known: ma, national, tx"):
        _ = Dataset.of(node("nist_acs", "area=ny")).sources
    with pytest.raises(UserError, match=r"dataset\.year must be one of 2018, 2019, not 2020"):
        _ = Dataset.of(node("nist_acs", "year=2020")).sources


@pytest.mark.parametrize(("area", "year"), ROWS)
def test_real_rows(node, area, year):
    assert len(load_dataset(Dataset.of(real(node("nist_acs", f"area={area}", f"year={year}"))))) == ROWS[area, year]


def test_one_year_is_public_data_of_the_other(node):
    """18 attributes tell most people apart: rows in both years are about as rare as repeated ones in one year."""
    private, public = (load_dataset(Dataset.of(real(node("nist_acs", f"year={year}")))) for year in (2018, 2019))
    (reported,) = shared_rows(private, public_part(private.domain, public), counted=True)
    equal, repeated = (int(part.split(" of ")[0].split()[-1].replace(",", "")) for part in reported.split("; "))
    assert 0 < equal / len(public) < 1.5 * repeated / len(private) < 0.3


def real(config):
    """The node, where its file is at hand."""
    if verify(Dataset.of(config).sources)[0][1] != "ok":
        pytest.skip("the excerpts are in no folder of DPBENCH_DATA_MIRRORS")
    return config
