"""Plain tables: a user's own CSV, and the coded data sets that ship with the project."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from dpbench.data.coding import Coded, code_counted
from dpbench.data.csv_format import UNNAMED, CsvFormat, numbers_rows
from dpbench.data.csv_layout import check_kind, check_layout, check_quotes, layout_of, one_off, title_lines
from dpbench.data.dataset import Dataset
from dpbench.data.fetch import open_binary
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.files import Node, write_file

if TYPE_CHECKING:
    import pandas as pd

MOST_UNPACKED = 128 << 20  # bytes of a user's .gz file
LONGEST_LINE = 10 << 20  # bytes; 50,000 columns are about 1 MB


# --- a user's own table ----------------------------------------------------------------------------------


def load_csv(config: Dataset) -> Table:
    """The rows of the CSV file `config.path` over the domain declared in the file `config.domain`.

    The file is UTF-8, separated by commas, with the attributes' names in its first line, if no setting says otherwise
    (`csv_format.CsvFormat`); it may end in .gz.

    Raises `UserError` if it cannot be read or does not fit its declaration.
    """
    return code_csv(config).table


def code_csv(config: Dataset) -> Coded:
    """`load_csv`, with the numbers of rows dropped and values clipped.

    A row without any value is none, as an empty line is, unless all of its values may be missing.
    """
    path = csv_path(config)
    _given(config, "domain", "my.yaml, a file that declares its attributes")
    domain = config.full_domain
    frame, style = read_frame(config, [name for name in domain.names if name not in config.drop])
    if len(frame.columns) > 1 and not all(attribute.missing for attribute in domain.attributes):
        frame = _without_empty(frame)
    for attribute in domain.attributes:
        if attribute.numeric and not attribute.dates and attribute.name in frame.columns:
            frame[attribute.name] = style.numbers(frame[attribute.name])
    ignore = [name for name in config.drop if name in frame.columns or not name.startswith(UNNAMED)]
    return code_counted(frame, domain, config.outside, str(path), ignore)


def _without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that have any value; each column is looked at only while some rows have none so far."""
    empty = np.ones(len(frame), dtype=bool)
    for name in frame.columns:
        if not empty.any():
            return frame
        empty &= (frame[name].str.strip() == "").to_numpy(dtype=bool)
    return frame[~empty].reset_index(drop=True)


def read_frame(config: Dataset, wanted: Sequence[str] = ()) -> tuple[pd.DataFrame, CsvFormat]:
    """The fields of a user's file as text, an empty one as empty text, and how the file is written.

    Raises `UserError` if it cannot be read, or if the names that are `wanted` stand in a line below its first one.
    """
    path = csv_path(config)
    _read_through(path)
    if config.get("encoding") is None:
        check_kind(path)
    style = CsvFormat.of(config)
    above = title_lines(path, style, wanted) if wanted else None
    if above is not None and above != style.header - 1:
        raise UserError(
            f"{path}: line {style.header} looks like a title, and the names are in line {above + 1}: "
            f"dataset.header={above + 1} reads it"
        )
    return read_csv(path, style), style


def csv_path(config: Dataset) -> Path:
    """The user's file. Raises `UserError` if none is named, or it does not exist."""
    path = Path(_given(config, "path", "my.csv"))
    if not path.is_file():
        raise UserError(f"dataset.path={path}: {'it is a folder, not a file' if path.is_dir() else 'no such file'}")
    return path


def _given(config: Dataset, key: str, example: str) -> str:
    value = config.get(key)
    if not isinstance(value, str) or not value:
        raise UserError(f"dataset={config.name} needs dataset.{key}, such as dataset.{key}={example}")
    return value


def csv_sha256(config: Dataset) -> str:
    """The sha256 of the user's file, uncompressed.

    Raises `UserError` if it cannot be read, or exceeds the limits of `load_csv`.
    """
    return _read_through(csv_path(config))


def _read_through(path: Path) -> str:
    """The sha256 of the file, uncompressed, in pieces: a file too large for the memory is refused before it is parsed.

    A small file can unpack to more than the memory, and so can a line that never ends.
    """
    digest, total, line = hashlib.sha256(), 0, 0
    try:
        with open_binary(path) as stream:
            while piece := stream.read(1 << 18):
                digest.update(piece)
                total += len(piece)
                end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
                line = len(piece) - 1 - end + (line if end < 0 else 0)
                if total > MOST_UNPACKED and path.suffix == ".gz":
                    raise UserError(
                        f"{path} unpacks to more than {MOST_UNPACKED >> 20} MB; if that is right, unpack it and give "
                        "the .csv file"
                    )
                if line > LONGEST_LINE:
                    raise UserError(f"{path} has a line of more than {LONGEST_LINE >> 20} MB: is it a CSV file?")
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    return digest.hexdigest()


def read_csv(path: Path, style: CsvFormat) -> pd.DataFrame:
    """Every field as text; an empty one is empty text.

    A column without a name is left out if it is empty, or if it is the first and numbers the rows. A row that repeats
    the names is none.
    """
    import pandas as pd

    layout = layout_of(path, style)
    check_layout(path, style, layout)
    names = list(layout.names)
    if twice := sorted(name for name, count in Counter(names).items() if count > 1 and name):
        raise UserError(f"{path}: a column occurs twice: {', '.join(twice)}; give one of them another name")
    more = one_off(layout)
    columns = range(len(names) + max(more, 0))
    signs: dict[str, Any] = {"dtype": str, "na_filter": False, "sep": style.separator, "encoding": style.encoding}
    signs |= {"skiprows": style.header - 1, "index_col": False}
    signs |= {"nrows": style.skip + len(layout.fields)} if style.footer else {}  # what is below may be no CSV
    try:
        with open_binary(path) as stream:
            frame: pd.DataFrame = pd.read_csv(stream, names=columns, header=0, **signs)
    except UnicodeDecodeError as error:
        way = "dataset.encoding=cp1252 reads what most programs on Windows write" if style.encoding == "utf-8" else ""
        raise UserError(
            f"{path} is not {style.encoding.upper()} text ({error.reason}): {way or 'name another dataset.encoding'}, "
            "or save it as UTF-8"
        ) from error
    except pd.errors.ParserError as error:
        check_quotes(path, style)
        raise UserError(f"{path} cannot be read as CSV: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    frame = frame.iloc[style.skip :].reset_index(drop=True)
    if more > 0:
        names = ["", *names] if numbers_rows(frame[0]) else [*names, ""]
        if not names[-1] and (frame[len(names) - 1].str.strip() != "").any():
            raise UserError(
                f"{path}: the rows have one field more than line {style.header} has names: name each column, or put "
                "values that contain the separator, such as decimal commas, in quotes"
            )
    return _without_repetitions(_named(frame, names))


def _named(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The columns by their names, those without one by their place."""
    kept = {
        place: name or f"{UNNAMED}{place}"
        for place, name in enumerate(names)
        if name or not ((frame[place].str.strip() == "").all() or (place == 0 and numbers_rows(frame[place])))
    }
    return frame[list(kept)].rename(columns=kept)


def _without_repetitions(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that do not repeat the names of the columns, as files that were put together have them."""
    if len(frame.columns) < 2:
        return frame
    again = frame[frame.columns[0]].str.strip() == frame.columns[0]
    for name in frame.columns[1:] if again.any() else ():
        again &= frame[name].str.strip() == name
    return frame[~again].reset_index(drop=True) if again.any() else frame


# --- tables that ship ------------------------------------------------------------------------------------


class Shipped(TypedDict):
    """How a table that ships was made, its rows and its sha256 (uncompressed)."""

    mechanism: str
    epsilon: float
    delta: float
    seed: int
    commit: str
    command: str
    rows: int
    sha256: str


def load_shipped(config: Dataset) -> Table:
    """The coded table <config.shipped>.csv.gz of the project's data folder, over the domain `config.attributes`.

    Its codes are integers, its first line names the attributes. It has codes only, no numbers.

    Raises `UserError` if it is missing, or not the file that <config.shipped>.json describes.
    """
    facts = shipped_facts(config)
    path = _shipped(config, ".csv.gz")
    domain = config.full_domain
    again = f"restore it from the project's files, or make it again with `{facts['command']}`"
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"the data file {path} cannot be read ({error}); {again}") from error
    if hashlib.sha256(content).hexdigest() != facts["sha256"]:
        raise UserError(f"the data file {path} has another sha256 than {path.name[:-7]}.json states; {again}")
    names = content.split(b"\n", 1)[0].decode().split(",")
    if set(names) != set(domain.names):
        raise UserError(f"the data file {path} has other attributes than its domain declares; {again}")
    rows = np.loadtxt(io.BytesIO(content), dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    codes = np.ascontiguousarray(rows[:, [names.index(name) for name in domain.names]])
    if np.any(codes < 0) or np.any(codes.max(axis=0) >= list(domain.sizes.values())):
        raise UserError(f"the data file {path} holds codes outside the domain declared for it; {again}")
    return Table(domain, codes)


def write_shipped(table: Table, folder: Path, name: str, facts: Node) -> None:
    """Write <name>.csv.gz and <name>.json, which `load_shipped` reads; the same rows give the same bytes.

    `facts` says how the rows were made: mechanism, epsilon, delta, seed, commit and command.
    """
    content = io.BytesIO()
    names = ",".join(table.domain.names)
    np.savetxt(content, table.codes, fmt="%d", delimiter=",", header=names, comments="")
    packed = gzip.compress(content.getvalue(), mtime=0)
    full = {**facts, "rows": len(table), "sha256": hashlib.sha256(content.getvalue()).hexdigest()}
    _check_facts(full, folder / f"{name}.json")
    write_file(folder / f"{name}.csv.gz", packed)
    write_file(folder / f"{name}.json", json.dumps(full, indent=2, sort_keys=True) + "\n")


def shipped_facts(config: Dataset) -> Shipped:
    """What <config.shipped>.json says of a shipped table.

    Raises `UserError` if it is missing or incomplete.
    """
    path = _shipped(config, ".json")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"the file {path}, which describes dataset={config.name}, cannot be read ({error}); restore it from "
            "the project's files, or make the data again (scripts/)"
        ) from error
    _check_facts(facts, path)
    return cast(Shipped, facts)


def _check_facts(facts: Any, path: Path) -> None:
    needed = sorted(Shipped.__annotations__)
    missing = [name for name in needed if not isinstance(facts, dict) or name not in facts]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}; it must state {', '.join(needed)}")


def _shipped(config: Dataset, suffix: str) -> Path:
    from dpbench.resources import data_dir

    if not config.shipped:
        raise UserError(f"dataset={config.name}: shipped must name a table of the project's data folder")
    return data_dir() / f"{config.shipped}{suffix}"
