"""Series (one line of a figure, one row of a table), their labels and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dpbench.errors import unknown
from dpbench.report.frame import SERIES


@dataclass(frozen=True)
class Series:
    """One method as it is compared: `mechanism`, its `calibration`, the `variant` of its settings, `model`.

    `rank` is the place of mechanism and model among the report's labels (equal for all calibrations of one
    method), `place` the one among the method's own calibrations and variants.
    """

    mechanism: str
    calibration: str
    variant: str
    model: str
    label: str
    rank: int
    place: int

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The values of the frame's columns `SERIES` that select this series."""
        return self.mechanism, self.calibration, self.variant, self.model

    @property
    def method(self) -> str:
        """The name by which reports give it a label: "mechanism/model"."""
        return f"{self.mechanism}/{self.model}"


def series_of(frame: pd.DataFrame, labels: Mapping[str, str]) -> list[Series]:
    """The series of the frame in the order of `labels` ("mechanism/model" -> label), then by name.

    A label gets its calibration in brackets if its mechanism occurs under several, or if it is "paper".
    Methods without a label are called "mechanism / model".
    """
    columns = [frame[column].astype("object") for column in SERIES]
    found = sorted(set(zip(*columns, strict=True)))
    calibrations: dict[str, set[str]] = {}
    for mechanism, calibration, _, _ in found:
        calibrations.setdefault(mechanism, set()).add(calibration)
    ranks = _ranks([f"{row[0]}/{row[3]}" for row in found], labels)
    found.sort(key=lambda row: (ranks[f"{row[0]}/{row[3]}"], row[1] == "paper", row[1], row[2]))
    series: list[Series] = []
    for mechanism, calibration, variant, model in found:
        rank = ranks[f"{mechanism}/{model}"]
        told = calibration == "paper" or (bool(calibration) and len(calibrations[mechanism]) > 1)
        label = labels.get(f"{mechanism}/{model}", f"{mechanism} / {model}")
        label += f" ({calibration})" if told else ""
        label += f" [{variant}]" if variant else ""
        place = sum(other.rank == rank for other in series)
        series.append(Series(mechanism, calibration, variant, model, label, rank, place))
    return series


def _ranks(methods: list[str], labels: Mapping[str, str]) -> dict[str, int]:
    """The place of each method: that of its label, so that one label has one colour in every figure; methods without
    a label follow in alphabetical order."""
    order = [*dict.fromkeys(labels.values()), *sorted(set(methods) - set(labels))]
    return {method: order.index(labels.get(method, method)) for method in methods}


def shown(
    frame: pd.DataFrame, labels: Mapping[str, str], names: Sequence[str] | None
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of the methods with these labels, all rows for None, and the labels that have no row.

    Raises `UserError` for a label that no method has.
    """
    if names is None:
        return frame, []
    for name in names:
        if name not in labels.values():
            raise unknown("label", name, set(labels.values()))
    found = (frame["mechanism"] + "/" + frame["model"]).map(dict(labels))
    return frame[found.isin(list(names))], [name for name in names if not (found == name).any()]


def mark_series(rows: pd.DataFrame, known: Sequence[Series]) -> pd.DataFrame:
    """Rows of a frame or its summary with `series`, the label, and `series_order`, its place in `known`."""
    order = {one.identity: place for place, one in enumerate(known)}
    identities = zip(*(rows[column] for column in SERIES), strict=True)
    places = [order[mechanism, calibration, variant, model] for mechanism, calibration, variant, model in identities]
    return rows.assign(series=[known[place].label for place in places], series_order=places)
