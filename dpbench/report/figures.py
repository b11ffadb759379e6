"""A metric against epsilon, one line a series, with what is drawn as a table (paper 0, Figure 3)."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from dpbench.report.files import write_file
from dpbench.report.remarks import as_text, remarks
from dpbench.report.series import Series, mark_series, series_of
from dpbench.report.stats import summarise
from dpbench.report.text import number, powers

# Okabe and Ito's colours for all kinds of colour vision, the pale yellow left out; grey first, since reports
# name the reference (drawn in black) first and the others should keep the strong ones.
COLOURS = ("#777777", "#D55E00", "#CC79A7", "#0072B2", "#009E73", "#E69F00", "#56B4E9")
MARKERS = ("X", "s", "^", "o", "D", "v", "P", "<", ">")
LINES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
REFERENCE_COLOUR = "#000000"

PANEL = (5.2, 3.6)  # inches, without the legend
LEGEND_WIDTH = 1.5  # inches
DODGE = 0.08  # shift between neighbouring series, as a part of the smallest gap on the (log) epsilon axis
PNG_DPI = 200
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.4,
    "pdf.fonttype": 42,
    "svg.hashsalt": "dpbench",
}
DRAWN = [
    "dataset", "series", "mechanism", "model", "calibration", "variant", "kind", "epsilon", "x", "delta",
    "metric", "unit", "mean", "se", "low", "high", "count", "failed", "nonfinite", "clipped",
]  # fmt: skip


class Panel(NamedTuple):
    """One pair of axes: the cells of one data set and delta."""

    title: str
    unit: str
    cells: pd.DataFrame


def metric_by_epsilon(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw `spec["metric"]` against epsilon: a panel per data set and delta, a line per series.

    Points are means with bars of one standard error, in the metric's unit, side by side where epsilons
    coincide; series at eps = inf are horizontal lines with a band of one standard error. Failures, gaps and
    `notes` stand below. `spec` has name, metric, title and perhaps xlabel, ylabel, yscale ("log"), ylim
    (means outside are marked at the edge, with their value). Returns the figure and what it draws, one row a
    cell: `kind` is "point" or "line", `x` the place on the epsilon axis, `clipped` "above", "below" or "".
    """
    known = series_of(frame, labels)
    rows = frame[frame["metric"] == spec["metric"]]
    panels = _panels(_drawn(rows, known, spec))
    with _style():
        figure, grid = _empty_figure(len(panels))
        for axes, panel in zip(grid, panels, strict=True):
            _draw_panel(axes, panel, known, spec)
        _set_titles(figure, grid, panels, spec)
        _add_legend(figure, grid, known)
        text = _footnote(rows, known, panels, notes)
        wide = int(figure.get_figwidth() * 20)
        footnote = textwrap.fill(text, wide, break_long_words=False)
        figure.supxlabel(footnote, x=0.012, ha="left", fontsize=6.5, color="#444444")
    return figure, pd.concat([panel.cells for panel in panels], ignore_index=True)[DRAWN]


def save_figure(figure: Figure, drawn: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write `name`.pdf, .png (200 dpi) and .csv (what is drawn) into `folder`; their paths.

    The bytes depend on the figure only: no date, no user's settings. Raises `UserError` if the folder cannot
    be written to.
    """
    unsigned = {"pdf": {"CreationDate": None, "Creator": None, "Producer": None}, "png": {"Software": None}}
    paths = []
    with _style():
        for suffix, metadata in unsigned.items():
            file = io.BytesIO()
            figure.savefig(file, format=suffix, dpi=PNG_DPI, metadata=metadata)
            paths.append(write_file(folder / f"{name}.{suffix}", file.getvalue()))
    table = drawn.to_csv(index=False, lineterminator="\n")
    return [*paths, write_file(folder / f"{name}.csv", table)]


@contextmanager
def _style() -> Iterator[None]:
    """matplotlib's own defaults with `STYLE`, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _drawn(rows: pd.DataFrame, known: Sequence[Series], spec: Mapping[str, Any]) -> pd.DataFrame:
    """The cells of one metric in drawing order, with their interval, place on the x axis and clipping."""
    cells = mark_series(summarise(rows), known)
    half = cells["se"].fillna(0.0)
    cells = cells.assign(low=cells["mean"] - half, high=cells["mean"] + half)
    cells["kind"] = np.where(np.isfinite(cells["epsilon"]), "point", "line")
    cells["x"] = _dodged(cells)
    cells["clipped"] = ""
    if spec.get("ylim"):
        bottom, top = spec["ylim"]
        cells.loc[cells["mean"] > top, "clipped"] = "above"
        cells.loc[cells["mean"] < bottom, "clipped"] = "below"
    order = ["dataset", "delta", "series_order", "epsilon"]
    return cells.sort_values(order, kind="stable", ignore_index=True)


def _dodged(cells: pd.DataFrame) -> pd.Series:
    """Each cell's place on the epsilon axis: its epsilon times a factor of its series; NaN for lines."""
    points = cells["kind"] == "point"
    budgets = np.sort(cells.loc[points, "epsilon"].unique())
    gap = float(np.diff(np.log(budgets)).min()) if len(budgets) > 1 else math.log(2)
    orders = sorted(cells.loc[points, "series_order"].unique())
    step = min(DODGE, 0.6 / max(1, len(orders))) * gap
    shift = {order: step * (place - (len(orders) - 1) / 2) for place, order in enumerate(orders)}
    places = cells["epsilon"] * np.exp(cells["series_order"].map(shift).astype("float64"))
    return places.where(points)


def _panels(cells: pd.DataFrame) -> list[Panel]:
    """Split by data set and delta; a reference of another delta stands in every panel of its data set."""
    panels = []
    for dataset, rows in cells.groupby("dataset", sort=True):
        points = rows["kind"] == "point"
        deltas = sorted(rows.loc[points, "delta"].dropna().unique())
        for delta in deltas or [None]:
            lines = rows[~points]
            here = lines[lines["delta"] == delta]
            wanted = pd.concat([rows[points & (rows["delta"] == delta)], here if len(here) else lines])
            title = f"{dataset}, δ = {number(delta)}" if len(deltas) > 1 else str(dataset)
            units = sorted(set(rows["unit"]) - {""})
            panels.append(Panel(title, ", ".join(units), wanted.sort_values(["series_order", "epsilon"])))
    return panels or [Panel("", "", cells)]


def _empty_figure(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most three in a row, and room for the legend on the right."""
    columns = 2 if count == 4 else min(count, 3)
    lines = math.ceil(count / columns)
    shrink = 1.0 if columns == 1 else 0.75
    size = (PANEL[0] * columns * shrink + LEGEND_WIDTH, PANEL[1] * lines * shrink + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = [figure.add_subplot(lines, columns, place + 1) for place in range(count)]
    return figure, grid


def _draw_panel(axes: Axes, panel: Panel, known: Sequence[Series], spec: Mapping[str, Any]) -> None:
    _draw_references(axes, panel.cells[panel.cells["kind"] == "line"])
    for place, one in enumerate(known):
        cells = panel.cells[panel.cells["series_order"] == place]
        _draw_points(axes, cells[cells["kind"] == "point"], one)
    if not panel.cells["mean"].notna().any():
        axes.text(0.5, 0.5, "no trial has a score", transform=axes.transAxes, ha="center", va="center")
    _set_x_axis(axes, panel.cells, spec)
    _set_y_axis(axes, panel, spec)
    _mark_clipped(axes, panel.cells, known, spec)


def _draw_references(axes: Axes, cells: pd.DataFrame) -> None:
    """References at eps = inf: dashed lines, each in its own way, with a band of one standard error."""
    for line, (_, cell) in enumerate(cells.iterrows(), start=1):
        low, mean, high = cell["low"], cell["mean"], cell["high"]
        axes.axhspan(low, high, color=REFERENCE_COLOUR, alpha=0.12, linewidth=0, zorder=1)
        axes.axhline(
            mean, color=REFERENCE_COLOUR, linestyle=LINES[line % len(LINES)], linewidth=1.1, label=cell["series"]
        )


def _draw_points(axes: Axes, cells: pd.DataFrame, one: Series) -> None:
    """Means with bars of one standard error; cells without a finite value leave a hole in the line."""
    if not len(cells):
        return
    cells = cells.sort_values("epsilon")
    style = _line_style(one)
    axes.errorbar(
        cells["x"].to_numpy(),
        cells["mean"].to_numpy(),
        yerr=cells["se"].fillna(0.0).to_numpy(),
        capsize=2.0,
        elinewidth=0.9,
        zorder=3,
        label=one.label,
        **style,
    )


def _line_style(one: Series) -> dict[str, Any]:
    """Colour and marker of the method; line style and hollow markers of its further calibrations."""
    hollow = one.place > 0 or one.calibration == "paper"
    line = max(one.place, 1 if hollow else 0)
    colour = COLOURS[one.rank % len(COLOURS)]
    return {
        "color": colour,
        "marker": MARKERS[one.rank % len(MARKERS)],
        "linestyle": LINES[line % len(LINES)],
        "markerfacecolor": "white" if hollow else colour,
    }


def _set_x_axis(axes: Axes, cells: pd.DataFrame, spec: Mapping[str, Any]) -> None:
    """Logarithmic, with ticks at exactly the epsilons of the trials."""
    budgets = sorted(cells.loc[cells["kind"] == "point", "epsilon"].unique())
    axes.set_xlabel(spec.get("xlabel") or "privacy budget ε")
    if budgets:
        axes.set_xscale("log")
        axes.set_xlim(budgets[0] / 1.35, budgets[-1] * 1.35)
    axes.xaxis.set_major_locator(FixedLocator(budgets))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def _set_y_axis(axes: Axes, panel: Panel, spec: Mapping[str, Any]) -> None:
    name = str(spec.get("ylabel") or spec["metric"])
    axes.set_ylabel(f"{name} ({powers(panel.unit)})" if panel.unit and panel.unit not in name else name)
    logarithmic = spec.get("yscale") == "log" and bool((panel.cells["mean"] > 0).any())
    if logarithmic:
        axes.set_yscale("log", nonpositive="clip")
    if spec.get("ylim"):
        axes.set_ylim(*spec["ylim"])
    elif logarithmic:
        axes.set_ylim(*_log_limits(panel.cells))
    if logarithmic:
        _set_log_ticks(axes)


def _log_limits(cells: pd.DataFrame) -> tuple[float, float]:
    """Limits around the positive means and the upper ends of their bars, with 5 per cent on either side.

    The lower end of a bar counts down to half its mean: it may reach zero, which a log axis cannot show.
    """
    shown = cells[cells["mean"] > 0]
    low = math.log(float(np.maximum(shown["low"], shown["mean"] / 2).min()))
    high = math.log(float(shown["high"].max()))
    margin = 0.05 * max(high - low, 0.1)
    return math.exp(low - margin), math.exp(high + margin)


def _set_log_ticks(axes: Axes) -> None:
    """Plain numbers at 1, 2 and 5 times the powers of ten, at powers only over four decades, else evenly."""
    bottom, top = axes.get_ylim()
    decades = math.log10(top / bottom)
    if decades < 0.5:
        axes.yaxis.set_major_locator(MaxNLocator(6))
    else:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 4 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _mark_clipped(axes: Axes, cells: pd.DataFrame, known: Sequence[Series], spec: Mapping[str, Any]) -> None:
    """An arrow at the edge, with the value, for each mean outside of `ylim`; texts are stacked."""
    outside = cells[cells["clipped"] != ""]
    stacked: dict[tuple[str, float], int] = {}
    for _, cell in outside.iterrows():
        above = cell["clipped"] == "above"
        edge, away = (1.0, -1) if above else (0.0, 1)
        style = _line_style(known[cell["series_order"]])
        x, middle = cell["x"], cell["epsilon"]
        if cell["kind"] == "line":
            style = {"color": REFERENCE_COLOUR, "markerfacecolor": REFERENCE_COLOUR}
            x = middle = axes.get_xlim()[0]
        spot = (str(cell["clipped"]), float(cell["epsilon"]))
        level = stacked[spot] = stacked.get(spot, 0) + 1
        style |= {"marker": "^" if above else "v", "linestyle": "none", "clip_on": False, "zorder": 5}
        transform = axes.get_xaxis_transform()
        axes.plot(x, edge, transform=transform, **style)
        axes.annotate(
            number(float(f"{cell['mean']:.3g}")),
            (middle, edge),
            xycoords=transform,
            xytext=(0, away * (1 + 8 * level)),
            textcoords="offset points",
            ha="center",
            va="center",
            color=style["color"],
            fontsize=6.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
        )


def _set_titles(figure: Figure, grid: Sequence[Axes], panels: Sequence[Panel], spec: Mapping[str, Any]) -> None:
    title = str(spec.get("title") or spec["metric"])
    if len(grid) == 1:
        grid[0].set_title(title)
        return
    figure.suptitle(title)
    for axes, panel in zip(grid, panels, strict=True):
        axes.set_title(panel.title)


def _footnote(rows: pd.DataFrame, known: Sequence[Series], panels: Sequence[Panel], notes: str) -> str:
    told = remarks(rows, known)
    cells = pd.concat([panel.cells for panel in panels])
    if cells.loc[cells["kind"] == "point", "series_order"].nunique() > 1:
        told.append("Points are moved sideways so that none hides another")
    if (cells["clipped"] != "").any():
        told.append("Arrows: means outside of the axis, with their value")
    return as_text([*told, notes] if notes else told) if len(rows) else notes


def _add_legend(figure: Figure, grid: Sequence[Axes], known: Sequence[Series]) -> None:
    """One legend outside of the panels, in the order of the series."""
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    named = [one.label for one in known if one.label in handles]
    if named:
        figure.legend([handles[name] for name in named], named, loc="outside right upper", handlelength=2.6)
