"""San Francisco Fire Department calls for service, coded by hd-datasets (Ridgeway et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbench.data.coded import load_coded
from dpbench.data.table import Table


def load(config: Mapping[str, Any]) -> Table:
    """All rows of fire.csv, sorted by their codes: in whatever order the file has them, the table is the same.

    **Shapes** 305,119 rows of 15 attributes. There are no numbers beside the codes.

    Raises `UserError` if the file cannot be had.
    """
    table = load_coded(config)
    return table.take(np.lexsort(table.codes.T[::-1]))
