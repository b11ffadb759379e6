"""Which method is best over many data sets: mean ranks with their critical difference (Demšar 2006, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpbench.config.specs import Spec
from dpbench.data.domain import Floats
from dpbench.report.footnotes import as_text, listed, sweep_footnotes
from dpbench.report.frames.frame import LEVEL, has_value
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.picture.looks import line_styles
from dpbench.report.picture.picture import Axis, Panel, Picture, Points, around, titled

DRAWN = ["epsilon", "series", "mean_rank", "low", "high", "best", "datasets", "friedman_p"]
BLOCK = ["dataset", "delta"]  # one block of the rank tests
RANKED = (
    "Mean over the data sets of the rank of the method's mean score, 1 the best; a method that lacks a value in a "
    "repetition ranks last"
)
NEMENYI = f"methods differ by Nemenyi's test at {100 * (1 - LEVEL):.0f} % (Demšar 2006)"
CAPTION = f"{RANKED}. Where bars do not overlap, {NEMENYI}: bars are half its critical difference to each side"
DELTAS = "A data set counts once for each of its δ"
SAMPLES = 2000  # of data sets, by bootstrap


def mean_ranks(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The mean rank of each private series by `spec["metric"]`, a panel for each epsilon.

    A series has a rank if it was run on at least half of the data sets, and a data set, at each of its deltas, counts
    if every such series was run on it: Friedman's and Nemenyi's tests need complete rows. The metric's direction says
    whether low or high is best. The data drawn are the points: mean rank, its bar, on how many data sets the series is
    the best one, how many there are, and the p-value of Friedman's test that all are alike.
    """
    rows = frame[(frame["metric"] == spec["metric"]) & np.isfinite(frame["epsilon"])]
    known = series_of(rows, labels)
    parts = [(epsilon, here) for epsilon, here in mark_series(rows, known).groupby("epsilon")]
    drawn = [ranks_of(here).assign(epsilon=epsilon) for epsilon, here in parts]
    titles = declared_titles(spec)
    sentences = sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), known) if len(rows) else []
    if (rows.groupby("dataset")["delta"].nunique() > 1).any():
        sentences = [DELTAS, *sentences]
    unranked = without_rank([here for _, here in parts])
    footnote = as_text([notes, CAPTION, *map(friedman_sentence, drawn), *unranked, *sentences])
    return titled(spec, [*map(_panel, drawn)], line_styles(known), footnote, drawn, DRAWN)


def ranks_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean rank of each series, in the order of the series, with its bar, its first and second places, which ties
    share, the tests, and how sure it is that the series has the least mean rank: in which part of `SAMPLES` bootstrap
    samples of the data sets it has, and without how many of them, one at a time.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range  # takes half a second to import

    rows = _ranked(rows)
    cells = rows.assign(value=rows["value"].where(has_value(rows), math.nan)).groupby([*BLOCK, "series_order"])["value"]
    means = cells.agg(lambda values: values.mean(skipna=False)).unstack()
    run = means.index.isin(pd.MultiIndex.from_frame(counted(rows)[BLOCK]))
    sign = -1.0 if (rows["direction"] == "higher").any() else 1.0
    scores = (sign * means[run]).fillna(math.inf).to_numpy()
    ranks, (count, methods) = rankdata(scores, axis=1), scores.shape
    places = np.where(np.isfinite(scores), rankdata(scores, axis=1, method="min"), math.inf)
    reach = math.nan
    if count > 1 and methods > 1:
        reach = studentized_range.ppf(LEVEL, methods, math.inf) * math.sqrt(methods * (methods + 1) / (12 * count))
    p = friedmanchisquare(*ranks.T).pvalue if count > 1 and methods > 2 else math.nan
    mean = ranks.mean(axis=0) if count else np.full(methods, math.nan)
    first, without_one = _firsts(ranks) if count else (np.full(methods, math.nan), np.zeros(methods, dtype=int))
    names = rows.drop_duplicates("series_order").set_index("series_order")["series"]
    return pd.DataFrame(
        {
            "series_order": means.columns,
            "series": names.loc[means.columns].to_numpy(),
            "mean_rank": mean,
            "low": mean - reach / 2,
            "high": mean + reach / 2,
            "critical_difference": reach,
            "best": (places == 1).sum(axis=0),
            "second": (places == 2).sum(axis=0),
            "first": first,
            "first_without_one": without_one,
            "datasets": count,
            "friedman_p": p,
        }
    )


def _firsts(ranks: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Of ranks (data sets, methods): the part of bootstrap samples of the data sets in which each method has the least
    mean rank, and the number of data sets without which it has. Methods that tie all have it.
    """
    count = len(ranks)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=SAMPLES)
    of_samples, of_others = drawn @ ranks, ranks.sum(axis=0) - ranks
    first, without_one = (sums <= sums.min(axis=1, keepdims=True) + 1e-9 for sums in (of_samples, of_others))
    return first.mean(axis=0), without_one.sum(axis=0)


def _ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the series that were run on at least half of the data sets, at each of their deltas."""
    blocks = rows.drop_duplicates([*BLOCK, "series_order"]).groupby("series_order").size()
    enough = blocks.index[2 * blocks >= len(rows[BLOCK].drop_duplicates())]
    return rows[rows["series_order"].isin(enough)]


def without_rank(parts: Sequence[pd.DataFrame]) -> list[str]:
    """The sentence on the series that have no rank; `parts`: the rows of each epsilon."""
    names = dict.fromkeys(name for rows in parts for name in rows["series"].drop(_ranked(rows).index))
    return [f"Without a rank, as run on fewer than half of the data sets: {listed([*names])}"] if names else []


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the data sets, at each of their deltas, on which every series that has a rank was run."""
    rows = _ranked(rows)
    series = rows.groupby(BLOCK)["series_order"].transform("nunique")
    return rows[series == rows["series_order"].nunique()]


def _panel(points: pd.DataFrame) -> Panel:
    """One row per series, the best one on top."""
    rows = points.sort_values("mean_rank", kind="stable", ignore_index=True).assign(row=range(len(points)))
    x = Axis("mean rank", around(rows["mean_rank"], rows["low"], rows["high"]))
    y = Axis("", (len(rows) - 0.5, -0.5), ticks=dict(enumerate(rows["series"])), words="series")
    marks = [Points(rows, "mean_rank", "row", joined=False, across=True, tip=DRAWN[1:])]
    return Panel(f"ε = {rows['epsilon'].iloc[0]:g}", x, y, marks)


def friedman_sentence(points: pd.DataFrame) -> str:
    """The sentence on how many data sets count at an epsilon, and Friedman's test there."""
    p, count = points["friedman_p"].iloc[0], points["datasets"].iloc[0]
    test = "" if math.isnan(p) else f", Friedman's test p = {p:.2g}"
    return f"ε = {points['epsilon'].iloc[0]:g}: {count} data sets{test}"
