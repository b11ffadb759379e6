"""Synthetic rows as a file of the table's own kind has them: level names, and numbers with the declared decimals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench.data.coding import written_dates
from dpbench.data.domain import Attribute, Codes, Floats
from dpbench.data.table import Table


def typed_rows(table: Table, rng: np.random.Generator | None = None) -> pd.DataFrame:
    """The rows (n, d): levels by name, and numbers as the table has them. Those of an attribute that it has only in
    bins are drawn uniformly within them, or without `rng` their middles.

    A number has the declared decimals, if its bin holds such a number, and is an integer where 0 are declared or all
    `values` are whole. A missing value is an empty cell. Nothing but the table is read, so that this is post-processing
    of released rows.
    """
    columns: dict[str, Any] = {}
    for attribute in table.domain.attributes:
        codes = table.column(attribute.name)
        if attribute.numeric:
            there = codes < len(attribute.values)
            known = table.numbers.get(attribute.name)
            found = _numbers(attribute, codes[there], rng, None if known is None else known[there])
            numbers = pd.Series(found, index=np.flatnonzero(there))
            if is_whole(attribute) and attribute.missing:
                numbers = numbers.astype("Int64")  # which has missing values
            columns[attribute.name] = numbers.reindex(range(len(codes)))
            if attribute.dates:
                days = columns[attribute.name].to_numpy(dtype=np.float64, na_value=np.nan)
                columns[attribute.name] = written_dates(days, attribute.dates)
        else:
            levels = [None if attribute.missing and not level else level for level in attribute.levels]
            columns[attribute.name] = pd.Series(levels, dtype=object).iloc[codes].to_numpy()
    return pd.DataFrame(columns)


def is_whole(attribute: Attribute) -> bool:
    """Whether all numbers of the attribute are declared to be whole."""
    listed = attribute.discrete_values and all(float(value).is_integer() for value in attribute.values)
    return attribute.decimals == 0 or listed


def _numbers(attribute: Attribute, codes: Codes, rng: np.random.Generator | None, known: Floats | None) -> Any:
    numbers = np.array(attribute.values)
    if known is not None:
        found = known if attribute.decimals is None else np.round(known, attribute.decimals)
    elif attribute.discrete_values:
        found = numbers[codes]
    elif attribute.decimals is not None:
        found = _with_decimals(attribute, attribute.decimals, codes, rng)
    elif rng is None:
        found = numbers[codes]
    else:
        edges = np.clip(attribute.edges, *(attribute.bounds or ()))
        found = edges[codes] + np.diff(edges)[codes] * rng.random(len(codes))
    return np.round(found).astype(np.int64) if is_whole(attribute) else found


def _with_decimals(attribute: Attribute, decimals: int, codes: Codes, rng: np.random.Generator | None) -> Floats:
    """Numbers (n,) with so many decimals, each in the bin of its code: drawn, or the nearest to the bin's number.

    The upper bound belongs to the last bin, other edges to the bin above. A bin that holds no such number has its own
    number, rounded.
    """
    unit, slack = 10.0**decimals, 1e-9  # of rounding: 0.3 * 10 is no whole number
    edges = np.clip(attribute.edges, *(attribute.bounds or ())) * unit
    first, last = np.ceil(edges[:-1] - slack), np.ceil(edges[1:] - slack) - 1
    last[-1] = np.floor(edges[-1] + slack)
    nearest = np.round(np.array(attribute.values) * unit)
    nearest = np.where(last >= first, np.clip(nearest, first, np.maximum(first, last)), nearest)
    first, last = np.where(last >= first, (first, last), nearest)
    chosen = (
        nearest[codes] if rng is None else first[codes] + np.floor(rng.random(len(codes)) * (last - first + 1)[codes])
    )
    return chosen / unit
