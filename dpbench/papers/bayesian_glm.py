"""Figures of the paper on Bayesian GLMs: ranks of the truth among draws (simulation-based calibration), posteriors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpbench.config.specs import Spec
from dpbench.config.values import listed
from dpbench.data.domain import Floats
from dpbench.report.footnotes import as_text, footnotes, sweep_footnotes
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of
from dpbench.report.picture.looks import DASHED, DOTTED, Look, line_styles, plain
from dpbench.report.picture.picture import Area, Axis, Levels, Mark, Panel, Picture, Points, around, titled

BINS = 20  # of a rank histogram
LEVEL = 0.95  # of the bands
SIMULATED = 5000  # sets of uniform ranks behind a simultaneous band
DRAWN = ["panel", "series", "place", "value", "low", "high", "ranks"]
DEPENDENCE = "The ranks of the coefficients of one data set are treated as independent"
Ranked = tuple[Floats, Floats, Floats, Floats]  # places on the x axis, values, and the ends of the band
Form = Callable[[NDArray[np.int64], int], Ranked]  # of ranks, 0 to the number of draws
QUANTILES = ["dataset", "column", "series", "epsilon", "level", "mean", "low", "high", "repetitions"]
REFERENCE = "non-private"
MIDDLE = (0.025, 0.975)  # of the repetitions are inside the band
TICKS = 5  # intervals between the ticks of a coefficient, at most


def rank_histogram(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """How often the truth has each rank among the draws, over the expected count, with the band of each bin.

    Talts et al. 2018: the ranks of a calibrated posterior are uniform. High ends show that the posterior is too narrow,
    a slope that it is biased. `spec` has name, metric (whose detail has the `ranks` and the number of
    `draws`), title, and perhaps panel (the setting whose values have a panel each, in place of the data sets), panels
    (its values -> title) and where. The data drawn are the bins.
    """
    band = f"Bands: the middle {LEVEL:.0%} of the count of each bin for uniform ranks"
    return _picture(frame, labels, spec, [band, DEPENDENCE, notes], binned, "count over expected", 1.0)


def rank_ecdf(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The empirical distribution function of the ranks minus the uniform one, with a simultaneous band.

    Säilynoja, Bürkner and Vehtari 2022: the line of a calibrated posterior is entirely in the band with probability
    `LEVEL`. A line that rises at both ends and falls between shows a posterior that is too narrow. `spec` as for
    `rank_histogram`. The data drawn are the points.
    """
    band = f"Bands: for uniform ranks the entire line is inside with probability {LEVEL:.0%}"
    return _picture(frame, labels, spec, [band, DEPENDENCE, notes], cumulated, "ECDF minus uniform ECDF", 0.0)


def binned(ranks: NDArray[np.int64], draws: int) -> Ranked:
    """The lower edges (b,) of the bins, the counts in them over the expected count, and their binomial band."""
    from scipy.stats import binom  # takes half a second to import

    edges = np.arange(BINS) / BINS
    counts = np.bincount(ranks * BINS // (draws + 1), minlength=BINS)
    tails = binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], len(ranks), 1 / BINS)
    low, high = np.broadcast_to(tails[:, None] * BINS / len(ranks), (2, BINS))
    return edges, counts * BINS / len(ranks), low, high


def cumulated(ranks: NDArray[np.int64], draws: int) -> Ranked:
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


def _picture(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    spec: Spec,
    notes: list[str],
    form: Form,
    ylabel: str,
    uniform: float,
) -> Picture:
    """The picture of ranks in this form; `uniform`: the value of uniform ranks."""
    rows = frame[frame["metric"] == spec["metric"]]
    known, titles = series_of(rows, labels), declared_titles(spec)
    marked = mark_series(rows, known)
    done = marked[(marked["status"] == "done") & marked["detail"].map(bool)]
    panels, drawn = [], list[pd.DataFrame]()
    level = Levels(pd.DataFrame({"series": ["_uniform"], "at": [uniform]}), "at", bars=False)
    for name in in_order(done["panel"], titles):
        points = _ranks(done[done["panel"] == name], known, form)
        ended = pd.concat([points, points.groupby("series").tail(1).assign(place=1.0)])
        fewest = ended.sort_values("ranks", kind="stable")["series"].iloc[0]
        widest = ended[ended["series"] == fewest].assign(series="_band")
        steps = Points(ended, "place", "value", None, steps=True, tip=DRAWN[1:])
        marks: list[Mark] = [steps, Area(widest, "place", "low", "high", 0.3, steps=True), level]
        axes = Axis(ylabel, around([uniform], points["value"], points["low"], points["high"]))
        panels.append(Panel(titles.get(name, name), Axis("normalised rank", (0.0, 1.0)), axes, marks, name))
        drawn.append(points)
    sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    looks = plain(line_styles(known)) | {"_band": Look("#999999"), "_uniform": Look(dashes=DOTTED, width=0.9)}
    return titled(spec, panels, looks, as_text([*notes, *sentences]), drawn, DRAWN)


def _ranks(rows: pd.DataFrame, known: Sequence[Series], form: Form) -> pd.DataFrame:
    """The points of each series."""
    found = []
    for place, one in enumerate(known):
        details = list(rows.loc[rows["series_order"] == place, "detail"])
        if details:
            ranks = np.concatenate([detail["ranks"] for detail in details])
            z, value, low, high = form(ranks, int(details[0]["draws"]))
            points = {"place": z, "value": value, "low": low, "high": high, "ranks": len(ranks)}
            found.append(pd.DataFrame({"panel": rows["panel"].iloc[0], "series": one.label, **points}))
    return pd.concat(found, ignore_index=True)


# --- marginal posteriors of the coefficients and the non-private ones, one panel per epsilon and coefficient ---------


def posteriors(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The distribution functions in the details of the scores of `spec["metric"]`.

    A detail has `columns`, and for each of them the quantiles at `levels` of the `posterior` and of the `nonprivate`
    one. A line is the mean quantile over the repetitions, a band the middle 95 % of these. `spec` has name, metric,
    title, epsilon (one, or a list of those that are drawn, each with its own panels), and perhaps panels (data set ->
    title; one with several data sets has a panel for each coefficient of each). All panels have the same axes. The data
    drawn are the points.
    """
    known, epsilons = series_of(frame, labels), [float(one) for one in listed(spec["epsilon"])]
    rows = frame[(frame["metric"] == spec["metric"]) & frame["epsilon"].isin(epsilons)]
    done = mark_series(rows, known)
    done = done[(done["status"] == "done") & done["detail"].map(bool)]
    titles, places = declared_titles(spec), _places(done, epsilons)
    several = [len(set(values)) > 1 for values in zip(*places, strict=True)] or [False] * 3
    drawn = [
        _quantiles(done[(done["epsilon"] == epsilon) & (done["dataset"] == dataset)], column, known)
        for epsilon, dataset, column in places
    ]
    x = Axis("coefficient", around(*(one[name] for one in drawn for name in ("mean", "low", "high"))), most=TICKS)
    y, panels = Axis("distribution function", (0.0, 1.0)), []
    for points, (epsilon, name, one) in zip(drawn, places, strict=True):
        of, at = f"{titles.get(name, name)}: " if several[1] else "", f", ε = {epsilon:g}" if several[0] else ""
        lines = Points(points, "mean", "level", None, tip=["series", "mean", "level"])
        bands = Area(points, "level", "low", "high", 0.15, upright=True)
        panels.append(Panel(f"{of}{one}{at}", x, y, [lines, bands], name))
    looks = {REFERENCE: Look(dashes=DASHED)} | plain(line_styles(known))
    named = rows.assign(dataset=rows["dataset"].replace(titles))
    shown = "Mean quantiles, as lines, and the middle 95 % of these, as bands,"
    sentences = footnotes(named, known, notes, shown) if len(rows) else [notes]
    alone = [f"ε = {epsilons[0]:g}"] if len(epsilons) == 1 else []  # panels of several have theirs in the title
    declared: Spec = {**spec, "panels": dict.fromkeys(places, "")}
    return titled(declared, panels, looks, as_text([*alone, *sentences]), drawn, QUANTILES)


def _places(done: pd.DataFrame, epsilons: Sequence[float]) -> list[tuple[float, str, str]]:
    """Epsilon, data set and coefficient of each panel: a row of panels for each epsilon, in the declared order."""
    columns = {
        (name, one): None
        for name, detail in zip(done["dataset"], done["detail"], strict=True)
        for one in detail["columns"]
    }
    found = set(zip(done["epsilon"], done["dataset"], strict=True))
    return [(epsilon, name, one) for epsilon in epsilons for name, one in columns if (epsilon, name) in found]


def _quantiles(rows: pd.DataFrame, column: str, known: Sequence[Series]) -> pd.DataFrame:
    """The points of the non-private posterior and of each series."""
    parts = [(REFERENCE, rows.drop_duplicates("repetition"), "nonprivate")]
    parts += [(one.label, rows[rows["series_order"] == place], "posterior") for place, one in enumerate(known)]
    found = [_points(cells, column, key).assign(series=label)[QUANTILES] for label, cells, key in parts if len(cells)]
    return pd.concat(found, ignore_index=True)


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
