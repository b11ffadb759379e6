"""Mean, standard error and counts of each cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpbench.report.frames.frame import CELL

NOT_FAILED = ("no_estimate", "unconverged")  # statuses of trials that have no score, though nothing went wrong


def has_value(rows: pd.DataFrame) -> pd.Series:
    """Which rows have a finite value and belong to a trial that is done."""
    valued: pd.Series = (rows["status"] == "done") & np.isfinite(rows["value"])
    return valued


def summarise(frame: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """One row per cell (the values of the columns `by`), sorted by them.

    `mean` and `se` (sample standard deviation, ddof = 1, over the square root of `count`; NaN for a count
    of 1) are in the metric's `unit` and are taken over the `count` done trials whose value is finite.
    `nonfinite` counts the other done trials, `failed` those with any other status, so that
    count + nonfinite + failed is the number of trials; `no_estimate` and `unconverged` say how many of these have that
    status. `spent_epsilon` is the largest of the cell.

    Raises `ValueError` if cells would mix metrics.
    """
    if "metric" not in by and frame["metric"].nunique() > 1:
        raise ValueError("cells would mix metrics: put 'metric' into `by` or select one metric first")
    done = frame["status"] == "done"
    finite = has_value(frame)
    counted = {"nonfinite": done & ~finite, "failed": ~done}
    counted |= {status: frame["status"] == status for status in NOT_FAILED}
    place = frame.groupby(list(by), sort=True, dropna=False).ngroup().to_numpy()
    cells = frame[[*by, "unit", "direction"]].take(np.unique(place, return_index=True)[1]).reset_index(drop=True)
    numbers = {"value": frame["value"].where(finite), **counted, "spent_epsilon": frame["spent_epsilon"]}
    groups = pd.DataFrame(numbers).groupby(place)
    values = groups["value"].agg(["mean", "std", "count"]).rename(columns={"std": "se"})
    values["se"] /= np.sqrt(values["count"].where(values["count"] > 0))
    parts: list[pd.DataFrame] = [cells, values, groups[list(counted)].sum(), groups[["spent_epsilon"]].max()]
    return pd.concat(parts, axis=1)
