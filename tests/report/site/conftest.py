"""The pages of the checkout, with the leaderboard of one paper, whose trials are few."""

from pathlib import Path

import pytest

from dpbench.report.site.__main__ import write_site

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    """The folder with mkdocs.yml, and the pages below it."""
    folder = tmp_path_factory.mktemp("site")
    write_site(ROOT, folder, ["arena"])
    return folder
