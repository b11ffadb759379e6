"""Figures of the details of the scores of one metric at one epsilon, one panel per data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.footnotes import as_text, footnotes
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of
from dpbench.report.picture.looks import line_styles
from dpbench.report.picture.picture import Panel, Picture, titled

Cells = Sequence[tuple[Series, pd.DataFrame]]  # of a panel: a series that has trials with a detail, and its rows


def draw_details(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    spec: Spec,
    panel_of: Callable[[str, Cells], tuple[Panel, list[pd.DataFrame]]],
    columns: Sequence[str],
    notes: str,
    shown: str,
    *more: str,
) -> Picture:
    """A picture of the panels that `panel_of` makes of a title and cells, along with the data drawn, which have these
    columns.

    `spec` has name, metric, title, epsilon and perhaps panels (data set -> title, in the order of the panels). `shown`:
    the statistic over the repetitions, in words. `more`: footnotes of this kind of figure.
    """
    known = series_of(frame, labels)
    rows = frame[(frame["metric"] == spec["metric"]) & (frame["epsilon"] == float(spec["epsilon"]))]
    marked = mark_series(rows, known)
    done = marked[(marked["status"] == "done") & marked["detail"].map(bool)]
    titles, panels, drawn = declared_titles(spec), [], list[pd.DataFrame]()
    for dataset in in_order(marked["dataset"], titles) or [""]:
        by_series = dict(iter(done[done["dataset"] == dataset].groupby("series_order")))
        cells = [(one, by_series[place]) for place, one in enumerate(known) if place in by_series]
        panel, points = panel_of(titles.get(dataset, dataset), cells)
        panels.append(panel)
        drawn += points
    named = rows.assign(dataset=rows["dataset"].replace(titles))
    sentences = footnotes(named, known, notes, shown) if len(rows) else [notes]
    footnote = as_text([f"ε = {spec['epsilon']:g}", *more, *sentences])
    return titled(spec, panels, line_styles(known), footnote, drawn, columns)
