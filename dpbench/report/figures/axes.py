"""The x axis of what was run, the axis of the metric, and what both show besides points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpbench.config.specs import Spec
from dpbench.report.picture.looks import DOTTED, Look
from dpbench.report.picture.picture import Axis, Levels, around
from dpbench.report.text import number, powers

LEVEL = Look(dashes=DOTTED, width=0.9)
LETTER, GAP = 0.015, 0.01  # of a tick's label, and between two, as parts of the width of the narrowest panel


def x_axis(points: pd.DataFrame, spec: Spec) -> Axis:
    """`spec["xscale"]`, or linear for three values and more that are evenly spaced and logarithmic for others, with
    ticks at exactly the values of the trials, labelled where there is space, with their names in
    `spec["categories"]`, if any.
    """
    names = spec.get("categories") or {}
    ticks = sorted(points["x"].unique())
    label = "" if names else spec.get("xlabel") or "privacy budget ε"
    if not ticks:
        return Axis(label, (0.0, 1.0), ticks={})
    linear = spec.get("xscale", "linear" if _evenly_spaced(ticks) and not names else "log") == "linear"
    if len(ticks) > 1 and linear:
        low, high = 1.05 * ticks[0] - 0.05 * ticks[-1], 1.05 * ticks[-1] - 0.05 * ticks[0]
        places = [(tick - low) / (high - low) for tick in ticks]
    else:
        linear, low, high = False, ticks[0] / 1.35, ticks[-1] * 1.35
        places = [math.log(tick / low) / math.log(high / low) for tick in ticks]
    texts = {value: names.get(value) or _short(value) for value in ticks}
    kept = texts if names else _apart(texts, dict(zip(ticks, places, strict=True)))
    shown = {value: kept.get(value, "") for value in ticks}
    return Axis(label, (low, high), not linear, shown, words="category" if names else "")


def _evenly_spaced(ticks: Sequence[float]) -> bool:
    """Whether there are three or more, with equal steps.

    >>> _evenly_spaced([0.25, 0.5, 0.75]), _evenly_spaced([0.1, 1.0, 10.0]), _evenly_spaced([1.0, 2.0])
    (True, False, False)
    """
    return len(ticks) > 2 and bool(np.allclose(np.diff(ticks), (ticks[-1] - ticks[0]) / (len(ticks) - 1)))


def _apart(texts: Mapping[float, str], places: Mapping[float, float]) -> dict[float, str]:
    """The labels that do not meet the one before, `places` as parts of the width of the narrowest panel.

    >>> _apart({1.5: "1.5", 1.75: "1.75", 2.0: "2"}, {1.5: 0.78, 1.75: 0.84, 2.0: 0.89})
    {1.5: '1.5', 2.0: '2'}
    """
    kept: dict[float, str] = {}
    for value, text in texts.items():
        last = next(reversed(kept), None)
        if last is None or places[value] - places[last] >= (len(kept[last]) + len(text)) / 2 * LETTER + GAP:
            kept[value] = text
    return kept


def _short(value: float) -> str:
    """The number, thousands as k: neighbours such as 10000 and 20000 would meet on the axis of a narrow panel.

    >>> _short(0.5), _short(2000), _short(20000)
    ('0.5', '2k', '20k')
    """
    return f"{number(value / 1000)}k" if value >= 1000 else number(value)


def metric_axis(cells: pd.DataFrame, unit: str, ylim: Sequence[float] | None, spec: Spec, *others: ArrayLike) -> Axis:
    """The metric with its unit, on the scale and within the limits given, if any; else around the cells, bars down to
    half a value on a log scale, and on a linear one around the `others` too.
    """
    name = str(spec.get("ylabel") or spec["metric"])
    label = f"{name} ({powers(unit)})" if unit and unit not in name else name
    log = spec.get("yscale") == "log" and bool((cells["value"] > 0).any())
    if ylim:
        return Axis(label, (float(ylim[0]), float(ylim[1])), log)
    if not log:
        return Axis(label, around(cells["value"], cells["low"], cells["high"], *others))
    shown = cells[cells["value"] > 0]  # the end of a bar may be zero, which a log axis cannot show
    return Axis(label, around(np.maximum(shown["low"], shown["value"] / 2), shown["high"], log=True), log)


def levels(spec: Spec) -> Levels:
    """The thin lines of `spec["lines"]`: values, or {label: value} for those that the legend names."""
    given = [level if isinstance(level, Mapping) else {"_": level} for level in spec.get("lines") or []]
    rows = [(label, float(value)) for level in given for label, value in level.items()]
    return Levels(pd.DataFrame(rows, columns=["series", "at"]), "at", bars=False)
