"""The note on methods whose trials were made by several versions of their code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dpbench.config.reports import OTHER_METRICS
from dpbench.config.specs import Spec
from dpbench.grid.records import TrialKey
from dpbench.report.frames.frame import SERIES
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import series_of
from dpbench.report.frames.settings import calibration_of, is_placed

NAMED = 4  # up to this many methods are named, more are counted


def several_versions(chosen: Sequence[Results], labels: Mapping[str, str], spec: Spec) -> list[str]:
    """The sentence on methods for which several versions of the mechanism's code made the trials on a data set that a
    figure or table shows; none if there are none. An empty `spec` shows all trials.
    """
    codes: dict[tuple[str, ...], dict[str, set[str | None]]] = {}
    for key in (key for one in chosen for key in _keys_shown(one, spec)):
        mechanism, dataset = key.release.mechanism, str(key.release.dataset["name"])
        of_method = codes.setdefault((mechanism.name, calibration_of(key), "", key.fit.model.name), {})
        of_method.setdefault(dataset, set()).add(mechanism.version)
    known = series_of(pd.DataFrame(list(codes), columns=list(SERIES)), labels)
    names = spec.get("show")
    every = [one for one in known if names is None or one.name in names]
    mixed = [one.label for one in every if any(len(made) > 1 for made in codes[one.identity].values())]
    if not mixed:
        return []
    named = "; ".join(mixed) if len(mixed) <= NAMED else f"{len(mixed)} of {len(every)} methods"
    return [f"More than one version of the code made what is shown{'' if len(mixed) == len(every) else f' of {named}'}"]


def _keys_shown(one: Results, spec: Spec) -> Iterator[TrialKey]:
    """The keys of the trials that the figure places and that have its metric, one of each setting."""
    rows, metric = one.rows.scores, spec.get("metric")
    if metric is not None and metric not in OTHER_METRICS:
        rows = rows[rows["metric"] == metric]
    keys = (one.rows.keys[place] for place in rows["setting"].unique())
    return (key for key in keys if is_placed(key, spec))
