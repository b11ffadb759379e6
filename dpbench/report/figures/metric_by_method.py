"""A metric of each method on many data sets: a row per method, a point per data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.axes import LEVEL, levels
from dpbench.report.footnotes import as_text, sweep_footnotes
from dpbench.report.frames.frame import SERIES, summarise
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.picture.looks import line_styles
from dpbench.report.picture.picture import Axis, Panel, Picture, Points, around, titled

DRAWN = ["epsilon", "series", "dataset", "mean", "se", "count", "trials"]
MEANS = "A point per data set: the mean over its repetitions with a value; none where fewer than half have one"
BEYOND = "Points beyond the axis are at its edge"


def metric_by_method(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """`spec["metric"]` by method, a panel for each epsilon: a row per private series, in their order, and a point for
    each data set.

    `spec` has name, metric, title and perhaps

    - xlabel, xscale ("log"), panels (data set -> title)
    - xlim: points beyond are at the edge
    - relative: as for `metric_by_epsilon`
    - lines: values of the metric at which a thin line is drawn, such as a nominal level.

    The data drawn are the points; `count` of `trials` have a value. A method without a point still has its row.
    """
    rows = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    known, titles = series_of(rows, labels), declared_titles(spec)
    rows = rows.assign(dataset=rows["dataset"].replace(titles))
    cells = mark_series(summarise(rows, ["dataset", *SERIES, "epsilon", "metric"]), known)
    cells["trials"] = cells[["count", "nonfinite", "failed"]].sum(axis=1)
    cells = cells.sort_values(["epsilon", "series_order", "dataset"], ignore_index=True)
    found = [here for _, here in cells.groupby("epsilon")]
    low, high = spec.get("xlim") or (-math.inf, math.inf)
    beyond = [] if cells["mean"].dropna().between(low, high).all() else [BEYOND]
    footnote = as_text([notes, MEANS, *beyond, *sweep_footnotes(rows, known)] if len(rows) else [notes])
    looks = line_styles(known) | dict.fromkeys(levels(spec).rows["series"], LEVEL)
    return titled(spec, [_panel(here, spec) for here in found], looks, footnote, found, DRAWN)


def _panel(cells: pd.DataFrame, spec: Spec) -> Panel:
    names = list(cells["series"].unique())
    shown = cells[2 * cells["count"] >= cells["trials"]].assign(row=cells["series"].map(names.index))
    lines, log = replace(levels(spec), axis="x"), spec.get("xscale") == "log"
    low, high = spec.get("xlim") or around(shown["mean"], lines.rows["at"], log=log)
    x = Axis(str(spec.get("xlabel") or spec["metric"]), (float(low), float(high)), log)
    y = Axis("", (len(names) - 0.5, -0.5), ticks=dict(enumerate(names)), words="series")
    tip = ["dataset", "mean", "se", "count", "trials"]
    shown = shown.assign(x=shown["mean"].clip(*x.limits))
    points = Points(shown, "x", "row", bars=None, joined=False, tip=tip)
    return Panel(f"ε = {cells['epsilon'].iloc[0]:g}", x, y, [points, lines])
