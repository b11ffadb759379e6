"""How often a method is better than the trivial answer, by the rows and the epsilon for each coefficient or column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from dpbench.config import compose, composed, declared_rows
from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.errors import UserError, check_known
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.series import Series, declared_titles, mark_series, series_of
from dpbench.report.tables.better import about_level, judged
from dpbench.report.tables.cells import NOT_RUN
from dpbench.report.tables.runs import trials_at

CASE = ["series_order", "epsilon", "dataset"]
TIDY = ["most", "series", "better", "worse", "cases", "without_value", "runs"]
EACH = ("coefficient", "column")  # what d counts


def better_by_size_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
) -> TextTable:
    """At how many pairs of a data set and an epsilon the mean of `spec["metric"]` is better than `spec["level"]`, the
    trivial answer's, and at how many worse (as in `better_table`): a row for each private series, that better at most
    on top, a column for each power of ten of n epsilon / d (see `cases_by_size`). d counts what `spec["each"]` is, one
    of `EACH`: coefficients of a regression unless given.

    A paper publishes no such counts: `published` is not read.
    """
    cases, known = cases_by_size(frame, labels, spec)
    found = cases.groupby(["series_order", "most"])[["better", "worse", "datasets", "without", "runs"]].sum()
    order = list(found["better"].groupby("series_order").sum().sort_values(ascending=False, kind="stable").index)
    most = sorted(cases["most"].unique())
    cells = dict(zip(found.index, found.to_dict("records"), strict=True))
    lines = [[known[place].label, *(_text(cells.get((place, end))) for end in most)] for place in order]
    by_size = f"n ε / d, training rows times ε for each {each_of(spec)}"
    below = [f"Columns: {by_size}. {about_level(spec)}", *size_footnotes(frame, known, spec)]
    tidy = found.reset_index().rename(columns={"without": "without_value", "datasets": "cases"})
    tidy = tidy.assign(series=[known[place].label for place in tidy["series_order"]])[TIDY]
    marked = mark_series(_private(frame, spec), known).merge(cases[[*CASE, "most"]], on=CASE)
    trials = trials_at(marked, ["series_order"], "most", [(place,) for place in order], [None, *most])
    return TextTable(["", *(f"{end / 10:,.10g} to {end:,.10g}" for end in most)], lines, below, tidy, trials)


def cases_by_size(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec) -> tuple[pd.DataFrame, list[Series]]:
    """The pairs of a data set and an epsilon with what `judged` says of each series there, and `most`: n epsilon / d
    rounded up to a power of ten, for n rows and d coefficients or columns. Also the series.

    n is what the data set's card says, or the number of training rows asked for where that is less; a data set that has
    no config with a card, such as one's own, is left out.
    """
    rows = _private(frame, spec)
    known = series_of(rows, labels)
    marked = mark_series(rows, known)
    found = judged(marked, float(spec["level"])).reset_index()
    cases = marked.drop_duplicates(CASE).drop(columns="value").merge(found, on=CASE)
    each = zip(cases["dataset"], cases["train_rows"], cases["epsilon"], strict=True)
    sizes = np.array([epsilon * _rows_for_each(each_of(spec), name, most) for name, most, epsilon in each])
    return cases.assign(most=10.0 ** np.ceil(np.log10(sizes)))[np.isfinite(sizes)], known


def each_of(spec: Spec) -> str:
    """What d counts. Raises `UserError` for what it cannot."""
    each = str(spec.get("each", EACH[0]))
    check_known("each", each, EACH)
    return each


def size_footnotes(frame: pd.DataFrame, known: Sequence[Series], spec: Spec) -> list[str]:
    """The footnotes of `sweep_footnotes`; none of an empty frame."""
    rows = _private(frame, spec)
    return (
        sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(declared_titles(spec))), known) if len(rows) else []
    )


def _private(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    rows: pd.DataFrame = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    return rows


@lru_cache(maxsize=256)
def _rows_for_each(each: str, dataset: str, most: int) -> float:
    """n / d; nan where it is not declared."""
    try:
        if each == "column":
            table = Dataset.of(composed([f"dataset={dataset}"])["dataset"])
            rows, d = declared_rows(table), len(table.domain.names)
        else:
            made = compose([f"dataset={dataset}"])
            rows, d = declared_rows(made.dataset), len(Design(made.dataset.domain, **made.design).columns)
    except UserError:
        return math.nan
    return math.nan if rows is None else min(rows, most or rows) / d


def _text(cell: Mapping[str, int] | None) -> str:
    return NOT_RUN if cell is None else f"{cell['better']} better, {cell['worse']} worse, of {cell['datasets']}"
