"""Figures of the details of the scores of one metric at one epsilon, one panel per data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Spec
from dpbench.report.figures.style import (
    LineStyle,
    add_footnote,
    add_legend,
    empty_figure,
    line_styles,
    set_titles,
    style,
)
from dpbench.report.footnotes import as_text, footnotes
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of

Cells = Iterator[tuple[Series, LineStyle, pd.DataFrame]]  # of a panel: a series, its style and its rows


def draw_details(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    spec: Spec,
    draw_panel: Callable[[Axes, Cells], list[pd.DataFrame]],
    columns: Sequence[str],
    notes: str,
    shown: str,
    *more: str,
) -> tuple[Figure, pd.DataFrame]:
    """The figure, each panel drawn by `draw_panel`, which returns the data drawn, and all of these data, with these
    columns.

    `spec` has name, metric, title, epsilon and perhaps panels (data set -> title, in the order of the panels). `shown`:
    the statistic over the repetitions, in words. `more`: footnotes of this kind of figure.
    """
    known = series_of(frame, labels)
    rows = frame[(frame["metric"] == spec["metric"]) & (frame["epsilon"] == float(spec["epsilon"]))]
    marked = mark_series(rows, known)
    titles = declared_titles(spec)
    datasets = in_order(marked["dataset"], titles) or [""]
    drawn = [pd.DataFrame(columns=list(columns))]
    with style():
        figure, grid = empty_figure(len(datasets))
        for axes, dataset in zip(grid, datasets, strict=True):
            drawn += draw_panel(axes, _cells(marked[marked["dataset"] == dataset], known))
        set_titles(figure, grid, [titles.get(name, name) for name in datasets], spec)
        add_legend(figure, grid, [one.label for one in known])
        named = rows.assign(dataset=rows["dataset"].replace(titles))
        sentences = footnotes(named, known, notes, shown) if len(rows) else [notes]
        add_footnote(figure, as_text([f"ε = {spec['epsilon']:g}", *more, *sentences]))
    return figure, pd.concat([part for part in drawn if len(part)] or drawn, ignore_index=True)


def _cells(rows: pd.DataFrame, known: Sequence[Series]) -> Cells:
    """The series that have trials with a detail."""
    for place, (one, look) in enumerate(zip(known, line_styles(known), strict=True)):
        cells = rows[(rows["series_order"] == place) & (rows["status"] == "done") & rows["detail"].map(bool)]
        if len(cells):
            yield one, look, cells
