"""On how many data sets a method is best, and ratios of methods' means: ours and the published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dpbench.config.specs import Ranks
from dpbench.report.text import number


def ranks(cells: pd.DataFrame, asked: Ranks, paper_names: Mapping[str, str]) -> list[str]:
    """How often the method `asked["method"]` has the lowest and the second lowest mean of the methods `among`.

    One sentence for each of its calibrations, with the others under the same one, if they have it, or the tight one;
    and one for the paper, unless another method has the paper's name for it (`paper_names`). A data set counts if all
    of these methods that were run anywhere were run on it; for the paper, if it has the method. As in `mean_ranks`, a
    method that lacks a value in a repetition ranks last; it is named. Means are of all repetitions that a method was
    run in.
    """
    method, among = str(asked["method"]), [str(name) for name in asked["among"]]
    run = cells.assign(score=_scores(cells)).dropna(subset="score")
    calibrations = sorted(set(run.loc[run["method"] == method, "calibration"]))
    sentences = []
    for calibration in calibrations[::-1]:
        like = {name: _like(run, name, calibration) for name in among}
        alike = run[run["calibration"] == run["method"].map(like)]
        scores = alike.pivot_table(index="row", columns="method", values="score")
        sentences.append(_places(_named(method, calibration), method, _columns(scores, among).dropna()))
    own = paper_names.get(method, method) == method or paper_names[method] not in set(cells["method"])
    published = cells.pivot_table(index="row", columns="method", values="published")
    if method in published and own:
        values = _columns(published, among).dropna(subset=method).dropna(axis=1, how="all")
        sentences.append(_places(f"{method}, published", method, values))
    return sentences


def _scores(cells: pd.DataFrame) -> pd.Series:
    """The value by which each cell is ranked: its mean, infinite if a repetition lacks a value; NaN if not run."""
    return cells["mean"].where(cells["failed"] + cells["no_estimate"] == 0, np.inf)


def _like(cells: pd.DataFrame, method: str, calibration: str) -> str:
    own = set(cells.loc[cells["method"] == method, "calibration"])
    return calibration if calibration in own else "tight" if "tight" in own else "".join(sorted(own))


def _columns(values: pd.DataFrame, among: Sequence[str]) -> pd.DataFrame:
    return values[[name for name in among if name in values]]


def _places(name: str, method: str, values: pd.DataFrame) -> str:
    """The sentence on the places of a method among the columns."""
    places = (1 + values.lt(values[method], axis=0).sum(axis=1)).where(np.isfinite(values[method]))
    lost = [f"{column} on {count}" for column, count in np.isinf(values).sum().items() if count]
    return (
        f"{name}: lowest mean on {(places == 1).sum()} and second lowest on {(places == 2).sum()} of {len(values)} "
        f"data sets, among {', '.join(map(str, values))}"
        + (f"; ranked last because a repetition has no value: {', '.join(lost)}" if lost else "")
    )


def mean_ratios(cells: pd.DataFrame, above: str, below: str) -> list[str]:
    """The ratio of the means over the data sets that have both methods, by calibration of `below`; published too.

    `above` has the same calibration, if it was run under it, or the tight one.
    """
    sentences, ours = [], cells.dropna(subset="mean")
    series = ours.loc[ours["method"] == below, ["series", "calibration"]]
    for name, calibration in series.drop_duplicates().itertuples(index=False):
        like = _like(ours, above, calibration)
        under = (ours["method"] == above) & (ours["calibration"] == like)
        sentences += _ratio(_named(above, like), ours[under], name, ours[ours["series"] == name], "mean")
    one, other = (cells[cells["method"] == method] for method in (above, below))
    return sentences + _ratio(above, one, f"{below}, published", other, "published")


def _ratio(above: str, one: pd.DataFrame, below: str, other: pd.DataFrame, column: str) -> list[str]:
    """The sentence on the ratio of a column's means over the data sets that both have; none where there are none."""
    both = [rows.dropna(subset=column).drop_duplicates("row").set_index("row")[column] for rows in (one, other)]
    pairs = pd.concat(both, axis=1, keys=["above", "below"]).dropna()
    if pairs.empty:
        return []
    ratio = float(np.mean(pairs["above"]) / np.mean(pairs["below"]))
    return [f"{above} / {below}, means of {len(pairs)} data sets: {number(float(f'{ratio:.3g}'))}"]


def _named(method: str, calibration: str) -> str:
    return f"{method} ({calibration})" if calibration else method
