"""Tables of the UCI Machine Learning Repository that come as plain text; the config says how each is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from dpbench.data.coding import code_frame
from dpbench.data.declare import domain_from_config
from dpbench.data.fetch import fetch_all, open_binary
from dpbench.data.source import Source, sources_of
from dpbench.data.table import Table
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def load(config: Mapping[str, Any]) -> Table:
    """The rows of each file of `config.sources`, one file after the other.

    `config.read` has options of `pandas.read_csv`, such as sep, decimal, header and names. A column that is not
    declared, such as a date, is passed over, and so is a line that has no value in any other. `config.added` names
    columns that the files lack, each with its value in each file.

    Raises `UserError` if a file is missing or unreadable, or does not fit its declaration.
    """
    import pandas as pd

    name, sources, added = str(config.get("name")), sources_of(config), config.get("added") or {}
    if not sources or any(len(values) != len(sources) for values in added.values()):
        raise UserError(f"dataset={name} needs dataset.sources, and in dataset.added a value for each of them")
    domain = domain_from_config(config["attributes"])
    frames = []
    for i, (source, path) in enumerate(fetch_all(config)):
        frame = _read(path, source.holds, domain.names, config.get("read") or {})
        frames.append(frame.assign(**{column: values[i] for column, values in added.items()}))
    return code_frame(pd.concat(frames), domain, config.get("outside", "error"), name, config.get("drop") or ())


def zipped(config: Mapping[str, Any]) -> tuple[Source, ...]:
    """The zip file that `config.sources` describes by `file`, `url` and `holds`, of which no checksum is known."""
    entry = config["sources"]
    return (Source(entry["file"], entry["url"], "", holds=entry["holds"], fetched_by=str(config["name"])),)


def _read(path: Path, member: str, columns: Collection[str], options: Mapping[str, Any]) -> pd.DataFrame:
    """Those of the columns that are there, of one file or of the member of a zip file."""
    import pandas as pd

    with open_binary(path) as packed, ZipFile(packed).open(member) if member else packed as stream:
        try:
            frame: pd.DataFrame = pd.read_csv(stream, usecols=lambda column: column in columns, **options)
        except (TypeError, ValueError) as error:  # no such option, or no such table
            raise UserError(f"{path} cannot be read with dataset.read={dict(options)}: {error}") from error
    return frame.dropna(how="all")
