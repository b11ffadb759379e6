"""Which methods did best on the tables that are nearest to one's own, and how often such a choice was right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import has_value

NEAREST = 5  # places that a choice rests on
CLOSE = 1.1  # a method is close to the best one if its error is at most so many times that one's
PLACE = ["dataset", "epsilon"]


@dataclass(frozen=True)
class Size:
    """What is known of a table before anything is spent on it: rows, attributes, and coefficients of a regression."""

    rows: int
    columns: int
    coefficients: int

    def at(self, epsilon: float) -> Floats:
        """Where the table lies under a budget (3,): the logarithms of n epsilon, which the noise of a mean is the
        inverse of, of the attributes and of the coefficients. Tables are as far apart as these points.
        """
        return np.log([self.rows * epsilon, self.columns, self.coefficients])


def ranking_metric(report: Mapping[str, Any]) -> str:
    """The metric by which an arena ranks its methods: that of its figure of mean ranks, else the first of its metrics.

    Raises `UserError` if the report names neither.
    """
    ranks = [spec["metric"] for spec in report["figures"] if spec.get("kind") == "mean_ranks"]
    if named := [*ranks, *(report["metrics"] or [])]:
        return str(named[0])
    raise UserError("the experiment names no metric to rank by: give it report.metrics or a figure of kind mean_ranks")


def errors_of(frame: pd.DataFrame, metric: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The mean error of each private method, a column, at each data set and epsilon, a row (`PLACE`).

    A score of which high is good counts as what it lacks of 1. A method has the error inf where a repetition has no
    estimate or failed, and NaN where it was not run.

    Raises `UserError` if the metric ranks nothing: no direction of it is better, or an error is below zero, of which
    there are no multiples.
    """
    rows = frame[(frame["metric"] == metric) & np.isfinite(frame["epsilon"])]
    rows = mark_series(rows, series_of(rows, labels))
    valued, better = has_value(rows), set(rows["direction"])
    if valued.any() and not better & {"lower", "higher"}:
        raise UserError(f"{metric} cannot rank methods: neither low nor high values of it are better")
    value = 1 - rows["value"] if "higher" in better else rows["value"]
    if (value[valued] < 0).any():
        raise UserError(f"{metric} cannot rank methods: errors below zero are no multiples of the lowest")
    value = value.where(valued, math.inf)
    return rows.assign(error=value).groupby([*PLACE, "series"])["error"].mean().unstack("series")


def nearest(errors: pd.DataFrame, sizes: Mapping[str, Size], own: Floats) -> pd.DataFrame:
    """The rows of `errors` at the `NEAREST` places, the nearest one first."""
    away = [math.dist(sizes[dataset].at(epsilon), own) for dataset, epsilon in errors.index]
    return errors.iloc[np.argsort(away, kind="stable")[:NEAREST]]


def ratios_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors as multiples of the lowest at the place: 1 for the lowest, 0 too, inf beside a lowest of 0; NaN where no
    method has a finite one.
    """
    lowest = errors.min(axis=1)
    lowest = lowest.where(np.isfinite(lowest))
    return errors.div(lowest, axis=0).where(errors.ne(lowest, axis=0), 1.0).where(errors.notna())


def ranked(errors: pd.DataFrame) -> pd.DataFrame:
    """The methods over some places, the best first: `ratio`, the geometric mean of `ratios_of`, the `worst` of them, at
    how many places it is `close` to the best, and has a `value`. A method that lacks one at some places comes after
    those that have all, and one without any is left out.
    """
    ratios = ratios_of(errors)
    found = pd.DataFrame(
        {
            "ratio": np.exp(np.log(ratios).mean()),
            "worst": ratios.max(),
            "close": (ratios <= CLOSE).sum(),
            "value": np.isfinite(errors).sum(),
        }
    )
    return found[found["value"] > 0].sort_values(["value", "ratio"], ascending=[False, True], kind="stable")


def left_out(errors: pd.DataFrame, sizes: Mapping[str, Size]) -> pd.DataFrame:
    """What choices would have cost: at each place, as multiples of the lowest error there, that of the method `chosen`
    from the nearest places of the other data sets, and that of the one which is best over all of those, `fixed`. NaN
    where the method was not run.
    """
    ratios, rows = ratios_of(errors), []
    for dataset, epsilon in errors.index:
        others = errors[errors.index.get_level_values("dataset") != dataset]
        near = nearest(others, sizes, sizes[dataset].at(epsilon))
        here = ratios.loc[(dataset, epsilon)]
        first = [ranked(part).index[:1] for part in (near, others)]
        rows.append([here[names[0]] if len(names) else math.nan for names in first])
    return pd.DataFrame(rows, index=errors.index, columns=["chosen", "fixed"])
