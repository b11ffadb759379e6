"""Figures of the paper on Bayesian GLMs: ranks of the truth among draws (simulation-based calibration), posteriors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dpbench.config.specs import Spec
from dpbench.config.values import listed
from dpbench.data.domain import Floats
from dpbench.report.figures.style import (
    REFERENCE_COLOUR,
    LineStyle,
    add_footnote,
    add_legend,
    empty_figure,
    line_styles,
    set_titles,
    style,
)
from dpbench.report.footnotes import as_text, footnotes, sweep_footnotes
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of

BINS = 20  # of a rank histogram
LEVEL = 0.95  # of the bands
SIMULATED = 5000  # sets of uniform ranks behind a simultaneous band
DRAWN = ["panel", "series", "place", "value", "low", "high", "ranks"]
DEPENDENCE = "The ranks of the coefficients of one data set are treated as independent"
Points = tuple[Floats, Floats, Floats, Floats]  # places on the x axis, values, and the ends of the band
Form = Callable[[NDArray[np.int64], int], Points]  # of ranks, 0 to the number of draws
QUANTILES = ["dataset", "column", "series", "epsilon", "level", "mean", "low", "high", "repetitions"]
REFERENCE = "non-private"
MIDDLE = (0.025, 0.975)  # of the repetitions are inside the band
TICKS = 5  # intervals between the ticks of a coefficient, at most


def rank_histogram(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw how often the truth has each rank among the draws, over the expected count, with the band of each bin.

    Talts et al. 2018: the ranks of a calibrated posterior are uniform. High ends show that the posterior is too narrow,
    a slope that it is biased. `spec` has name, metric (whose detail has the `ranks` and the number of
    `draws`), title, and perhaps panel (the setting whose values have a panel each, in place of the data sets), panels
    (its values -> title) and where. Returns the figure and its bins.
    """
    band = f"Bands: the middle {LEVEL:.0%} of the count of each bin for uniform ranks"
    return _draw(frame, labels, spec, [band, DEPENDENCE, notes], binned, "count over expected", 1.0)


def rank_ecdf(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the empirical distribution function of the ranks minus the uniform one, with a simultaneous band.

    Säilynoja, Bürkner and Vehtari 2022: the line of a calibrated posterior is entirely in the band with probability
    `LEVEL`. A line that rises at both ends and falls between shows a posterior that is too narrow. `spec` as for
    `rank_histogram`. Returns the figure and its points.
    """
    band = f"Bands: for uniform ranks the entire line is inside with probability {LEVEL:.0%}"
    return _draw(frame, labels, spec, [band, DEPENDENCE, notes], cumulated, "ECDF minus uniform ECDF", 0.0)


def binned(ranks: NDArray[np.int64], draws: int) -> Points:
    """The lower edges (b,) of the bins, the counts in them over the expected count, and their binomial band."""
    from scipy.stats import binom  # takes half a second to import

    edges = np.arange(BINS) / BINS
    counts = np.bincount(ranks * BINS // (draws + 1), minlength=BINS)
    tails = binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], len(ranks), 1 / BINS)
    low, high = np.broadcast_to(tails[:, None] * BINS / len(ranks), (2, BINS))
    return edges, counts * BINS / len(ranks), low, high


def cumulated(ranks: NDArray[np.int64], draws: int) -> Points:
    """z = k / (draws + 1), k = 1 .. draws, the fraction of the ranks below k minus z, and its band."""
    z = np.arange(1, draws + 1) / (draws + 1)
    below = (ranks[:, None] < np.arange(1, draws + 1)).mean(axis=0)
    low, high = simultaneous(len(ranks), draws)
    return z, below - z, low / len(ranks) - z, high / len(ranks) - z


@cache
def simultaneous(n: int, draws: int) -> tuple[Floats, Floats]:
    """The least and the greatest number (draws,) of n uniform ranks below k = 1 .. draws, for all k at once.

    Säilynoja et al. 2022, Algorithm 1: binomial intervals of one level for all k, the level chosen such that they
    contain all numbers of a fraction `LEVEL` of the simulated sets. Deterministic.
    """
    from scipy.stats import binom

    z, rng = np.arange(1, draws + 1) / (draws + 1), np.random.default_rng(0)
    counts = rng.multinomial(n, np.full(draws + 1, 1 / (draws + 1)), size=SIMULATED)[:, :-1].cumsum(axis=1)
    tails = np.minimum(binom.cdf(counts, n, z), binom.sf(counts - 1, n, z)).min(axis=1)
    tail = np.quantile(tails, 1 - LEVEL)
    return binom.ppf(tail, n, z), binom.isf(tail, n, z)


def _draw(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    spec: Spec,
    notes: list[str],
    form: Form,
    ylabel: str,
    uniform: float,
) -> tuple[Figure, pd.DataFrame]:
    """The figure of ranks in this form; `uniform`: the value of uniform ranks."""
    rows = frame[frame["metric"] == spec["metric"]]
    known, titles = series_of(rows, labels), declared_titles(spec)
    marked = mark_series(rows, known)
    done = marked[(marked["status"] == "done") & marked["detail"].map(bool)]
    panels = in_order(done["panel"], titles)
    drawn = [pd.DataFrame(columns=DRAWN)]
    with style():
        figure, grid = empty_figure(max(len(panels), 1))
        for axes, panel in zip(grid, panels, strict=False):
            drawn += _draw_panel(axes, done[done["panel"] == panel], known, form)
            axes.axhline(uniform, color=REFERENCE_COLOUR, linestyle=":", linewidth=0.9)
            axes.set(xlabel="normalised rank", ylabel=ylabel, xlim=(0, 1))
        set_titles(figure, grid, [titles.get(name, name) for name in panels] or [""], spec)
        add_legend(figure, grid, [one.label for one in known])
        sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
        add_footnote(figure, as_text([*notes, *sentences]))
    return figure, pd.concat([part for part in drawn if len(part)] or drawn, ignore_index=True)


def _draw_panel(axes: Axes, rows: pd.DataFrame, known: Sequence[Series], form: Form) -> list[pd.DataFrame]:
    """One line per series, in steps, and the widest of their bands; the points of each."""
    drawn, bands = [], []
    for place, (one, look) in enumerate(zip(known, line_styles(known), strict=True)):
        details = list(rows.loc[rows["series_order"] == place, "detail"])
        if not details:
            continue
        ranks = np.concatenate([detail["ranks"] for detail in details])
        z, value, low, high = form(ranks, int(details[0]["draws"]))
        x, y, least, most = np.append(z, 1.0), *(np.append(values, values[-1]) for values in (value, low, high))
        axes.step(x, y, where="post", label=one.label, color=look["color"], linestyle=look["linestyle"])
        bands.append((len(ranks), x, least, most))
        points = {"place": z, "value": value, "low": low, "high": high, "ranks": len(ranks)}
        drawn.append(pd.DataFrame({"panel": rows["panel"].iloc[0], "series": one.label, **points}))
    if bands:
        _, x, least, most = min(bands, key=lambda band: band[0])
        axes.fill_between(x, least, most, step="post", color="#999999", alpha=0.3, linewidth=0)
    return drawn


# --- marginal posteriors of the coefficients and the non-private ones, one panel per epsilon and coefficient ---------


def posteriors(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw the distribution functions in the details of the scores of `spec["metric"]`.

    A detail has `columns`, and for each of them the quantiles at `levels` of the `posterior` and of the `nonprivate`
    one. A line is the mean quantile over the repetitions, a band the middle 95 % of these. `spec` has name, metric,
    title, epsilon (one, or a list of those that are drawn, each with its own panels), and perhaps panels (data set ->
    title; one with several data sets has a panel for each coefficient of each). All panels have the same axes. Returns
    the figure and its points.
    """
    known, epsilons = series_of(frame, labels), [float(one) for one in listed(spec["epsilon"])]
    rows = frame[(frame["metric"] == spec["metric"]) & frame["epsilon"].isin(epsilons)]
    done = mark_series(rows, known)
    done = done[(done["status"] == "done") & done["detail"].map(bool)]
    titles, places = declared_titles(spec), _places(done, epsilons)
    several = [len(set(values)) > 1 for values in zip(*places, strict=True)] or [False] * 3
    panels = [
        f"{titles.get(name, name) + ': ' if several[1] else ''}{one}{f', ε = {epsilon:g}' if several[0] else ''}"
        for epsilon, name, one in places
    ]
    drawn = [pd.DataFrame(columns=QUANTILES)]
    with style():
        figure, grid = empty_figure(max(len(panels), 1))
        for axes, (epsilon, dataset, column) in zip(grid, places, strict=False):
            cells = done[(done["epsilon"] == epsilon) & (done["dataset"] == dataset)]
            drawn += _draw_quantiles(axes, cells, column, known)
        ends = np.array([axes.get_xlim() for axes in grid])
        for axes in grid:
            axes.set(xlim=(ends[:, 0].min(), ends[:, 1].max()))
            axes.xaxis.set_major_locator(MaxNLocator(TICKS))
        set_titles(figure, grid, panels or [""], {**spec, "panels": dict.fromkeys(panels, "")})
        add_legend(figure, grid, [REFERENCE, *(one.label for one in known)])
        named = rows.assign(dataset=rows["dataset"].replace(titles))
        shown = "Mean quantiles, as lines, and the middle 95 % of these, as bands,"
        sentences = footnotes(named, known, notes, shown) if len(rows) else [notes]
        alone = [f"ε = {epsilons[0]:g}"] if len(epsilons) == 1 else []  # panels of several have theirs in the title
        add_footnote(figure, as_text([*alone, *sentences]))
    return figure, pd.concat([part for part in drawn if len(part)] or drawn, ignore_index=True)


def _places(done: pd.DataFrame, epsilons: Sequence[float]) -> list[tuple[float, str, str]]:
    """Epsilon, data set and coefficient of each panel: a row of panels for each epsilon, in the declared order."""
    columns = {
        (name, one): None
        for name, detail in zip(done["dataset"], done["detail"], strict=True)
        for one in detail["columns"]
    }
    found = set(zip(done["epsilon"], done["dataset"], strict=True))
    return [(epsilon, name, one) for epsilon in epsilons for name, one in columns if (epsilon, name) in found]


def _draw_quantiles(axes: Axes, rows: pd.DataFrame, column: str, known: Sequence[Series]) -> list[pd.DataFrame]:
    """The non-private posterior and one line per series; the points of each."""
    looks: dict[str, LineStyle] = {REFERENCE: {"color": REFERENCE_COLOUR, "linestyle": "--"}}
    parts = [(REFERENCE, rows.drop_duplicates("repetition"), "nonprivate")]
    for place, (one, look) in enumerate(zip(known, line_styles(known), strict=True)):
        looks[one.label] = {"color": look["color"], "linestyle": look["linestyle"]}
        parts.append((one.label, rows[rows["series_order"] == place], "posterior"))
    drawn = []
    for label, cells, key in parts:
        if len(cells):
            points = _points(cells, column, key).assign(series=label)
            drawn.append(points[QUANTILES])
            axes.plot(points["mean"], points["level"], label=label, **looks[label])
            axes.fill_betweenx(
                points["level"], points["low"], points["high"], color=looks[label]["color"], alpha=0.15, linewidth=0
            )
    axes.set(xlabel="coefficient", ylabel="distribution function", ylim=(0, 1))
    return drawn


def _points(cells: pd.DataFrame, column: str, key: str) -> pd.DataFrame:
    """The mean over the repetitions of the quantile at each level, and the ends of the middle 95 %."""
    values = np.array([detail[key][detail["columns"].index(column)] for detail in cells["detail"]])
    low, high = np.quantile(values, MIDDLE, axis=0)
    first = cells.iloc[0]
    return pd.DataFrame(
        {
            "dataset": first["dataset"],
            "column": column,
            "epsilon": first["epsilon"],
            "level": first["detail"]["levels"],
            "mean": values.mean(axis=0),
            "low": low,
            "high": high,
            "repetitions": len(values),
        }
    )
