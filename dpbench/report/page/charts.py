"""Interactive charts (Vega-Lite) of the figures: the same numbers, axes, colours and marks, with zoom.

The look of a series is read from the legend of its figure, so that both match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle

from dpbench.files import Json

OPAQUE = "#000000"  # for marks without a colour of their own
NO_MARKER = ("", "None", "none", " ", None)
HEIGHT, POINT, STRIPE = 250, 55, 0.13  # pixels of a panel, area of a mark, opacity of a band
LONGEST = 150  # pixels of the name of a series, left of its row
CLIPPED = {"above": ("triangle-up", 1), "below": ("triangle-down", 0)}  # its mark, the end of the axis where it is
CHOICES = {
    "series": "!shownSeries || indexof(shownSeries, datum.series) >= 0",
    "epsilon": "!shownEpsilons || !isFinite(toNumber(datum.EPSILON)) || "
    "indexof(shownEpsilons, toNumber(datum.EPSILON)) >= 0",
}
CONFIG = {
    "aria": False,  # the frame of the chart has the words
    "background": "transparent",
    "view": {"stroke": "#bbb"},
    "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
    "font": "system-ui, sans-serif",
}


class Look(NamedTuple):
    """Colours as #rrggbb, the lengths of `dashes` and gaps, the outline of the `marker` as an SVG path in [-1, 1]."""

    colour: str = OPAQUE
    fill: str = OPAQUE
    dashes: tuple[float, ...] = ()
    marker: str = ""


def looks_of(figure: Figure) -> dict[str, Look]:
    """The look of each entry of the legend, in its order."""
    handles: dict[str, Artist | Container] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    shown = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return {label: _drawn_look(handles[label]) for label in dict.fromkeys([*shown, *handles]) if label in handles}


def _drawn_look(handle: Artist | Container) -> Look:
    line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
    if isinstance(line, Line2D):
        colour, fill = to_hex(line.get_color()), to_hex(line.get_markerfacecolor())
        return Look(colour, fill, _dashes(line), _outline(line.get_marker()))
    edges = [one for get in ("get_edgecolor", "get_facecolor") for one in np.atleast_2d(getattr(line, get)()) if one[3]]
    colour = to_hex(edges[0]) if edges else OPAQUE
    return Look(colour, colour)


def _dashes(line: Line2D) -> tuple[float, ...]:
    """The pattern that the line was given; matplotlib has no public name for it."""
    _, pattern = getattr(line, "_unscaled_dash_pattern", (0, None))
    return tuple(float(length) for length in pattern or ())


def _outline(marker: Any) -> str:
    """A marker of matplotlib as an SVG path, whose y points down."""
    if marker in NO_MARKER:
        return ""
    style = MarkerStyle(marker)
    polygons = style.get_path().transformed(style.get_transform()).to_polygons(closed_only=False)
    return "".join(_drawn(2 * np.asarray(corners)) for corners in polygons)


def _drawn(corners: np.ndarray) -> str:
    points: Iterator[str] = (f"{x:.2g},{-y:.2g}" for x, y in corners)
    return f"M{'L'.join(points)}Z"


def chart_of(figure: Figure, drawn: pd.DataFrame) -> Json | None:
    """The panels of a chart and its numbers' columns; None for a figure that is not known how to be drawn.

    The columns say of which kind a figure is; another one, such as a user's own, is a chart of points (`_other`).

    A panel has the Vega-Lite `spec` without data, its `title` and its `place`, the data set or the value of a setting.
    The parameters `shownSeries` and `shownEpsilons` of a spec choose rows, all of them if they are null.
    """
    known = next((kind for kind in KINDS if set(kind.columns) <= set(drawn.columns)), None) or _other(figure, drawn)
    if known is None:
        return None
    by = known.panels
    keys = drawn[by].apply(_as_text)
    places = list(dict.fromkeys(keys.itertuples(index=False, name=None))) if by else [()] * len(figure.axes)
    titles = [axes.get_title() for axes in figure.axes] if len(places) > 1 else [""]
    if len(places) != len(figure.axes):
        return None
    epsilon = "epsilon" if "epsilon" in drawn else "x" if "ε" in figure.axes[0].get_xlabel() else ""
    looks = looks_of(figure)
    panels = []
    for place, axes, title in zip(places, figure.axes, titles, strict=True):
        where = dict(zip(by, place, strict=True))
        layer = list(known.layers(drawn[(keys == list(place)).all(axis=1)] if by else drawn, axes, looks))
        chosen: list[Json | str] = [{"field": name, "equal": value} for name, value in where.items()]
        chosen += [CHOICES["series"]] if "series" in drawn else []
        chosen += [CHOICES["epsilon"].replace("EPSILON", epsilon)] if epsilon else []
        transform = [{"filter": one} for one in chosen]
        params = [{"name": name, "value": None} for name in ("shownSeries", "shownEpsilons")]
        spec = {"width": "container", "height": HEIGHT, "config": CONFIG, "params": params, "transform": transform}
        spec["layer"] = layer
        layer[-1]["params"] = [_zoom(layer[-1]["encoding"])]
        panels.append({"title": title, "place": " ".join(where.values()), "spec": spec})
    numbers = [name for name in _numbers(drawn) if name not in by]
    series = list(dict.fromkeys(map(str, drawn["series"]))) if "series" in drawn else []
    return {"panels": panels, "numbers": numbers, "series": series}


# --- kinds ----------------------------------------------------------------------------------------------------------


def _lines(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Means or medians joined by lines, over an axis of numbers."""
    yield from _means(rows, axes, looks, {"x": _axis(axes, "x", "place")}, "x", "datum.kind == 'point'", joined=True)


def _categories(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Means or medians over categories, the series of each side by side."""
    placed = rows.dropna(subset="category")
    x = _names(placed["category"].sort_values(), axes)
    x["axis"] = {"labelAngle": 0, "labelExpr": "split(datum.label, ' ')", "labelOverlap": False}
    offset = {"field": "series", "type": "nominal", "scale": {"domain": list(dict.fromkeys(placed["series"]))}}
    yield from _means(rows, axes, looks, {"x": x, "xOffset": offset}, "category", "datum.category", joined=False)


def _means(
    rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look], at: Json, field: str, point: str, *, joined: bool
) -> Iterator[Json]:
    """Means or medians with their bars, references as horizontal lines, marks where a point is outside of the axis.

    `at` is the x of a point, `field` its name in the tooltip, `point` a filter for points and not horizontal lines.
    """
    value = "median" if "median" in rows else "mean"
    y, look = _axis(axes, "y", value), _look(rows["series"], looks)
    tip = _tip(
        rows, "series", field, value, *(["se"] if "se" in rows else ["low", "high"]), "count", "failed", "nonfinite"
    )
    bar = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    points, references = [{"filter": point}], [{"filter": f"!({point})"}]
    yield {"transform": references, "mark": _mark("rect", opacity=STRIPE), "encoding": {**bar, "color": look["color"]}}
    yield {"transform": references, "mark": _mark("rule"), "encoding": {"y": y, **_stroke(look), **tip}}
    if joined:
        yield {"transform": points, "mark": _mark("line", strokeWidth=1.6), "encoding": {**at, "y": y, **_stroke(look)}}
    yield {"transform": points, "mark": _mark("rule"), "encoding": {**at, **bar, "color": look["color"]}}
    for where, (shape, end) in CLIPPED.items():
        if (rows["clipped"] == where).any():
            edge = {"datum": axes.get_ylim()[end], "scale": y["scale"]}
            mark = {"type": "point", "shape": shape, "filled": True, "size": 2 * POINT}
            yield {
                "transform": [{"filter": f"datum.clipped == '{where}'"}],
                "mark": mark,
                "encoding": {**at, "y": edge, "color": look["color"], **tip},
            }
    marks = {**at, "y": y, **_marks(look), **tip}
    yield {"transform": [*points, look["marked"]], "mark": _mark("point", size=POINT, opacity=1), "encoding": marks}


def _bins(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """The bars of a histogram; what lies beyond its edges is not drawn."""
    x, y = _axis(axes, "x", "low_edge"), _axis(axes, "y", "count_mean")
    finite = [{"filter": "isFinite(datum.low_edge) && isFinite(datum.high_edge)"}]
    encoding = {"x": x, "y": {**y, "stack": None}}
    encoding |= {
        "color": _look(rows["series"], looks)["color"],
        **_tip(rows, "series", "low_edge", "count_mean", "count_se"),
    }
    yield {
        "transform": finite,
        "mark": _mark("area", opacity=0.35, line=True, interpolate="step-after"),
        "encoding": encoding,
    }


def _curves(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """One column per curve, over the first column; in a second panel their distance to `phi` where they are fitted."""
    first, *others = (str(name) for name in rows.columns)
    look = _look(pd.Series(others), looks)
    fold: list[Json] = [{"fold": others, "as": ["series", "value"]}]
    if axes is not axes.figure.axes[0]:
        ends = [float(end) for end in np.asarray(axes.get_lines()[0].get_xdata())[[0, -1]]]
        fold += [{"calculate": "datum.phi - datum.value", "as": "value"}, {"filter": {"field": first, "range": ends}}]
        fold.append({"filter": "datum.series != 'phi'"})
    encoding = {"x": _axis(axes, "x", first), "y": _axis(axes, "y", "value"), **_stroke(look)}
    yield {"transform": fold, "mark": _mark("line"), "encoding": {**encoding, "detail": {"field": "series"}}}


def _quantiles(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Distribution functions with their bands."""
    x, y, look = _axis(axes, "x", "mean"), _axis(axes, "y", "level"), _look(rows["series"], looks)
    band = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": look["color"]}
    yield {"mark": _mark("area", opacity=STRIPE, orient="horizontal"), "encoding": band}
    encoding = {"x": x, "y": y, "order": {"field": "level"}, **_stroke(look), **_tip(rows, "series", "mean", "level")}
    yield {"mark": _mark("line"), "encoding": encoding}


def _ranks(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Lines in steps, with the band of each."""
    x, y, look = _axis(axes, "x", "place"), _axis(axes, "y", "value"), _look(rows["series"], looks)
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "detail": {"field": "series"}}
    area = _mark("area", opacity=STRIPE, color="#777777", interpolate="step-after")
    yield {"mark": area, "encoding": band}
    encoding = {"x": x, "y": y, **_stroke(look), **_tip(rows, "series", "place", "value", "low", "high", "ranks")}
    yield {"mark": _mark("line", interpolate="step-after"), "encoding": encoding}


def _stairs(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Named steps in their order, with bars from the smallest to the largest value."""
    x = _names(rows["step"], axes)
    y, look = _axis(axes, "y", "mean"), _look(rows["series"], looks)
    positive = [{"filter": "datum.mean > 0 && datum.least > 0"}]
    bar = {"x": x, "y": {**y, "field": "least"}, "y2": {"field": "most"}, "color": look["color"]}
    tip = _tip(rows, "series", "step", "mean", "least", "most", "repetitions")
    yield {"transform": positive, "mark": _mark("rule"), "encoding": bar}
    yield {"transform": positive, "mark": _mark("line"), "encoding": {"x": x, "y": y, **_stroke(look)}}
    yield {
        "transform": [*positive, look["marked"]],
        "mark": _mark("point", size=POINT, opacity=1),
        "encoding": {"x": x, "y": y, **_marks(look), **tip},
    }


def _pairs(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """Points with the bar of their height."""
    x, y, look = _axis(axes, "x", "x"), _axis(axes, "y", "y"), _look(rows["series"], looks)
    here = [{"filter": "isValid(datum.x) && isValid(datum.y)"}]
    bar = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": look["color"]}
    tip = _tip(rows, "series", "x", "y", "count", "trials", "datasets")
    yield {"transform": here, "mark": _mark("rule"), "encoding": bar}
    points = {"x": x, "y": y, **_marks(look), **tip}
    yield {"transform": here, "mark": _mark("point", size=POINT, opacity=1), "encoding": points}


def _mean_ranks(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
    """One row per series, the best one on top, with the bar of its critical difference."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    x, look = _axis(axes, "x", "mean_rank"), _look(rows["series"], looks)
    y = {"field": "series", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": LONGEST}}
    bar = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": look["color"]}
    yield {"mark": _mark("rule"), "encoding": bar}
    tip = _tip(rows, "series", "mean_rank", "low", "high", "best", "datasets", "friedman_p")
    yield {"mark": _mark("point", size=POINT, opacity=1), "encoding": {"x": x, "y": y, **_marks(look), **tip}}


def _other(figure: Figure, drawn: pd.DataFrame) -> Kind | None:
    """A chart of points for another figure, such as a user's own; None if there is no number, or nothing to draw it by.

    The first two columns of numbers are x and y; with one alone, the first of texts is x. The next of texts is the
    series. Several panels are those of a column of texts whose values are their titles.
    """
    titles = [axes.get_title() for axes in figure.axes]
    panels = [name for name in _texts(drawn) if list(dict.fromkeys(drawn[name])) == titles]
    if len(titles) > 1 and not panels:
        return None
    by = panels[:1] if len(titles) > 1 else []
    words = [name for name in _texts(drawn) if name not in by]
    numbers = _numbers(drawn)
    if not numbers or len(numbers) + len(words) < 2:
        return None
    x, y = numbers[:2] if len(numbers) > 1 else (words.pop(0), numbers[0])

    def points(rows: pd.DataFrame, axes: Axes, looks: Mapping[str, Look]) -> Iterator[Json]:
        across = _axis(axes, "x", x) if x in numbers else _names(rows[x], axes)
        encoding = {"x": across, "y": _axis(axes, "y", y), **_tip(rows, *map(str, rows.columns))}
        if words:
            encoding["color"] = {"field": words[0], "type": "nominal", "title": None}
        yield {"mark": _mark("point", filled=True, size=POINT, opacity=1), "encoding": encoding}

    return Kind((), by, points)


class Kind(NamedTuple):
    """The columns that identify this kind of figure, those whose values have a panel each, and the layers of a
    panel.
    """

    columns: tuple[str, ...]
    panels: list[str]
    layers: Callable[[pd.DataFrame, Axes, Mapping[str, Look]], Iterator[Json]]


KINDS = (
    Kind(("panel", "series", "kind", "x", "place", "low", "high", "clipped"), ["panel"], _lines),
    Kind(("panel", "series", "category", "low", "high", "clipped"), ["panel"], _categories),
    Kind(("dataset", "series", "low_edge", "high_edge", "count_mean"), ["dataset"], _bins),
    Kind(("s", "phi"), [], _curves),
    Kind(("dataset", "column", "series", "level", "mean", "low", "high"), ["epsilon", "dataset", "column"], _quantiles),
    Kind(("panel", "series", "place", "value", "low", "high", "ranks"), ["panel"], _ranks),
    Kind(("dataset", "series", "step", "mean", "least", "most"), ["dataset"], _stairs),
    Kind(("panel", "series", "x", "y", "low", "high", "datasets"), ["panel"], _pairs),
    Kind(("epsilon", "series", "mean_rank", "low", "high", "datasets"), ["epsilon"], _mean_ranks),
)


# --- shared by the kinds --------------------------------------------------------------------------------------------


def _numbers(drawn: pd.DataFrame) -> list[str]:
    """The columns of numbers."""
    return [str(name) for name in drawn.columns if pd.api.types.is_numeric_dtype(drawn[name])]


def _as_text(column: pd.Series) -> pd.Series:
    """The values as the CSV has them, which the chart reads."""
    return column.map("{:.12g}".format if pd.api.types.is_numeric_dtype(column) else str)


def _texts(drawn: pd.DataFrame) -> list[str]:
    """The columns of texts."""
    return [str(name) for name in drawn.columns if pd.api.types.is_string_dtype(drawn[name])]


def _zoom(encoding: Json) -> Json:
    """The parameter that binds the axes of numbers to the pointer: the wheel alone must scroll the page."""
    axes = [name for name in ("x", "y") if encoding[name]["type"] == "quantitative"]
    select = {"type": "interval", "encodings": axes, "zoom": "wheel![event.shiftKey]", "clear": "dblclick"}
    return {"name": "zoom", "select": select, "bind": "scales"}


def _mark(kind: str, **more: Any) -> Json:
    return {"type": kind, "clip": True, **more}


def _axis(axes: Axes, name: str, field: str) -> Json:
    """An axis as it is drawn: its title, scale, limits and, where they are few, ticks."""
    get = axes.xaxis if name == "x" else axes.yaxis
    limits = axes.get_xlim() if name == "x" else axes.get_ylim()
    ticks = [float(tick) for tick in get.get_majorticklocs() if limits[0] <= tick <= limits[1]]
    scale = {"type": get.get_scale(), "domain": [float(end) for end in limits], "nice": False}
    scale |= {"zero": False} if scale["type"] == "linear" else {}
    drawn = {"labelExpr": "format(datum.value, '~g')", "labelOverlap": True}
    if name == "x" and 0 < len(ticks) <= 12:
        drawn["values"] = ticks
    title = " ".join(get.get_label_text().split())
    return {"field": field, "type": "quantitative", "title": title or None, "scale": scale, "axis": drawn}


def _names(words: pd.Series, axes: Axes) -> Json:
    """An axis of words, in their order."""
    names = list(dict.fromkeys(words))
    return {"field": words.name, "type": "nominal", "sort": names, "title": axes.get_xlabel() or None}


def _look(series: pd.Series, looks: Mapping[str, Look]) -> Json:
    """Colour, dashes and marks of the series, as the legend has them, and the filter for those that have a mark."""
    names = list(dict.fromkeys(map(str, series)))
    found = [_looked_up(name, looks) for name in names]

    def channel(values: Sequence[Any]) -> Json:
        scale = {"domain": names, "range": list(values)}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": None}

    marked = [name for name, look in zip(names, found, strict=True) if look.marker]
    return {
        "color": channel([look.colour for look in found]),
        "strokeDash": channel([list(look.dashes) for look in found]),
        "fill": channel([look.fill for look in found]),
        "shape": channel([look.marker or "circle" for look in found]),
        "marked": {"filter": {"field": "series", "oneOf": marked}},
    }


def _looked_up(name: str, looks: Mapping[str, Look]) -> Look:
    """The look of a series; a legend may add a text after a colon, and names the first column differently."""
    return next((look for label, look in looks.items() if label == name or label.startswith(f"{name}:")), Look())


def _stroke(look: Mapping[str, Json]) -> Json:
    return {name: look[name] for name in ("color", "strokeDash")}


def _marks(look: Mapping[str, Json]) -> Json:
    return {"fill": look["fill"], "shape": look["shape"], "stroke": look["color"]}


def _tip(rows: pd.DataFrame, *fields: str) -> Json:
    numbers = {name: {"format": ".4~g"} for name in fields if pd.api.types.is_numeric_dtype(rows[name])}
    kinds = {name: "quantitative" if name in numbers else "nominal" for name in fields}
    return {"tooltip": [{"field": name, "type": kinds[name], **numbers.get(name, {})} for name in fields]}
