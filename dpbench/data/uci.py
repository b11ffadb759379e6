"""Tables that come as plain text, as most of UCI's repository do; the config says how each is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from dpbench.data.coding import code_frame
from dpbench.data.dataset import Dataset
from dpbench.data.fetch import Source, fetch_all, open_binary
from dpbench.data.table import Table
from dpbench.errors import UserError, shown, unknown
from dpbench.files import Json, Node

if TYPE_CHECKING:
    import pandas as pd


def load(config: Dataset) -> Table:
    """The rows of each file of `config.sources`, one file after the other.

    `config.read` has options of `pandas.read_csv`, such as sep, decimal, header and names. A column that is not
    declared, such as a date, is ignored, and so is a line without a value in any other. `config.added` names
    columns that the files lack, each with its value in each file. `config.recode` is passed to `recoded`.

    Raises `UserError` if a file is missing or unreadable, or does not fit its declaration.
    """
    import pandas as pd

    name, sources, added = config.name, config.sources, config.get("added") or {}
    if not sources or any(len(values) != len(sources) for values in added.values()):
        raise UserError(f"dataset={name} needs dataset.sources, and in dataset.added a value for each of them")
    domain = config.full_domain
    frames = []
    for i, (source, path) in enumerate(fetch_all(config)):
        frame = _read(path, source.holds, domain.names, config.get("read") or {})
        frames.append(frame.assign(**{column: values[i] for column, values in added.items()}))
    frame = recoded(pd.concat(frames), config.get("recode") or {}, domain.names, name)
    return code_frame(frame, domain, config.outside, name, config.drop)


def recoded(frame: pd.DataFrame, recode: Node, columns: Collection[str], where: str) -> pd.DataFrame:
    """The frame with indices instead of values: `recode` maps a column to the list of values that are coded 0, 1, ...

    Several values may have one code, as in `{num: [[1, 2, 3, 4], 0]}`, and null for a missing value. Numbers
    are compared as numbers. `where` names the data in messages.

    Raises `UserError` for a column that is not among `columns`, a value listed twice, or one in the frame that is not
    listed.
    """
    if not isinstance(recode, Mapping):
        raise UserError(f"{where}: dataset.recode must map columns to lists of values, not {shown(recode)}")
    for column, values in recode.items():
        if column not in columns:
            raise unknown("column in dataset.recode:", str(column), columns)
        places = _places(column, values, where)
        if column not in frame:
            continue  # reported by `code_frame`
        keys = frame[column].map(_key)
        wrong = [i for i, key in enumerate(keys) if key not in places]
        if wrong:
            raise UserError(
                f"{where}: column {column!r}, row {wrong[0] + 1}: {shown(frame[column].iloc[wrong[0]])} is not among "
                f"the values that dataset.recode lists for it ({len(wrong):,} such of {len(frame):,})"
            )
        frame = frame.assign(**{column: [places[key] for key in keys]})
    return frame


def _places(column: str, values: Any, where: str) -> dict[str | float, int]:
    """Value -> its place in the list."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise UserError(f"{where}: dataset.recode.{column} must be a list of values, not {shown(values)}")
    places: dict[str | float, int] = {}
    for place, item in enumerate(values):
        for value in item if isinstance(item, Sequence) and not isinstance(item, str) else [item]:
            key = _key(value)
            if key in places:
                raise UserError(f"{where}: dataset.recode.{column} lists {shown(value)} twice")
            places[key] = place
    return places


def _key(value: Any) -> str | float:
    """A number as a number, other text without surrounding blanks; empty text for a missing value."""
    text = "" if value is None else str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return "" if math.isnan(number) else number


def zipped(config: Dataset) -> tuple[Source, ...]:
    """The zip file that `config.sources` describes by `file`, `url` and `holds`, whose checksum is not known."""
    entry = config["sources"]
    return (Source(entry["file"], entry["url"], "", holds=entry["holds"], fetched_by=config.name),)


def _read(path: Path, member: str, columns: Collection[str], options: Json) -> pd.DataFrame:
    """Those of the columns that are there, of one file or of the member of a zip file."""
    import pandas as pd

    with open_binary(path) as packed, ZipFile(packed).open(member) if member else packed as stream:
        try:
            read: Callable[..., pd.DataFrame] = pd.read_csv
            frame = read(stream, usecols=lambda column: column in columns, **options)
        except (TypeError, ValueError) as error:  # no such option, or no such table
            raise UserError(f"{path} cannot be read with dataset.read={dict(options)}: {error}") from error
    return frame.dropna(how="all")
