"""How often a method is better than the trivial answer, by how many rows and how much epsilon a coefficient has."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpbench.config.specs import Spec
from dpbench.report.figures.lines import draw_lines
from dpbench.report.frames.frame import LEVEL
from dpbench.report.picture.picture import Picture
from dpbench.report.tables.better import compared
from dpbench.report.tables.better_by_size import cases_by_size, size_footnotes


def better_by_size(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The share of data sets and epsilons at which `spec["metric"]` is better than `spec["level"]`, the trivial
    answer's, against n epsilon / d, rounded up to a power of ten: the counts are those of `better_by_size_table`.

    The data drawn are those of `draw_lines`.
    """
    cases, known = cases_by_size(frame, labels, spec)
    value = cases["better"].astype(float)
    cases = cases.assign(value=value, x=cases["most"], panel="", unit="", status="done").drop(columns="series_order")
    sentence = (
        f"The share of the pairs of a data set and an ε at which {compared(spec)} by its {100 * LEVEL:.0f} % interval, "
        "with its standard error. At 100 are those from 10 to 100"
    )
    return draw_lines(cases, known, spec, [sentence, *size_footnotes(frame, known, spec)], notes)
