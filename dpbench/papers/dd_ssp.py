"""The distribution behind a score, one panel per data set (DD-SSP, Figure 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Spec
from dpbench.errors import UserError
from dpbench.report.figures.details import Cells, draw_details
from dpbench.report.text import mean_and_error, number

PLOT = 0.76  # part of a panel's height below its text
DRAWN = ["dataset", "series", "epsilon", "low_edge", "high_edge", "count_mean", "count_se", "repetitions"]


def histogram(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the histograms in the details of the scores of `spec["metric"]`.

    A detail has k `edges` and k + 1 `counts`, the first and the last for values beyond the edges; means over the
    repetitions are drawn. `spec` has name, metric, title, epsilon (the one that is drawn) and perhaps xlabel,
    panels (data set -> title, in the order of the panels), bounds [low, high] (dashed vertical lines) and inside (the
    name of the metric's value in the panel). Returns the figure and its bins.

    Raises `UserError` if the repetitions of a series have different edges.
    """
    panel = partial(_draw_panel, spec=spec)
    return draw_details(frame, labels, spec, panel, DRAWN, notes, "Histograms")


def _draw_panel(axes: Axes, panel: Cells, spec: Spec) -> list[pd.DataFrame]:
    """One outline a series, filled for the first calibration of a method; the bins of each."""
    drawn, texts = [], []
    for one, look, cells in panel:
        bins = _bins(cells, spec)
        drawn.append(bins)
        shown = bins[1:-1]
        edges, colour = [*shown["low_edge"], shown["high_edge"].iloc[-1]], look["color"]
        axes.stairs(shown["count_mean"], edges, label=one.label, color=colour, linestyle=look["linestyle"])
        if one.place == 0:
            axes.stairs(shown["count_mean"], edges, fill=True, color=colour, alpha=0.3)
        error = float(cells["value"].std()) / len(cells) ** 0.5
        outside = bins["count_mean"].iloc[[0, -1]].sum()
        beyond = f", {number(outside)} rows beyond the axis" if outside else ""
        texts.append(f"{one.label}: {mean_and_error(cells['value'].mean(), error)}{beyond}")
    for bound in spec.get("bounds") or []:
        axes.axvline(bound, ymax=PLOT, color="#333333", linestyle="--", linewidth=0.9)
    text = "\n".join([str(spec.get("inside") or spec["metric"]), *texts]) if texts else "no trial has a score"
    axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=7)
    axes.set(xlabel=spec.get("xlabel") or spec["metric"], ylabel="test rows", ylim=(0, None))
    axes.set_ylim(top=axes.get_ylim()[1] / PLOT)
    return drawn


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
