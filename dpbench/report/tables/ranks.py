"""On how many data sets a method is the best one, and how many times faster it is: ours beside the published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.report.text import number


def ranks(cells: pd.DataFrame, asked: Mapping[str, Any], beside: Mapping[str, str]) -> list[str]:
    """How often the method `asked["method"]` has the lowest and the second lowest mean of the methods `among`.

    One sentence for each of its calibrations, in which the others stand under the same one, if they have it, or the
    tight one; and one for the paper, unless another method has the paper's name for it (`beside`). A data
    set counts if the method has a value there.
    """
    method, among = str(asked["method"]), [str(name) for name in asked["among"]]
    calibrations = sorted(set(cells.loc[(cells["method"] == method) & cells["mean"].notna(), "calibration"]))
    told = []
    for calibration in calibrations[::-1]:
        like = {name: _like(cells, name, calibration) for name in set(cells["method"])}
        means = cells[cells["calibration"] == cells["method"].map(like)]
        name = f"{method} ({calibration})" if calibration else method
        told.append(_places(name, method, among, means.pivot_table(index="row", columns="method", values="mean")))
    own = beside.get(method, method) == method or beside[method] not in set(cells["method"])
    published = cells.pivot_table(index="row", columns="method", values="published")
    return told + ([_places(f"{method}, published", method, among, published)] if method in published and own else [])


def _like(cells: pd.DataFrame, method: str, calibration: str) -> str:
    own = set(cells.loc[(cells["method"] == method) & cells["mean"].notna(), "calibration"])
    return calibration if calibration in own else "tight" if "tight" in own else "".join(sorted(own))


def _places(name: str, method: str, among: Sequence[str], values: pd.DataFrame) -> str:
    values = values.reindex(columns=list(among)).dropna(subset=method)
    places = 1 + values.lt(values[method], axis=0).sum(axis=1)
    return (
        f"{name}: lowest mean on {(places == 1).sum()} and second lowest on {(places == 2).sum()} of {len(values)} "
        f"data sets, among {', '.join(column for column in among if values[column].notna().any())}"
    )


def mean_ratios(cells: pd.DataFrame, above: str, below: str) -> list[str]:
    """The ratio of the means over the data sets that have both methods, by calibration of `below`; published too."""
    told = []
    series = dict.fromkeys(cells.loc[(cells["method"] == below) & cells["mean"].notna(), "series"])
    numbers = [(name, "mean", cells["series"] == name) for name in series]
    numbers.append((f"{below}, published", "published", cells["method"] == below))
    for name, column, chosen in numbers:
        both = [
            cells[rows & cells[column].notna()].drop_duplicates("row").set_index("row")[column]
            for rows in (cells["method"] == above, chosen)
        ]
        pairs = pd.concat(both, axis=1, keys=["above", "below"]).dropna()
        if len(pairs):
            ratio = float(np.mean(pairs["above"]) / np.mean(pairs["below"]))
            told.append(f"{above} / {name}, means of {len(pairs)} data sets: {number(float(f'{ratio:.3g}'))}")
    return told
