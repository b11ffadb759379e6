"""The coefficients of models on one release, as a table: on the scaled features and in the table's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from dpbench.contracts import TextTable
from dpbench.models.fitted import Fitted
from dpbench.report.text import mean_and_error, number

HEADER = ("model", "feature", "scaled", "interval", "own units", "own interval")


def coefficient_table(fits: Sequence[Fitted], about: Mapping[str, str]) -> TextTable:
    """The coefficients of these fits, a row for each model and feature; `about` has a sentence on each model.

    `tidy` has all digits: see `Fitted.table` for its columns.
    """
    tables = [one.table().assign(model=one.model) for one in fits]
    tidy = pd.concat(tables, ignore_index=True)
    tidy = tidy[["model", *(name for name in tidy.columns if name != "model")]]
    rows = [
        [
            row["model"],
            row["feature"],
            _estimate(row["estimate"], row["standard_error"]),
            _interval(row["lower"], row["upper"]),
            _estimate(row["own_estimate"], row["own_standard_error"]),
            _interval(row["own_lower"], row["own_upper"]),
        ]
        for _, row in tidy.iterrows()
    ]
    notes = ["Scaled: numbers from -1 to 1 over their declared bounds"]
    notes += [text for one in fits for text in _notes(one, about.get(one.model, ""))]
    return TextTable(list(HEADER), rows, list(dict.fromkeys(notes)), tidy)


def _estimate(value: float, error: float) -> str:
    return number(value) if math.isnan(error) else mean_and_error(value, error)


def _interval(lower: float, upper: float) -> str:
    return "" if math.isnan(lower) else f"[{number(lower)}, {number(upper)}]"


def _notes(one: Fitted, about: str) -> list[str]:
    """What the numbers of a model are."""
    target = one.design.domain[one.design.target]
    unit = f" in {target.unit}" if target.unit else ""
    if one.linked:
        what = f"effects on the logarithm of the mean of {target.name}"
    elif target.numeric:
        what = f"{target.name}{unit} for one unit of a feature, or of a level against the first one"
    else:
        levels = f"{target.levels[-1]} against {target.levels[0]}"
        what = f"effects on the score of {target.name}, {levels} (its log-odds, if the model is logistic)"
    notes = [f"{one.model}: {about}. Own units: {what}"]
    if any(one.design.domain[name].dates for name in one.design.features):
        notes.append("Dates count in days since 1970-01-01")
    if (level := one.fit.notes.get("level")) is not None and one.fit.intervals is not None:
        notes.append(f"Intervals of {one.model}: {level:.0%}")
    elif one.fit.covariance is None and one.fit.draws is None:
        notes.append(f"{one.model} gives estimates alone, without errors")
    return notes
