"""Trip records of the New York City Taxi and Limousine Commission (TLC)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpbench.data.coding import code_frame
from dpbench.data.dataset import Dataset
from dpbench.data.fetch import fetch_all, open_binary
from dpbench.data.table import Table
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

# The attributes of DD-SSP, Table 1, by TLC's names.
COLUMNS = [
    *("VendorID", "passenger_count", "trip_distance", "RatecodeID", "PULocationID", "DOLocationID"),
    *("payment_type", "fare_amount", "tip_amount", "tolls_amount", "total_amount"),
]


def load(config: Dataset) -> Table:
    """The trips of each file of `config.sources`, Parquet or CSV by its name, one file after the other.

    A trip that lacks any of the eleven attributes is left out, even if that attribute is dropped later.

    Raises `UserError` if a file is missing, or does not fit its declaration.
    """
    import pandas as pd

    frame = pd.concat([_read(path) for _, path in fetch_all(config)], ignore_index=True).dropna(ignore_index=True)
    domain = config.full_domain
    return code_frame(frame, domain, config.outside, "Taxi", config.drop)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with open_binary(path) as stream:
            if ".parquet" in path.suffixes:
                import pyarrow  # noqa: F401  by which pandas reads

                return pd.read_parquet(stream, columns=COLUMNS)
            return pd.read_csv(stream, usecols=COLUMNS)
    except ValueError as error:  # of both readers: no such file format, or a column is missing
        raise UserError(f"{path} is not a file of trips with the columns {', '.join(COLUMNS)}: {error}") from error
