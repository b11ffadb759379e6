"""Lines of a metric over the axis `x`, one per series, and the data drawn as a table: one row per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench.config.specs import Spec
from dpbench.errors import check_known
from dpbench.report.figures.axes import LEVEL, levels, metric_axis, x_axis
from dpbench.report.footnotes import as_text
from dpbench.report.frames.frame import SERIES, has_value, reach, summarise
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series
from dpbench.report.picture.looks import DASHES, DOTTED, Look, line_styles, reference_lines
from dpbench.report.picture.names_at_lines import with_names_at_lines
from dpbench.report.picture.picture import NO_SCORE, Area, Levels, Mark, Panel, Picture, Points, titled
from dpbench.targets import resolve

CELL = ("panel", *SERIES, "x", "metric")
DODGE = 0.05  # shift between neighbouring series, as a part of the smallest gap on the (log) axis, or of log 2
SPREAD = 0.3  # from the first to the last series at most: a point must not seem to be at another x
CATEGORY_DODGE, CATEGORY_SPREAD = 0.16, 0.6  # the same where no lines join the points
PUBLISHED = "published"
STATISTICS = {"mean": ["mean", "se"], "mean_95": ["mean", "se"], "median": ["median"]}  # its columns
QUARTILES = {0.25: "low", 0.5: "median", 0.75: "high"}


def _columns(statistic: str) -> list[str]:
    """The columns of the data drawn."""
    return [
        "panel", "series", "mechanism", "model", "calibration", "variant", "kind", "x", "delta", "spent_epsilon_max",
        "metric", "unit", *STATISTICS[statistic], "low", "high", "count", "failed", "nonfinite", "clipped",
    ]  # fmt: skip


class Band(NamedTuple):
    """A region between two series, given by their labels."""

    label: str
    first: str
    second: str


def draw_lines(
    rows: pd.DataFrame, known: Sequence[Series], spec: Spec, sentences: Sequence[str], notes: str
) -> Picture:
    """Rows of one metric over their `x`, one pair of axes a `panel`, with these footnotes and notes below.

    `spec["statistic"]` is "mean", with bars of one standard error, "mean_95", with 95 % intervals, or "median", with
    bars from quartile to quartile. Where some repetitions have no value, the number of those that do is written at the
    point. The data drawn have one row per cell: `kind` is "point", or "line" where `x` is infinite, `delta` and
    `spent_epsilon_max` what was spent at most, `low` and `high` the ends of the bar, `clipped` "above", "below" or "".
    """
    bands, titles = _bands(known, spec), declared_titles(spec)
    cells = _drawn(rows, known, bands, spec).sort_values(["series_order", "x"])
    by_panel = {name: cells[cells["panel"] == name] for name in in_order(cells["panel"], titles)} or {"": cells}
    drawn = [_panel(name, titles.get(name, name), here, bands, spec) for name, here in by_panel.items()]
    panels = with_names_at_lines(drawn, fixed={name for name in by_panel if _ylim(spec, name)})
    parts, looks = [*by_panel.values()], _looks(cells, known, bands, spec, [*by_panel])
    footnote = as_text([notes, *sentences, *_marks(parts)]) if len(rows) else notes
    return titled(spec, panels, looks, footnote, parts, _columns(statistic_of(spec)))


def statistic_of(spec: Spec) -> str:
    """The statistic that a point shows. Raises `UserError` for an unknown statistic."""
    statistic = str(spec.get("statistic") or "mean")
    check_known("statistic", statistic, STATISTICS)
    return statistic


def _bands(known: Sequence[Series], spec: Spec) -> list[Band]:
    """The bands whose two methods both have trials; each of their calibrations and variants has its own."""
    labels = {(one.method, one.calibration, one.variant): one.label for one in known}
    bands = []
    for asked in spec.get("bands") or []:
        first, second = asked["between"]
        for (method, *setting), label in labels.items():
            other = labels.get((second, *setting))
            if method == first and other is not None:
                bands.append(Band(str(asked["label"]), label, other))
    return bands


def _drawn(rows: pd.DataFrame, known: Sequence[Series], bands: Sequence[Band], spec: Spec) -> pd.DataFrame:
    """The cells of one metric with their interval, place on the x axis, clipping and, for those of a reference, the
    place of its dashes in `DASHES`, else -1.
    """
    cells, statistic = mark_series(summarise(rows, CELL), known), statistic_of(spec)
    cells = cells.rename(columns={"spent_epsilon": "spent_epsilon_max"})
    cells = cells.join(rows.groupby(list(CELL), dropna=False)["delta"].max(), on=list(CELL))
    if statistic != "median":
        half = cells["se"] * (reach(cells["count"]) if statistic == "mean_95" else 1.0)
        half = half.fillna(0.0)
        cells = cells.assign(low=cells["mean"] - half, high=cells["mean"] + half)
    else:
        finite = rows["value"].where(has_value(rows))
        quartiles = finite.groupby([rows[name] for name in CELL]).quantile(np.array(list(QUARTILES))).unstack()
        cells = cells.join(quartiles.rename(columns=QUARTILES), on=list(CELL))
    cells["value"] = cells[STATISTICS[statistic][0]]
    cells["kind"] = np.where(np.isfinite(cells["x"]), "point", "line")
    private = mark_series(rows.loc[np.isfinite(rows["epsilon"])], known)["series_order"]
    references = sorted(set(cells.loc[cells["kind"] == "line", "series_order"]) - set(private))
    dashes = dict(zip(references, reference_lines([known[order].name for order in references]), strict=True))
    cells["reference"] = cells["series_order"].map(dashes).fillna(-1)
    dodge, spread = (CATEGORY_DODGE, CATEGORY_SPREAD) if spec.get("categories") else (DODGE, SPREAD)
    cells["place"] = _dodged(cells, [label for band in bands for label in band[1:]], dodge, spread)
    limits = [_ylim(spec, panel) or (-math.inf, math.inf) for panel in cells["panel"]]
    above = cells["value"] > [high for _, high in limits]
    below = cells["value"] < [low for low, _ in limits]
    cells["clipped"] = np.select([above, below], ["above", "below"], "")
    return cells


def _dodged(cells: pd.DataFrame, banded: Sequence[str], dodge: float, spread: float) -> pd.Series:
    """Each cell's place on the axis: its x times a factor of its series, 1 in a band; NaN for lines."""
    points = cells["kind"] == "point"
    ticks = np.sort(cells.loc[points, "x"].unique())
    gap = min([math.log(2), *np.diff(np.log(ticks))])  # no more, so that all points stay within the axis
    orders = sorted(cells.loc[points & ~cells["series"].isin(banded), "series_order"].unique())
    step = min(dodge, spread / max(1, len(orders))) * gap
    shift = {order: step * (place - (len(orders) - 1) / 2) for place, order in enumerate(orders)}
    places = cells["x"] * np.exp(cells["series_order"].map(shift).astype("float64").fillna(0.0))
    return places.where(points)


def _ylim(spec: Spec, panel: str) -> Sequence[float] | None:
    ylim = spec.get("ylim")
    if isinstance(ylim, Mapping):
        ylim = {str(name): limits for name, limits in ylim.items()}.get(panel)
    chosen: Sequence[float] | None = ylim
    return chosen


def _looks(
    cells: pd.DataFrame, known: Sequence[Series], bands: Sequence[Band], spec: Spec, panels: Sequence[str]
) -> dict[str, Look]:
    """The looks in the order of the legend: of each series, the lines of a band thin, and references black, each with
    its own dashes; of bands, rates, levels, and what is published.
    """
    looks = line_styles(known)
    looks |= {label: replace(looks[label], width=0.7) for band in bands for label in band[1:]}
    references = cells.loc[cells["reference"] >= 0, ["series", "reference"]].itertuples(index=False)
    looks |= {label: Look(dashes=DASHES[int(place)]) for label, place in references}
    looks |= {band.label: looks[band.first] for band in bands}
    looks |= dict.fromkeys(spec.get("rates") or {}, Look(dashes=DOTTED, width=1.1))
    looks |= dict.fromkeys(levels(spec).rows["series"], LEVEL)
    for name in panels:
        for label, marker in zip(dict.fromkeys(_published(name, spec)["series"]), cycle("x+12"), strict=False):
            looks.setdefault(label, Look(marker=marker))
    return looks


def _panel(name: str, title: str, cells: pd.DataFrame, bands: Sequence[Band], spec: Spec) -> Panel:
    """The panel of these cells, sorted by series and x."""
    statistic = STATISTICS[statistic_of(spec)]
    x = x_axis(cells[cells["kind"] == "point"], spec)
    cells = cells.assign(category=cells["x"].map(spec.get("categories") or {}))
    cells = cells.assign(epsilon=cells["x"]) if "ε" in x.label else cells
    bars = statistic if len(statistic) > 1 else [*statistic, "low", "high"]
    tip, value = ["series", x.words or "x", *bars, "count", "failed", "nonfinite"], statistic[0]
    lines, points = cells[cells["kind"] == "line"], cells[cells["kind"] == "point"]
    published, rates, thin = _published(name, spec), _rates(points, spec), levels(spec)
    marks: list[Mark] = [
        Levels(lines, value, tip=tip),
        *(_shade(points, band) for band in bands),
        Points(_joined(points, holes=not x.words), "place", value, joined=not x.words, tip=tip),
        Points(published, "x", "value", bars=None, joined=False, tip=["series", "x", "value"]),
        thin,
        Points(rates, "x", "value", bars=None),
        *([] if cells["value"].notna().any() else [NO_SCORE]),
    ]
    unit = ", ".join(sorted(set(cells["unit"]) - {""}))
    y = metric_axis(cells, unit, _ylim(spec, name), spec, published["value"], rates["value"], thin.rows["at"])
    return Panel(title, x, y, marks, name)


def _joined(points: pd.DataFrame, holes: bool) -> pd.DataFrame:
    """The points with their notes, those `alone` that stand for few repetitions, and perhaps a hole in the line of a
    series at each x in between that it does not have.
    """
    lost = _has_lost(points) & (points["clipped"] == "")
    points = points.assign(alone=_has_few(points), note=points["count"].astype(str).where(lost, ""))
    blank = []
    for (order, name), own in points.groupby(["series_order", "series"])["x"] if holes else ():
        between = points["x"].between(own.min(), own.max(), inclusive="neither")
        blank += [(order, name, x, x, False, "", "") for x in set(points.loc[between, "x"]) - set(own)]
    if not blank:
        return points
    named = pd.DataFrame(blank, columns=["series_order", "series", "x", "place", "alone", "note", "clipped"])
    return pd.concat([points, named], ignore_index=True).sort_values(["series_order", "x"], kind="stable")


def _shade(points: pd.DataFrame, band: Band) -> Area:
    """The region between the lines of the band's two series, over the places at which both have a point."""
    ends = [points[points["series"] == label].set_index("place")["value"] for label in band[1:]]
    both = pd.concat(ends, axis=1, keys=["low", "high"]).dropna().sort_index()
    return Area(both.reset_index().assign(series=band.label), "place", "low", "high", 0.25)


def _rates(points: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """How the functions of `x` in `spec["rates"]` grow or fall, from the first point on."""
    curves = [pd.DataFrame(columns=["series", "x", "value"])]
    first = points[points["value"].notna()].nsmallest(1, "x")
    for label, target in (spec.get("rates") or {}).items():
        rate = resolve("metric", target, f"rates: {label}")
        if len(first):
            x = np.geomspace(first["x"].item(), points["x"].max())
            y = first["value"].item() * np.array([rate(float(one)) for one in x]) / rate(float(x[0]))
            curves.append(pd.DataFrame({"series": label, "x": x, "value": y}))
    return pd.concat(curves[1:] or curves)


def _published(panel: str, spec: Spec) -> pd.DataFrame:
    """What the paper publishes for the panel's data set, method by method (`spec["published"]`, looked up)."""
    published = spec.get("published") or {}
    rows = published.get("rows") or {} if isinstance(published, Mapping) else {}
    found = [
        (f"{method}, {PUBLISHED}", float(x), value)
        for method, values in rows.get(panel, {}).items()
        for x, value in values.items()
        if math.isfinite(float(x))
    ]
    return pd.DataFrame(found, columns=["series", "x", "value"])


def _has_lost(points: pd.DataFrame) -> pd.Series:
    """Which cells have a value of some repetitions and none of others."""
    return (points["failed"] + points["nonfinite"] > 0) & points["value"].notna()


def _has_few(points: pd.DataFrame) -> pd.Series:
    """Which cells have a value of fewer than half of their repetitions: those may be the easy ones."""
    return _has_lost(points) & (points["count"] < points["failed"] + points["nonfinite"])


def _marks(panels: Sequence[pd.DataFrame]) -> list[str]:
    """Footnotes on how the points are drawn."""
    sentences = []
    cells = pd.concat(panels)
    points = cells[cells["kind"] == "point"]
    if _has_lost(points).any():
        sentences.append("Number at a point: repetitions with a value, where some have none")
    if _has_few(points).any():
        sentences.append("No line is drawn to a point with a value in fewer than half of the repetitions")
    if cells.loc[cells["kind"] == "point", "series_order"].nunique() > 1:
        sentences.append("Points are moved sideways so that none hides another")
    if any((one["kind"] == "line").sum() > 1 for one in panels):
        sentences.append("Bars at the right edge: of the horizontal lines, from left to right")
    if (cells["clipped"] != "").any():
        sentences.append("Arrows: points outside the axis limits, with their value")
    return sentences
