"""The distribution behind a score, one panel per data set (DD-SSP, Figure 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.errors import UserError
from dpbench.report.figures.details import Cells, draw_details
from dpbench.report.picture.looks import DASHED, Look, plain
from dpbench.report.picture.picture import NO_SCORE, Area, Axis, Levels, Mark, Note, Panel, Picture, Points, around
from dpbench.report.text import mean_and_error, number

PLOT = 0.76  # part of a panel's height below its text
DRAWN = ["dataset", "series", "epsilon", "low_edge", "high_edge", "count_mean", "count_se", "repetitions"]


def histogram(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The histograms in the details of the scores of `spec["metric"]`.

    A detail has k `edges` and k + 1 `counts`, the first and the last for values beyond the edges; means over the
    repetitions are drawn. `spec` has name, metric, title, epsilon (the one that is drawn) and perhaps xlabel,
    panels (data set -> title, in the order of the panels), bounds [low, high] (dashed vertical lines) and inside (the
    name of the metric's value in the panel). The data drawn are the bins.

    Raises `UserError` if the repetitions of a series have different edges.
    """
    made = draw_details(frame, labels, spec, partial(_panel, spec=spec), DRAWN, notes, "Histograms")
    looks = plain(made.looks, width=1.0) | {"_bounds": Look("#333333", DASHED, width=0.9)}
    return replace(made, looks=looks)


def _panel(title: str, cells: Cells, spec: Spec) -> tuple[Panel, list[pd.DataFrame]]:
    """One outline a series, filled for the first calibration of a method; the bins of each."""
    bins = [_bins(rows, spec) for _, rows in cells]
    corners = [_outline(one) for one in bins] or [pd.DataFrame(columns=["series", "edge", *DRAWN[5:7], "low"])]
    outlines, bounds = pd.concat(corners), pd.DataFrame({"series": "_bounds", "at": spec.get("bounds") or []})
    filled = outlines[outlines["series"].isin([one.label for one, _ in cells if one.place == 0])]
    texts = [str(spec.get("inside") or spec["metric"])]
    for (one, rows), drawn in zip(cells, bins, strict=True):
        error = float(rows["value"].std()) / len(rows) ** 0.5
        outside = drawn["count_mean"].iloc[[0, -1]].sum()
        beyond = f", {number(outside)} rows beyond the axis" if outside else ""
        texts.append(f"{one.label}: {mean_and_error(rows['value'].mean(), error)}{beyond}")
    marks: list[Mark] = [
        Points(outlines, "edge", "count_mean", None, steps=True, tip=["series", "edge", "count_mean", "count_se"]),
        Area(filled, "edge", "low", "count_mean", 0.3, steps=True),
        Levels(bounds, "at", "x", bars=False, part=PLOT),
        Note("\n".join(texts) if bins else NO_SCORE.text, corner=True),
    ]
    _, top = around(outlines["count_mean"])
    x = Axis(spec.get("xlabel") or spec["metric"], around(bounds["at"], outlines["edge"]))
    return Panel(title, x, Axis("test rows", (0.0, top / PLOT)), marks, title), bins


def _outline(bins: pd.DataFrame) -> pd.DataFrame:
    """The corners of the bins between the first and the last edge, from 0 and back to it."""
    shown = bins.iloc[1:-1]
    ends = shown.iloc[[0, -1]].assign(count_mean=0.0, count_se=np.nan)
    corners = pd.concat([ends[:1], shown, ends[1:]])
    return corners.assign(edge=[*corners["low_edge"].iloc[:-1], shown["high_edge"].iloc[-1]], low=0.0)


def _bins(cells: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Mean and standard error over the repetitions of the count in each bin, below the first and above the last too."""
    details = list(cells["detail"])
    edges = details[0]["edges"]
    if any(detail["edges"] != edges for detail in details):
        raise UserError(
            f"the repetitions of {spec['metric']} have different edges, so that {spec['name']} cannot average them; "
            "run them with the same parameters of the metric"
        )
    counts = np.array([detail["counts"] for detail in details], dtype=float)
    spread = counts.std(axis=0, ddof=1) / np.sqrt(len(counts)) if len(counts) > 1 else np.nan
    first = cells.iloc[0]
    return pd.DataFrame(
        {
            "dataset": first["dataset"],
            "series": first["series"],
            "epsilon": first["epsilon"],
            "low_edge": [-math.inf, *edges],
            "high_edge": [*edges, math.inf],
            "count_mean": counts.mean(axis=0),
            "count_se": spread,
            "repetitions": len(counts),
        }
    )
