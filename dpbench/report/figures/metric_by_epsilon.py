"""A metric against epsilon, one line per series (DD-SSP, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.lines import draw_lines
from dpbench.report.footnotes import footnotes
from dpbench.report.frames.series import declared_titles, series_of
from dpbench.report.picture.picture import Picture
from dpbench.report.text import number


def metric_by_epsilon(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """`spec["metric"]` against epsilon: a panel per data set and delta, a line per series.

    Points are means with bars of one standard error, in the metric's unit, side by side where epsilons
    coincide; series at eps = inf are horizontal lines with a band of one standard error, or with bars at the
    edge where there are several. Failures and `notes` are below. `spec` has name, metric, title and perhaps

    - xlabel, ylabel, yscale ("log")
    - ylim: [low, high], or such a pair by panel; means outside are marked at the edge, with their value
    - panels: data set -> title, in the order of the panels
    - lines: values at which a thin line is drawn, such as a nominal level, or {label: value} to name it in the legend
    - relative: {metric: [mechanism/model, ...]}, the references of which it is shown as a multiple (see `as_multiples`)
    - bands: [{between: [mechanism/model, mechanism/model], label}], two thin lines, the second with stars, and the
      region between their means shaded where both have one.

    The data drawn are those of `draw_lines`.
    """
    known = series_of(frame, labels)
    rows = frame[frame["metric"] == spec["metric"]]
    titles = declared_titles(spec)
    sentences = footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    rows, panels = _by_delta(rows, titles)
    return draw_lines(rows, known, {**spec, "panels": panels}, sentences, notes)


def _by_delta(rows: pd.DataFrame, titles: Mapping[str, str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows with a panel for each delta of a data set that has several, and the titles of the panels in their order.

    A reference is in the panel of its delta, or in every panel of its data set if none has its delta.
    """
    private = np.isfinite(rows["epsilon"])
    panels: dict[str, str] = {}
    parts = [rows.iloc[:0]]
    for dataset in [*titles, *sorted(set(rows["dataset"]) - set(titles))]:
        here = rows[rows["dataset"] == dataset]
        reference = ~private[here.index]
        deltas = sorted(here.loc[~reference, "delta"].dropna().unique())
        if len(deltas) < 2:
            parts.append(here)
            panels |= {dataset: titles[dataset]} if dataset in titles else {}
            continue
        for delta in deltas:
            name = f"{titles.get(dataset, dataset)}, δ = {number(delta)}"
            same = here["delta"] == delta
            shown = here[same] if (same & reference).any() else here[same | reference]
            parts.append(shown.assign(panel=name))
            panels[name] = name
    return pd.concat(parts, ignore_index=True), panels
