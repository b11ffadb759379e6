"""A bound, the quantity that it bounds, and the steps in between, one panel per data set (excess risk, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Spec
from dpbench.report.figures.details import Cells, draw_details

DRAWN = ["dataset", "series", "epsilon", "step", "mean", "least", "most", "repetitions"]


def steps(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> tuple[Figure, pd.DataFrame]:
    """Draw the `steps` in the details of the scores of `spec["metric"]`, on a logarithmic axis.

    The detail's steps are pairs of a name and a number, from the bound to the measured value; means over the
    repetitions are drawn, with a bar from the smallest to the largest. `spec` has name, metric, title, epsilon (the one
    that is drawn) and perhaps ylabel and panels (data set -> title, in the order of the panels). Returns the figure and
    its points.
    """
    panel = partial(_draw_panel, spec=spec)
    shown, left_out = "Means, and bars from the smallest to the largest value", "Values of 0 or less are left out"
    return draw_details(frame, labels, spec, panel, DRAWN, notes, shown, left_out)


def _draw_panel(axes: Axes, panel: Cells, spec: Spec) -> list[pd.DataFrame]:
    """One line per series, over the steps in their order; the points of each."""
    drawn = []
    for one, look, cells in panel:
        points = _points(cells)
        drawn.append(points)
        shown = points[points["least"] > 0]
        bars = (shown["mean"] - shown["least"], shown["most"] - shown["mean"])
        place = shown.index - len(points)  # the last step is that of all; a bound need not have the first
        axes.errorbar(place, shown["mean"], yerr=bars, label=one.label, capsize=2, **look)
    names = max((list(points["step"]) for points in drawn), key=len, default=[])
    axes.set_xticks(range(-len(names), 0), names)
    axes.set(yscale="log", ylabel=spec.get("ylabel") or spec["metric"])
    axes.tick_params(axis="x", labelrotation=40)
    return drawn


def _points(cells: pd.DataFrame) -> pd.DataFrame:
    """Mean, least and largest value of each step over the repetitions."""
    values = pd.DataFrame([dict(detail["steps"]) for detail in cells["detail"]])
    first = cells.iloc[0]
    return pd.DataFrame(
        {
            "dataset": first["dataset"],
            "series": first["series"],
            "epsilon": first["epsilon"],
            "step": list(values.columns),
            "mean": values.mean().to_numpy(),
            "least": values.min().to_numpy(),
            "most": values.max().to_numpy(),
            "repetitions": len(cells),
        }
    )
