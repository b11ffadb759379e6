"""The best of several methods, and those that do not differ from it significantly: what a LaTeX table has in bold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

ERRORS = 1.96  # standard errors of a difference that is not significant at 95 %
RULE = "In bold: the best private method, and those whose difference from it is within 1.96 standard errors"
_SIGNS = {"lower": 1.0, "higher": -1.0}


def is_best(cells: pd.DataFrame, by: Sequence[str]) -> pd.Series[bool]:
    """Whether the `mean` of each cell is the best, by its `direction`, of those with the same values of `by`.

    So is one whose interval of the difference from the best, which takes both standard errors `se` for independent,
    holds 0. Nothing is, where there is nothing to compare with, or no direction is the better one.
    """
    value = cells["mean"].astype(float) * cells["direction"].map(_SIGNS).astype(float)
    known = cells.assign(_value=value.where(np.isfinite(value))).dropna(subset="_value")
    found = pd.Series(False, index=cells.index)
    for _, group in known.groupby(list(by)):
        if len(group) > 1:
            leader = group.iloc[int(np.argmin(group["_value"]))]
            error = np.hypot(group["se"].fillna(0.0), 0.0 if np.isnan(leader["se"]) else leader["se"])
            found[group.index] = group["_value"] - leader["_value"] <= ERRORS * error
    return found
