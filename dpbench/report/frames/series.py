"""Series (a line of a figure, a row of a table) and panels (a data set each): labels, titles and order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.errors import check_known
from dpbench.privacy.budget import CALIBRATIONS
from dpbench.report.frames.frame import SERIES


@dataclass(frozen=True)
class Series:
    """One method as it is compared: `mechanism`, its `calibration`, the `variant` of its settings, `model`.

    `name` is the label of mechanism and model, `label` distinguishes calibrations and variants too; `place` is the
    index among the method's own calibrations and variants.
    """

    mechanism: str
    calibration: str
    variant: str
    model: str
    name: str
    label: str
    place: int

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The values of the frame's columns `SERIES` that select this series."""
        return self.mechanism, self.calibration, self.variant, self.model

    @property
    def method(self) -> str:
        """The name under which a report declares its label: "mechanism/model"."""
        return f"{self.mechanism}/{self.model}"


def series_of(frame: pd.DataFrame, labels: Mapping[str, str]) -> list[Series]:
    """The series of the frame in the order of `labels` ("mechanism/model" -> label), then by name.

    A label gets its calibration in brackets if its mechanism occurs under several, or if it is not "tight".
    Methods without a label are called "mechanism / model".
    """
    return series_among(frame[list(SERIES)].drop_duplicates().itertuples(index=False, name=None), labels)


def series_among(identities: Iterable[tuple[str, ...]], labels: Mapping[str, str]) -> list[Series]:
    """The same for the values of `SERIES`."""
    found = sorted(set(identities))
    calibrations: dict[str, set[str]] = {}
    for mechanism, calibration, _, _ in found:
        calibrations.setdefault(mechanism, set()).add(calibration)
    order = [*dict.fromkeys(labels.values())]
    names = {row: labels.get(f"{row[0]}/{row[3]}", f"{row[0]} / {row[3]}") for row in found}
    order += sorted(set(names.values()) - set(order))
    found.sort(key=lambda row: (order.index(names[row]), (*CALIBRATIONS, row[1]).index(row[1]), row[2]))
    series: list[Series] = []
    for mechanism, calibration, variant, model in found:
        name = names[mechanism, calibration, variant, model]
        named = calibration in ("paper", "authors") or (bool(calibration) and len(calibrations[mechanism]) > 1)
        label = name + (f" ({calibration})" if named else "") + (f" [{variant}]" if variant else "")
        place = sum(other.name == name for other in series)
        series.append(Series(mechanism, calibration, variant, model, name, label, place))
    return series


def shown(
    frame: pd.DataFrame, labels: Mapping[str, str], names: Sequence[str] | None
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of the methods with these labels, all rows for None, and the labels that have no row."""
    if names is None:
        return frame, []
    codes, methods = pd.factorize(frame["mechanism"] + "/" + frame["model"])
    found = [labels.get(method) for method in methods]
    return frame[np.array([label in names for label in found], dtype=bool)[codes]], [
        name for name in names if name not in found
    ]


def of_calibrations(frame: pd.DataFrame, calibrations: Sequence[str] | None) -> pd.DataFrame:
    """The rows without those of other calibrations, of mechanisms that have some of these; all rows for None."""
    if calibrations is None:
        return frame
    asked = frame["calibration"].isin(calibrations)
    return frame[asked | ~frame["mechanism"].isin(frame.loc[asked, "mechanism"].unique())]


def ordered(labels: Mapping[str, str], names: Sequence[str] | None) -> dict[str, str]:
    """The labels, these ones first, in this order; the others follow.

    Raises `UserError` for a label that no method has.
    """
    known = set(labels.values())
    for name in names or ():
        check_known("label", name, known)
    order = [*dict.fromkeys([*(names or ()), *labels.values()])]
    place = {name: rank for rank, name in enumerate(order)}
    return dict(sorted(labels.items(), key=lambda item: place[item[1]]))


def mark_series(rows: pd.DataFrame, known: Sequence[Series]) -> pd.DataFrame:
    """Rows of a frame or its summary with `series`, the label, and `series_order`, its place in `known`."""
    order: dict[object, int] = {one.identity: place for place, one in enumerate(known)}
    group = rows.groupby(list(SERIES), sort=False).ngroup().to_numpy()
    first = rows[list(SERIES)].take(np.unique(group, return_index=True)[1])
    found = np.array([order[identity] for identity in first.itertuples(index=False, name=None)], dtype="int64")
    places = found[group]
    return rows.assign(series=pd.array([one.label for one in known], dtype="str").take(places), series_order=places)


def without_variant(labels: pd.Series[str]) -> pd.Series[str]:
    """The labels of series without the settings by which a method's own differ.

    >>> without_variant(pd.Series(["PATE (tight) [teachers=5]", "PATE (tight)"])).unique().tolist()
    ['PATE (tight)']
    """
    return labels.str.replace(r" \[.*\]$", "", regex=True)


def declared_titles(spec: Spec) -> dict[str, str]:
    """The titles that `spec["panels"]` declares, by data set."""
    return {str(name): str(title) for name, title in (spec.get("panels") or {}).items()}


def in_order(names: Iterable[str], titles: Mapping[str, str]) -> list[str]:
    """The names once each: those with a title in the order of the titles, then the others by name.

    >>> in_order(["b", "a", "c", "a"], {"c": "C", "d": "D"})
    ['c', 'a', 'b']
    """
    found = set(names)
    return [*(name for name in titles if name in found), *sorted(found - set(titles))]
