"""A bound, the quantity that it bounds, and the steps in between, one panel per data set (excess risk, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.details import Cells, draw_details
from dpbench.report.picture.picture import Axis, Panel, Picture, Points, around

DRAWN = ["dataset", "series", "epsilon", "step", "mean", "least", "most", "repetitions"]


def steps(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The `steps` in the details of the scores of `spec["metric"]`, on a logarithmic axis.

    The detail's steps are pairs of a name and a number, from the bound to the measured value; means over the
    repetitions are drawn, with a bar from the smallest to the largest. `spec` has name, metric, title, epsilon (the one
    that is drawn) and perhaps ylabel and panels (data set -> title, in the order of the panels). The data drawn are the
    points.
    """
    shown, left_out = "Means, and bars from the smallest to the largest value", "Values of 0 or less are left out"
    return draw_details(frame, labels, spec, partial(_panel, spec=spec), DRAWN, notes, shown, left_out)


def _panel(title: str, cells: Cells, spec: Spec) -> tuple[Panel, list[pd.DataFrame]]:
    """One line per series, over the steps in their order; the points of each."""
    drawn = [_points(rows) for _, rows in cells]
    names = max((list(points["step"]) for points in drawn), key=len, default=[])
    placed = [one.assign(place=one.index - len(one)) for one in drawn]  # the last is that of all, not the first
    rows = pd.concat(placed or [pd.DataFrame(columns=[*DRAWN, "place"])])
    rows = rows[rows["least"] > 0]
    ticks = dict(zip(map(float, range(-len(names), 0)), names, strict=True))
    x = Axis("", around([*ticks]), ticks=ticks, words="step", turned=True)
    y = Axis(
        spec.get("ylabel") or spec["metric"], around(rows["mean"], rows["least"], rows["most"], log=True), log=True
    )
    tip = ["series", "step", "mean", "least", "most", "repetitions"]
    return Panel(title, x, y, [Points(rows, "place", "mean", ("least", "most"), tip=tip)], title), drawn


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
