"""NIST's Diverse Communities Data Excerpts of the American Community Survey, DOI 10.18434/mds2-2895."""

from __future__ import annotations

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import Source
from dpbench.errors import UserError, check_known

# The history of NIST's repository: its newest version has pointers to large files in their place.
URL = "https://raw.githubusercontent.com/usnistgov/SDNist/76b74a1ed2725f35980b786b8f00764117cd9bdb"
AREAS = {"ma": "massachusetts", "tx": "texas", "national": "national"}


def sources(config: Dataset) -> tuple[Source, ...]:
    """The file of the excerpt of `config.area` and `config.year`; `config.sources.sha256` has the checksums.

    Raises `UserError` for another area or year.
    """
    area, year, known = config["area"], config["year"], config["sources"]["sha256"]
    check_known("dataset.area", area, AREAS)
    if f"{area}{year}" not in known:
        years = [name.removeprefix(area) for name in known if name.startswith(area)]
        raise UserError(f"dataset.year must be one of {', '.join(years)}, not {year!r}")
    file = f"{area}{year}.csv"
    url = f"{URL}/BenchmarkData/ACSDataExcerpts/{AREAS[area]}/{file}"
    fetched_by = f"{config.name} dataset.area={area} dataset.year={year}"
    return (Source(f"sdnist_acs/{file}", url, known[f"{area}{year}"], fetched_by=fetched_by),)
