"""The methods that did best on the data sets most similar to one's own, and how good such choices were."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpbench.config.specs import Report
from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import has_value

NEAREST = 5  # places that a choice is based on
CLOSE = 1.1  # a method is close to the best one if its error is at most this multiple of it
PLACE = ["dataset", "epsilon"]


@dataclass(frozen=True)
class Size:
    """What is known of a table without any budget: rows, attributes, and coefficients of a regression."""

    rows: int
    columns: int
    coefficients: int

    def at(self, epsilon: float) -> Floats:
        """The coordinates of the table under a budget (3,): the logarithms of n epsilon (the noise of a mean is its
        inverse), of the attributes and of the coefficients. The distance of tables is that of these points.
        """
        return np.log([self.rows * epsilon, self.columns, self.coefficients])


def ranking_metric(report: Report) -> str:
    """The metric by which an arena ranks its methods: that of its figure of mean ranks, else the first of its metrics.

    Raises `UserError` if the report names neither.
    """
    ranks = [spec["metric"] for spec in report["figures"] if spec.get("kind") == "mean_ranks"]
    if named := [*ranks, *(report["metrics"] or [])]:
        return str(named[0])
    raise UserError("the experiment names no metric to rank by: give it report.metrics or a figure of kind mean_ranks")


def errors_of(frame: pd.DataFrame, metric: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The mean error of each private method, a column, at each data set and epsilon, a row (`PLACE`).

    A score s that is better if higher counts as 1 - s. A method has the error inf where a repetition has no
    estimate or failed, and NaN where it was not run.

    Raises `UserError` if the metric cannot rank methods: it has no better direction, or an error is below zero, which
    has no multiples.
    """
    rows = frame[(frame["metric"] == metric) & np.isfinite(frame["epsilon"])]
    rows = mark_series(rows, series_of(rows, labels))
    valued, better = has_value(rows), set(rows["direction"])
    if valued.any() and not better & {"lower", "higher"}:
        raise UserError(f"{metric} cannot rank methods: neither low nor high values of it are better")
    value = 1 - rows["value"] if "higher" in better else rows["value"]
    if (value[valued] < 0).any():
        raise UserError(f"{metric} cannot rank methods: errors below zero have no ratio to the lowest")
    value = value.where(valued, math.inf)
    return rows.assign(error=value).groupby([*PLACE, "series"])["error"].mean().unstack("series")


def nearest(errors: pd.DataFrame, sizes: Mapping[str, Size], own: Floats) -> pd.DataFrame:
    """The rows of `errors` at the `NEAREST` places, the nearest one first."""
    away = [math.dist(sizes[dataset].at(epsilon), own) for dataset, epsilon in errors.index]
    return errors.iloc[np.argsort(away, kind="stable")[:NEAREST]]


def ratios_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors as multiples of the lowest at the place: 1 for the lowest, even if it is 0; inf for the others if the
    lowest is 0; NaN where no method has a finite one.
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
    """The errors of past choices: at each place, as multiples of the lowest error there, that of the method `chosen`
    from the nearest places of the other data sets, and that of the `fixed` one, the best over all of those. NaN
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
