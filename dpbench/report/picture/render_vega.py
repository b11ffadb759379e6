"""Draws a picture as interactive charts (Vega-Lite): the same numbers, axes, colours and marks, with zoom."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dpbench.files import Json
from dpbench.report.picture.looks import Look, outline
from dpbench.report.picture.picture import Area, Axis, Levels, Mark, Note, Panel, Picture, Points

HEIGHT, ROW, POINT, STRIPE = 250, 14, 55, 0.13  # pixels of a panel and of a category, area of a mark, opacity of a band
NAME = 10  # pixels of the letters at a line
LONGEST = 150  # pixels of the name of a category, left of its row
CLIPPED = {"above": ("triangle-up", 1), "below": ("triangle-down", 0)}  # its mark, the end of the axis where it is
CHOICES = {  # of rows, all of them where the parameter is null; a reference has no epsilon
    "series": "!shownSeries || datum.series[0] == '_' || indexof(shownSeries, datum.series) >= 0",
    "epsilon": "!shownEpsilons || !isNumber(datum.epsilon) || indexof(shownEpsilons, datum.epsilon) >= 0",
}
CONFIG = {
    "aria": False,  # the frame of the chart has the words
    "background": "transparent",
    "view": {"stroke": "#bbb"},
    "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
    "font": "system-ui, sans-serif",
}
KEPT = (*CHOICES, "clipped", "alone", "name_at", "name_above")  # columns for filters and places
STROKE = ("color", "strokeDash")
Looks = Mapping[str, Look]


def chart_of(picture: Picture) -> Json | None:
    """The panels of a chart, and the names of its series; None without a panel.

    A panel has the Vega-Lite `spec`, its `title` and its `place`, the data set or the value of a setting. The
    parameters `shownSeries` and `shownEpsilons` of a spec choose rows, all of them if they are null.
    """
    several = len(picture.panels) > 1
    panels = [
        {"title": one.title if several else "", "place": one.name, "spec": _spec(one, picture.looks)}
        for one in picture.panels
    ]
    return {"panels": panels, "series": list(picture.series)} if panels else None


def _spec(panel: Panel, looks: Looks) -> Json:
    """A layer's data has the rows of its mark, whose columns are those that some layer shows."""
    layers: list[Json] = []
    datasets: dict[str, list[Json]] = {}
    for place, mark in enumerate(panel.marks):
        rows = pd.DataFrame({"clipped": [""]}) if isinstance(mark, Note) else mark.rows
        drawn = list(_layers(mark, panel, looks)) if len(rows) else []
        found = [one for layer in drawn for one in layer["encoding"].values()]
        channels = [one for channel in found for one in (channel if isinstance(channel, list) else [channel])]
        named = {*KEPT, getattr(mark, "y", ""), *(one.get("field") for one in channels)}
        records = rows[[name for name in rows if name in named]].astype(object).to_dict("records")
        datasets[f"rows{place}"] = [{str(name): _value(one) for name, one in row.items()} for row in records]
        chosen = [{"filter": choice} for name, choice in CHOICES.items() if name in rows]
        data = {"name": f"rows{place}"}
        layers += [{"data": data, **one, "transform": [*chosen, *one.get("transform", [])]} for one in drawn]
    for layer in [one for one in layers if all("field" in one["encoding"].get(name, {}) for name in "xy")][-1:]:
        layer["params"] = [_zoom(panel)]
    return {
        "width": "container",
        "height": max(HEIGHT, ROW * len(panel.y.ticks or ())),
        "config": CONFIG,
        "params": [{"name": name, "value": None} for name in ("shownSeries", "shownEpsilons")],
        "datasets": datasets,
        "layer": layers,
    }


def _value(value: Any) -> Any:
    """Six digits of a number; nothing for one that is not finite."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _zoom(panel: Panel) -> Json:
    """The parameter that binds the axes of numbers to the pointer: the wheel alone must scroll the page."""
    axes = [name for name, axis in (("x", panel.x), ("y", panel.y)) if not axis.words]
    select = {"type": "interval", "encodings": axes, "zoom": "wheel![event.shiftKey]", "clear": "dblclick"}
    return {"name": "zoom", "select": select, "bind": "scales"}


# --- marks ------------------------------------------------------------------------------------------------------------


def _layers(mark: Mark, panel: Panel, looks: Looks) -> Iterator[Json]:
    match mark:
        case Points():
            yield from _points(mark, panel, looks)
        case Levels():
            yield from _levels(mark, panel, looks)
        case Area():
            at, to = ("y", "x") if mark.upright else ("x", "y")
            ends = {to: _axis(panel, to, mark.low), f"{to}2": {"field": mark.high}}
            orient = "horizontal" if mark.upright else "vertical"
            drawn = _mark("area", mark.steps, opacity=mark.opacity, orient=orient)
            yield {"mark": drawn, "encoding": {at: _axis(panel, at, mark.along), **ends, **_look(looks, "color")}}
        case Note(text, corner):
            where = {"x": 8, "y": 8, "align": "left", "baseline": "top"} if corner else {"align": "center"}
            yield {"mark": {"type": "text", "text": text.split("\n"), **where}, "encoding": {}}


def _points(mark: Points, panel: Panel, looks: Looks) -> Iterator[Json]:
    at, to = ("y", "x") if mark.across else ("x", "y")
    here, there = (_axis(panel, at, mark.x if at == "x" else mark.y), _axis(panel, to, mark.y if to == "y" else mark.x))
    tip, colour = _tip(mark.rows, mark.tip), _look(looks, "color")
    place, names = {at: here}, list(mark.rows["series"].unique())
    if panel.x.words and not mark.joined:  # side by side
        place["xOffset"] = {"field": "series", "type": "nominal", "scale": {"domain": names}}
    if mark.joined:
        whole = [{"calculate": f"datum.alone ? null : datum['{mark.y}']", "as": "joined"}]
        line = {**place, to: {**there, "field": "joined"}, **_look(looks, *STROKE), **tip}
        yield {"transform": whole, "mark": _mark("line", mark.steps, strokeWidth=1.6), "encoding": line}
    if mark.bars:
        low, high = mark.bars
        bar = {to: {**there, "field": low}, f"{to}2": {"field": high}}
        yield {"mark": _mark("rule"), "encoding": {**place, **bar, **colour}}
    yield from _clipped(mark.rows, panel, {**place, **tip, **colour})
    if any(looks[name].marker for name in names):
        encoding = {**place, to: there, **_look(looks, "fill", "shape", "stroke"), **tip}
        yield {"mark": _mark("point", size=POINT, opacity=1), "encoding": encoding}


def _clipped(rows: pd.DataFrame, panel: Panel, encoding: Json) -> Iterator[Json]:
    """A mark at the edge where a point is outside of the axis."""
    for where, (shape, end) in CLIPPED.items():
        if "clipped" in rows and (rows["clipped"] == where).any():
            edge = {"datum": panel.y.limits[end], "scale": _axis(panel, "y", "")["scale"]}
            mark = {"type": "point", "shape": shape, "filled": True, "size": 2 * POINT}
            chosen = [{"filter": f"datum.clipped == '{where}'"}]
            yield {"transform": chosen, "mark": mark, "encoding": {**encoding, "y": edge}}


def _levels(mark: Levels, panel: Panel, looks: Looks) -> Iterator[Json]:
    at, tip, colour = _axis(panel, mark.axis, mark.at), _tip(mark.rows, mark.tip), _look(looks, "color")
    if mark.bars:
        band = {"y": {**at, "field": "low"}, "y2": {"field": "high"}, **colour}
        yield {"mark": _mark("rect", opacity=STRIPE), "encoding": band}
    part = {} if mark.part == 1 else {"y": {"value": HEIGHT * (1 - mark.part)}, "y2": {"value": HEIGHT}}
    yield {"mark": _mark("rule"), "encoding": {mark.axis: at, **part, **_look(looks, *STROKE), **tip}}
    yield from _clipped(mark.rows, panel, {"x": {"value": 0}, **tip, **colour})
    if "name_at" in mark.rows and mark.rows["name_at"].notna().any():
        for above, baseline in ((True, "bottom"), (False, "top")):
            chosen = [{"filter": f"isNumber(datum.name_at) && datum.name_above == {str(above).lower()}"}]
            name = {"type": "text", "align": "right", "baseline": baseline, "fontSize": NAME, "clip": True}
            name |= {"x": {"expr": "width * datum.name_at"}, "dy": -2 if above else 2}
            words = {"text": {"field": "series", "type": "nominal"}}
            yield {"transform": chosen, "mark": name, "encoding": {"y": at, **words, **colour}}


# --- channels ---------------------------------------------------------------------------------------------------------


def _mark(kind: str, steps: bool = False, **more: Any) -> Json:
    return {"type": kind, "clip": True, **({"interpolate": "step-after"} if steps else {}), **more}


def _axis(panel: Panel, name: str, field: str) -> Json:
    """An axis of numbers with its title, scale, limits and ticks; of categories in their order."""
    axis = panel.x if name == "x" else panel.y
    title = " ".join(axis.label.split()) or None
    if axis.words:
        return _words(axis, name, title)
    scale: Json = {"type": "log" if axis.log else "linear", "domain": list(axis.limits), "nice": False}
    scale |= {} if axis.log else {"zero": False}
    drawn: Json = {"labelExpr": "format(datum.value, '~g')", "labelOverlap": True}
    drawn |= {"tickCount": axis.most} if axis.most else {}
    if axis.ticks and len(axis.ticks) <= 12:
        drawn["values"] = list(axis.ticks)
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": drawn}


def _words(axis: Axis, name: str, title: str | None) -> Json:
    """Their names are below the axis in a line each word, or at an angle, or left of it."""
    below = {"labelAngle": -40} if axis.turned else {"labelAngle": 0, "labelExpr": "split(datum.label, ' ')"}
    drawn = {**below, "labelOverlap": False} if name == "x" else {"labelLimit": LONGEST}
    order = list((axis.ticks or {}).values())
    return {"field": axis.words, "type": "nominal", "sort": order, "title": title, "axis": drawn}


def _look(looks: Looks, *channels: str) -> Json:
    """Colour, dashes and marks of the series."""
    found = looks.values()
    values = {
        "strokeDash": [list(look.dashes) for look in found],
        "fill": [look.fill for look in found],
        "shape": [outline(look.marker) or "circle" for look in found],
    }
    colours = [look.colour for look in found]
    scales = {name: {"domain": list(looks), "range": values.get(name, colours)} for name in channels}
    return {name: {"field": "series", "type": "nominal", "scale": scales[name], "legend": None} for name in channels}


def _tip(rows: pd.DataFrame, fields: Sequence[str]) -> Json:
    number, word = {"type": "quantitative", "format": ".4~g"}, {"type": "nominal"}
    numeric = {name: pd.api.types.is_numeric_dtype(rows[name]) for name in fields}
    return {"tooltip": [{"field": name, **(number if numeric[name] else word)} for name in fields]} if fields else {}
