"""A bound beside what it bounds, and where it loses in between, one panel a data set (excess risk, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.report.figures.style import add_footnote, add_legend, empty_figure, line_styles, set_titles, style
from dpbench.report.footnotes import as_text, footnotes
from dpbench.report.frames.panels import declared_titles, in_order
from dpbench.report.frames.series import Series, mark_series, series_of

DRAWN = ["dataset", "series", "epsilon", "step", "mean", "least", "most", "repetitions"]


def steps(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the `steps` that the scores of `spec["metric"]` carry in their detail, on a logarithmic axis.

    The detail's steps are pairs of a name and a number, from the bound to what was measured; means over the repetitions
    are drawn, with a bar from the least to the largest. `spec` has name, metric, title, epsilon (the one that is drawn)
    and perhaps ylabel and panels (data set -> title, in the order of the panels). Returns the figure and its points.
    """
    known = series_of(frame, labels)
    rows = frame[(frame["metric"] == spec["metric"]) & (frame["epsilon"] == float(spec["epsilon"]))]
    marked = mark_series(rows, known)
    titles = declared_titles(spec)
    datasets = in_order(marked["dataset"], titles) or [""]
    drawn = [pd.DataFrame(columns=DRAWN)]
    with style():
        figure, grid = empty_figure(len(datasets))
        for axes, dataset in zip(grid, datasets, strict=True):
            drawn += _draw_panel(axes, marked[marked["dataset"] == dataset], known, spec)
        set_titles(figure, grid, [titles.get(name, name) for name in datasets], spec)
        add_legend(figure, grid, [one.label for one in known])
        named = rows.assign(dataset=rows["dataset"].replace(titles))
        told = footnotes(named, known, notes, "Means, and bars from the least to the largest") if len(rows) else [notes]
        add_footnote(figure, as_text([f"ε = {spec['epsilon']:g}", "What is not above 0 is left out", *told]))
    return figure, pd.concat([part for part in drawn if len(part)] or drawn, ignore_index=True)


def _draw_panel(axes: Axes, rows: pd.DataFrame, known: Sequence[Series], spec: Mapping[str, Any]) -> list[pd.DataFrame]:
    """A line a series, over the steps in their order; the points of each."""
    drawn = []
    for place, (one, look) in enumerate(zip(known, line_styles(known), strict=True)):
        cells = rows[(rows["series_order"] == place) & (rows["status"] == "done") & rows["detail"].map(bool)]
        if not len(cells):
            continue
        points = _points(cells)
        drawn.append(points)
        shown = points[points["least"] > 0]
        bars = (shown["mean"] - shown["least"], shown["most"] - shown["mean"])
        axes.errorbar(shown["step"], shown["mean"], yerr=bars, label=one.label, capsize=2, **look)
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
