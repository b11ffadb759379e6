"""How many bins BinAgg's estimates use, by data set and setting (BinAgg, Table 8)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.panels import declared_titles
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.tables.trials import trials_at
from dpbench.report.text import number

BINS = "notes.bins"  # the model's note of how many bins it used
ENDS = ("min", "max", "median")


def bins_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """Smallest, largest and median number of bins over the repetitions: a row a data set, value of `x` and series.

    `published` may have rows: data set -> {value of `x`: [min, max, median]}. The verdict is whether the published
    median lies within our smallest and largest number; trials without an estimate have no bins, and are not counted.
    """
    rows = frame.drop_duplicates("trial")
    rows = rows[np.isfinite(rows["x"])]
    known = series_of(rows, labels)
    rows = mark_series(rows, known).assign(bins=rows[BINS].astype("float64"))
    titles = declared_titles(spec)
    lines = []
    for (dataset, x, _), cell in rows.groupby(["dataset", "x", "series_order"], sort=True):
        bins = cell["bins"].dropna()
        found = [bins.min(), bins.max(), bins.median()] if len(bins) else [np.nan] * 3
        theirs = (published.get("rows") or {}).get(dataset, {}).get(x, [np.nan] * 3)
        if not len(bins) and np.isnan(theirs[2]):
            continue
        inside = "" if np.isnan(theirs[2]) or not len(bins) else "yes" if found[0] <= theirs[2] <= found[1] else "no"
        lines.append([str(dataset), float(str(x)), cell["series"].iloc[0], len(bins), *found, *theirs, inside])
    columns = ["dataset", "x", "series", "count", *ENDS, *(f"{end}, paper" for end in ENDS), "median inside"]
    tidy = pd.DataFrame(lines, columns=columns)
    order = {name: place for place, name in enumerate(titles)}
    tidy = tidy.sort_values("dataset", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    keys = list(tidy[["dataset", "x", "series"]].itertuples(index=False, name=None))
    counted = trials_at(
        rows.dropna(subset="bins").assign(column="count"), columns[:3], "column", keys, [None, None, None, "count"]
    )
    trials = {(row, at + place): own for (row, at), own in counted.items() for place in range(1 + len(ENDS))}
    tidy["dataset"] = tidy["dataset"].replace(titles)
    texts = [[_text(value) for value in line] for line in tidy.to_numpy()]
    below = sweep_footnotes(rows.assign(value=rows["bins"], dataset=rows["dataset"].replace(titles)), known)
    below += [f"Paper: {published['where']}, over {published['repetitions']} repetitions"] if published else []
    below.append("The last column: whether the published median lies within our smallest and largest number")
    return TextTable(["", str(spec.get("xlabel", spec["x"])), *columns[2:]], texts, below, tidy, trials)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    shown = float(str(value))
    return "" if np.isnan(shown) else number(shown)
