"""Bias, standard deviation and coverage of each coefficient, with those of the naive intervals (BinAgg, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from dpbench.data.domain import Floats
from dpbench.report.claims.agreement import RULE, counted, verdict
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.tables.text_table import TextTable
from dpbench.report.text import mean_and_error, number

LEVEL = "model.parameters.level"  # of the intervals
COLUMNS = ("bias", "empirical SD", "theoretical SD", "naive theoretical SD", "coverage", "naive coverage")
TIDY = ["draw", "series", "coefficient", "column", "value", "se", "count", "published", "verdict"]
Numbers = dict[str, tuple[int, Floats, Floats]]  # column -> repetitions, value and standard error by coefficient


def coverage_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], published: Mapping[str, Any]
) -> TextTable:
    """A row a coefficient, of each value of the setting `spec["x"]` and each calibration.

    bias: mean of the estimate less the population's coefficient; empirical SD: of the estimates; theoretical SD: mean
    half-width of the intervals over the normal quantile of their level; coverage: part of the repetitions whose
    interval holds the population's coefficient. All are from the detail of the metric "coverage". `spec["method"]` and
    `spec["naive"]` are labels; of the latter only the theoretical SD and the coverage are shown.

    `published` may have rows (a coefficient's numbers, in the order of the columns), repetitions and digit.
    """
    methods = (frame["mechanism"] + "/" + frame["model"]).map(dict(labels))
    rows = frame[(frame["metric"] == "coverage") & methods.isin([spec["method"], spec["naive"]])]
    known = series_of(rows, labels)
    marked = mark_series(rows, known).assign(method=methods[rows.index])
    found = []
    for (draw, calibration), cell in marked.groupby(["x", "calibration"], sort=True):
        series = f"{spec['method']} ({calibration})" if calibration else str(spec["method"])
        found += [
            {"draw": number(float(str(draw))), "series": series, **row} for row in _coefficients(cell, spec, published)
        ]
    tidy = pd.DataFrame(found, columns=TIDY)
    lines = []
    for place, row in tidy.groupby(TIDY[:3], sort=False):
        cells = {one["column"]: _text(one) for _, one in row.iterrows()}
        lines.append([*map(str, place), *(cells.get(column, "not run") for column in COLUMNS)])
    told = ["Cells: number ± standard error, that of an SD as if the estimates were normal"]
    told += sweep_footnotes(marked, known)
    if published:
        told += [
            f"Paper: {published['where']}, over {published['repetitions']} repetitions of one draw of coefficients"
        ]
        told += [RULE, counted(tidy.loc[tidy["verdict"] != "", "verdict"])]
    return TextTable([str(spec.get("xlabel", spec["x"])), "method", "coefficient", *COLUMNS], lines, told, tidy)


def _coefficients(
    cell: pd.DataFrame, spec: Mapping[str, Any], published: Mapping[str, Any]
) -> Iterator[dict[str, object]]:
    """A row for each coefficient and column: its value, standard error and verdict."""
    own, naive = (_numbers(cell[cell["method"] == spec[role]]) for role in ("method", "naive"))
    found = own | {f"naive {name}": naive[name] for name in ("theoretical SD", "coverage") if name in naive}
    beside = np.array(published.get("rows") or np.full((0, len(COLUMNS)), math.nan))
    names: list[str] = next((detail["columns"] for detail in cell["detail"] if detail), [])
    for place, name in enumerate(names):
        for order, column in enumerate(COLUMNS):
            if column not in found:
                continue
            count, values, errors = found[column]
            row = {"value": values[place], "se": errors[place], "count": count, "published": math.nan, "verdict": ""}
            if place < len(beside):
                row["published"] = beside[place, order]
                scale = beside[place, COLUMNS.index("empirical SD")] if column == "bias" else None
                row["verdict"] = verdict(row["value"], row["se"], count, row["published"], published, scale)
            yield {"coefficient": name, "column": column, **row}


def _numbers(rows: pd.DataFrame) -> Numbers:
    """What one method's intervals give, nothing for fewer than two repetitions."""
    details = [detail for detail in rows["detail"] if detail]
    n = len(details)
    if n < 2:
        return {}
    parts = ("coefficients", "population", "lower", "upper")
    estimate, truth, lower, upper = (np.array([detail[part] for detail in details]) for part in parts)
    half = (upper - lower) / 2 / NormalDist().inv_cdf((1 + float(rows[LEVEL].iloc[0])) / 2)
    sd = (estimate - truth).std(axis=0, ddof=1)
    held = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    return {
        "bias": (n, (estimate - truth).mean(axis=0), sd / math.sqrt(n)),
        "empirical SD": (n, sd, sd / math.sqrt(2 * (n - 1))),
        "theoretical SD": (n, half.mean(axis=0), half.std(axis=0, ddof=1) / math.sqrt(n)),
        "coverage": (n, held, np.sqrt(held * (1 - held) / n)),
    }


def _text(row: pd.Series) -> str:
    ours = mean_and_error(row["value"], row["se"])
    return f"{ours}, paper {number(row['published'])}: {row['verdict']}" if row["verdict"] else ours
