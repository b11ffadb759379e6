"""How often a method is better than the trivial answer, by how many rows and how much epsilon a coefficient has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbench.config import compose, declared_rows
from dpbench.config.specs import Spec
from dpbench.data.encode import Design
from dpbench.errors import UserError
from dpbench.report.claims.statements import LEVEL
from dpbench.report.figures.lines import draw_lines
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.tables.better import judged
from dpbench.report.text import number

CASE = ["series_order", "epsilon", "dataset"]


def better_by_size(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of data sets and epsilons at which `spec["metric"]` is better than `spec["level"]`, the trivial
    answer's (as in `better_table`), against n epsilon / d, rounded up to a power of ten: n rows, d coefficients.

    n is what the data set's card says, or the number of training rows asked for where that is less; a data set that has
    no config with a card, such as one's own, is left out. Returns the figure and the data drawn (see `draw_lines`).
    """
    rows = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    known, titles = series_of(rows, labels), declared_titles(spec)
    marked = mark_series(rows, known)
    better = judged(marked, float(spec["level"]))["better"].rename("value").astype(float)
    cases = marked.drop_duplicates(CASE).drop(columns="value").merge(better.reset_index(), on=CASE)
    each = zip(cases["dataset"], cases["train_rows"], cases["epsilon"], strict=True)
    sizes = np.array([epsilon * _rows_per_coefficient(name, most) for name, most, epsilon in each])
    cases = cases.assign(x=10.0 ** np.ceil(np.log10(sizes)), panel="", unit="", status="done")
    cases = cases[np.isfinite(sizes)].drop(columns="series_order")
    about = ", divided by that of the trivial answer on the same split," if spec.get("relative") else ""
    sentence = (
        f"The share of the pairs of a data set and an ε at which the mean of {spec['metric']}{about} is better than "
        f"{number(float(spec['level']))} by its {100 * LEVEL:.0f} % interval, with its standard error. At 100 are "
        "those from 10 to 100"
    )
    below = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    return draw_lines(cases, known, spec, [sentence, *below], notes)


@lru_cache(maxsize=256)
def _rows_per_coefficient(dataset: str, most: int) -> float:
    """n / d; nan where it is not declared."""
    try:
        made = compose([f"dataset={dataset}"])
    except UserError:
        return math.nan
    rows = declared_rows(made.dataset)
    return (
        math.nan if rows is None else min(rows, most or rows) / len(Design(made.dataset.domain, **made.design).columns)
    )
