"""UCI Adult (Becker and Kohavi 1996), DOI 10.24432/C5XW20."""

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

# adult.names, in the order of the files; the label has no name there.
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income>50K",
]


def load(config: Dataset) -> Table:
    """All rows of adult.data, then those of adult.test.

    **Shapes** 32,561 + 16,281 = 48,842 rows. A missing value is the level "?".

    Raises `UserError` if a file is missing.
    """
    import pandas as pd

    if len(config.sources) != 2:
        raise UserError("Adult is read from two sources, adult.data and adult.test, in this order")
    train, test = (path for _, path in fetch_all(config))
    frame = pd.concat([_read(train, skip=0), _read(test, skip=1)], ignore_index=True)
    domain = config.full_domain
    return code_frame(frame, domain, config.outside, "Adult", config.drop)


def _read(path: Path, skip: int) -> pd.DataFrame:
    """One file: fields apart by ", ", no header, `skip` lines before the rows, labels with or without a dot."""
    import pandas as pd

    with open_binary(path) as stream:
        frame = pd.read_csv(stream, header=None, names=COLUMNS, skiprows=skip, na_filter=False)
    frame[COLUMNS[-1]] = frame[COLUMNS[-1]].str.rstrip(".")
    return frame
