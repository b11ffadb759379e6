"""A metric against another, such as coverage against width or error against seconds, one point per series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.axes import LEVEL, levels
from dpbench.report.footnotes import as_text, sweep_footnotes
from dpbench.report.frames.frame import has_value
from dpbench.report.frames.series import declared_titles, in_order, mark_series, series_of
from dpbench.report.frames.settings import metric_rows
from dpbench.report.picture.looks import line_styles
from dpbench.report.picture.picture import Axis, Note, Panel, Picture, Points, around, titled
from dpbench.report.text import number

DRAWN = ["panel", "epsilon", "series", "x", "y", "low", "high", "count", "trials", "datasets"]
MEANS = "Means over the repetitions with a value; where some have none, the number at the point counts those that do"
EACH = "Bars: one standard error"
NO_DATA = Note("no data set has every method")
POOLED = "Points: geometric means over the data sets on which every method was run, none for a method without a value"


def metric_by_metric(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """`spec["metric"]` against `spec["against"]`, a metric too: one panel per data set and epsilon, one point per
    series.

    Points are means over the repetitions. References are in every panel of their data set. Both metrics may be ones
    that every trial has (see `metric_rows`). `spec` has name, title and perhaps

    - pooled: true for one panel per epsilon, with geometric means over the data sets on which every series was run
    - relative: as for `metric_by_epsilon`, of either metric
    - xlabel, ylabel, xscale, yscale ("log"), ylim, panels (data set -> title, in the order of the panels)
    - xlim: the upper limit of the axis; points beyond are at its edge, with their value
    - lines: values of the metric at which a thin line is drawn, such as a nominal level, or {label: value}.

    The data drawn are the points: `low` and `high` are the ends of the bar, `count` of `trials` have a value.
    """
    rows = metric_rows(frame, str(spec["metric"]))
    other = metric_rows(frame, str(spec["against"])).set_index("trial")["value"]
    rows = rows.assign(against=rows["trial"].map(other).astype("float64"))
    known = series_of(rows, labels)
    titles, pooled = declared_titles(spec), bool(spec.get("pooled"))
    found = list(_panels(mark_series(rows, known), titles, pooled))
    sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    counts = [f"{title}: {max(points['datasets'], default=0)} data sets" for title, points in found if pooled]
    footnote = as_text([notes, MEANS, *([POOLED, *counts] if pooled else [EACH]), *sentences])
    looks = line_styles(known) | dict.fromkeys(levels(spec).rows["series"], LEVEL)
    panels = [_panel(title, points, spec) for title, points in found]
    return titled(spec, panels, looks, footnote, [points for _, points in found], DRAWN)


def _panels(rows: pd.DataFrame, titles: Mapping[str, str], pooled: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """The title of each panel and its points."""
    private = np.isfinite(rows["epsilon"])
    for dataset in [None] if pooled else in_order(rows["dataset"], titles):
        own = rows["dataset"] == dataset if dataset is not None else pd.Series(True, index=rows.index)
        budgets = rows.loc[own & private, ["epsilon", "delta"]].drop_duplicates().sort_values(["epsilon", "delta"])
        for epsilon, delta in budgets.itertuples(index=False):
            here = rows[own & (~private | (rows["epsilon"] == epsilon) & (rows["delta"] == delta))]
            words = [] if dataset is None else [titles.get(dataset, dataset)]
            words += [f"ε = {epsilon:g}", *([f"δ = {number(delta)}"] if budgets["delta"].nunique() > 1 else [])]
            yield ", ".join(words), _points(here).assign(panel=", ".join(words), epsilon=epsilon)


def _points(rows: pd.DataFrame) -> pd.DataFrame:
    """The point of each series, in their order; of several data sets those count on which every series was run."""
    complete = has_value(rows) & np.isfinite(rows["against"])
    valued = rows.assign(x=rows["against"].where(complete), y=rows["value"].where(complete))
    cells = valued.groupby(["dataset", "series_order"]).agg(
        series=("series", "first"), x=("x", "mean"), y=("y", "mean"), se=("y", "sem"), count=("y", "count"),
        trials=("y", "size"),
    )  # fmt: skip
    run = cells["trials"].unstack().notna().all(axis=1)
    cells = cells[cells.index.get_level_values("dataset").isin(run.index[run])]
    by = cells.groupby("series_order")
    alone = run.sum() == 1
    points = by.agg({"series": "first", "count": "sum", "trials": "sum"})
    points[["x", "y"]] = by[["x", "y"]].first() if alone else by[["x", "y"]].agg(_geometric_mean)
    half = by["se"].first().fillna(0.0) if alone else 0.0
    return points.assign(low=points["y"] - half, high=points["y"] + half, datasets=run.sum()).reset_index()


def _geometric_mean(values: pd.Series) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(values.to_numpy()))))


def _panel(title: str, points: pd.DataFrame, spec: Spec) -> Panel:
    shown = points.assign(value=points["x"], x=points["x"].clip(*spec.get("xlim") or (None, None)))
    axes, lines = [], levels(spec)
    for name, metric in (("x", spec["against"]), ("y", spec["metric"])):
        log = spec.get(f"{name}scale") == "log" and bool((shown[name] > 0).any())
        others = [] if name == "x" or log else [shown["low"], shown["high"], lines.rows["at"]]
        limits = around(shown[name], *others, log=log, part=0.08 if log else 0.05)
        axes.append(Axis(str(spec.get(f"{name}label") or metric), limits, log))
    x, y = axes
    if spec.get("ylim"):
        low, high = spec["ylim"]
        y = replace(y, limits=(float(low), float(high)))
    rows = shown[shown["x"].notna() & shown["y"].notna()]
    counts = rows["count"].astype(str).where(rows["count"] < rows["trials"], "")
    beyond = [f"at {value:.2g}" if value != at else "" for value, at in zip(rows["value"], rows["x"], strict=True)]
    rows = rows.assign(note=[", ".join(filter(None, both)) for both in zip(counts, beyond, strict=True)])
    bars, tip = ("low", "high"), ["series", "x", "y", "count", "trials", "datasets"]
    drawn = Points(rows, "x", "y", bars if (rows["low"] < rows["high"]).any() else None, joined=False, tip=tip)
    return Panel(title, x, y, [drawn if len(points) else NO_DATA, lines], title)
