"""Where the files that travel with the package lie: links to conf/ and data/, which a wheel holds as folders."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def conf_dir() -> Path:
    """The folder of Hydra's config groups."""
    return PACKAGE / "_shared" / "conf"


def data_dir() -> Path:
    """The folder of the data sets that ship with the project."""
    return PACKAGE / "_shared" / "data"
