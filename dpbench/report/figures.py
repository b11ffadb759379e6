"""The kinds of figure that a report can ask for; each has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpbench.errors import unknown
from dpbench.report.histogram import histogram
from dpbench.report.metric_by_epsilon import metric_by_epsilon
from dpbench.report.metric_by_setting import metric_by_setting
from dpbench.report.polynomial import polynomial

KINDS: dict[str, Callable[..., tuple[Figure, pd.DataFrame]]] = {
    "metric_by_epsilon": metric_by_epsilon,
    "metric_by_setting": metric_by_setting,
    "histogram": histogram,
    "polynomial": polynomial,
}


def draw_figure(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """The figure of `spec` and what it draws, by its `kind` ("metric_by_epsilon" if left out).

    Raises `UserError` for an unknown kind.
    """
    kind = str(spec.get("kind", "metric_by_epsilon"))
    if kind not in KINDS:
        raise unknown("kind of figure", kind, KINDS)
    return KINDS[kind](frame, labels, spec, notes)
