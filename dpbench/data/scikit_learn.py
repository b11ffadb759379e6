"""Tables that ship with scikit-learn: nothing is downloaded."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dpbench.data.coding import code_frame
from dpbench.data.dataset import Dataset
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

TABLES = ("breast_cancer", "diabetes")


def load(config: Dataset) -> Table:
    """The table `config.table` of scikit-learn, in its units; columns that are not declared are ignored.

    A target of classes has their names. `config.sha256` is of the numbers, row by row, as scikit-learn gives them.

    Raises `UserError` for another table, or one with other numbers.
    """
    from sklearn import __version__, datasets

    name = config.get("table")
    check_known("dataset.table", name, TABLES)
    found = datasets.load_diabetes(scaled=False) if name == "diabetes" else datasets.load_breast_cancer()
    columns, target = [*map(str, found.feature_names), "target"], found.target
    sha256 = hashlib.sha256(np.column_stack([found.data, target]).astype("<f8").tobytes()).hexdigest()
    if sha256 != config["sha256"]:
        raise UserError(
            f"dataset={config.name}: the numbers of {name} in scikit-learn {__version__} have the sha256 "
            f"{sha256}, not {config['sha256']}; install the version of requirements.lock"
        )
    values = [*found.data.T, np.asarray(found.target_names)[target] if "target_names" in found else target]
    domain = config.full_domain
    return code_frame(_frame(columns, values, domain.names), domain, config.outside, str(name))


def _frame(columns: list[str], values: list[Any], kept: tuple[str, ...]) -> Any:
    import pandas as pd

    return pd.DataFrame({column: value for column, value in zip(columns, values, strict=True) if column in kept})
