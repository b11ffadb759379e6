"""San Francisco Fire Department calls for service, coded by hd-datasets (Ridgeway et al. 2021)."""

from __future__ import annotations

import numpy as np

from dpbench.data.coded import load_coded
from dpbench.data.dataset import Dataset
from dpbench.data.table import Table


def load(config: Dataset) -> Table:
    """All rows of fire.csv, sorted by their codes: the order of the file does not matter.

    **Shapes** 305,119 rows of 15 attributes. It has codes only, no numbers.

    Raises `UserError` if the file is missing.
    """
    table = load_coded(config)
    return table.take(np.lexsort(table.codes.T[::-1]))
