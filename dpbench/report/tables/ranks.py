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
        alike = cells[cells["calibration"] == cells["method"].map(like)]
        means = alike.pivot_table(index="row", columns="method", values="mean")
        told.append(_places(_named(method, calibration), method, among, means))
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
    """The ratio of the means over the data sets that have both methods, by calibration of `below`; published too.

    `above` stands under the same calibration, if it has it, or the tight one.
    """
    told = []
    series = cells.loc[(cells["method"] == below) & cells["mean"].notna(), ["series", "calibration"]]
    for name, calibration in series.drop_duplicates().itertuples(index=False):
        like = _like(cells, above, calibration)
        under = (cells["method"] == above) & (cells["calibration"] == like)
        told += _ratio(_named(above, like), cells[under], name, cells[cells["series"] == name], "mean")
    one, other = (cells[cells["method"] == method] for method in (above, below))
    return told + _ratio(above, one, f"{below}, published", other, "published")


def _ratio(above: str, one: pd.DataFrame, below: str, other: pd.DataFrame, column: str) -> list[str]:
    """The sentence on the ratio of a column's means over the data sets that both have; none where there are none."""
    both = [rows.dropna(subset=column).drop_duplicates("row").set_index("row")[column] for rows in (one, other)]
    pairs = pd.concat(both, axis=1, keys=["above", "below"]).dropna()
    if pairs.empty:
        return []
    ratio = float(np.mean(pairs["above"]) / np.mean(pairs["below"]))
    return [f"{above} / {below}, means of {len(pairs)} data sets: {number(float(f'{ratio:.3g}'))}"]


def _named(method: str, calibration: str) -> str:
    return f"{method} ({calibration})" if calibration else method
