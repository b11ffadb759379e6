"""What the arena says for a table of one's own: the methods that did best, what to expect, and how often that held."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpbench.config.specs import Report
from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.report.frames.series import Series, mark_series, series_of

NEAREST = 5  # places that are near
CLOSE = 1.1  # a method is close to the best one if its error is at most this multiple of it
ERRORS = 2  # standard errors beyond which a difference counts
PLACE = ["dataset", "epsilon"]
IN_UNITS = {"mse": "r2"}  # a metric in units of the table, and the same without them
TRIVIAL = {"r2": 0.0, "auc": 0.5}  # of the mean, and of a constant score
TRIVIAL_ANSWERS = ("zero", "uniform", "independent")  # the mechanisms that give them to queries
RULES = ("near", "budget", "overall")  # best on the nearest places, over all tables at the nearest epsilon, over all
PAYS = 0.75  # of the places: a method that beats the trivial answer there pays
EXISTS = 0.75  # of the runs, or of all tables: a method with a value in so many has one


@dataclass(frozen=True)
class Size:
    """What is known of a table without any budget: rows, attributes, and coefficients, None without a regression."""

    rows: int
    columns: int
    coefficients: int | None

    def at(self, epsilon: float) -> Floats:
        """The coordinates of the table under a budget (3,), or (2,) without a regression: the logarithms of n epsilon
        (the noise of a mean is its inverse), of the attributes and of the coefficients. The distance of tables is that
        of these points.
        """
        return np.log([self.rows * epsilon, self.columns, *([] if self.coefficients is None else [self.coefficients])])


@dataclass(frozen=True)
class Evidence:
    """How the private `methods` did: `cells` by data set, epsilon and method (`evidence_of`), and, by data set, the
    error of the `trivial` answer, NaN if there is none, and the least one without privacy, `exact`.
    """

    methods: Mapping[str, Series]
    cells: pd.DataFrame
    trivial: pd.Series[float]
    exact: pd.Series[float]

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The error of each method, a column, at each place, a row: NaN where it was not run or mostly has no value,
        inf where its intervals cover too little.
        """
        return self.cells["error"].mask(self.cells["below"], math.inf).unstack("series")

    @cached_property
    def expected(self) -> pd.DataFrame:
        """The share of the gain over the trivial answer that each method keeps at each place: 1 for the non-private
        error, 0 for the trivial one. Without a trivial answer the error, as a multiple of the non-private one.
        """
        errors = self.cells["error"].unstack("series")
        trivial, exact = (
            errors.index.get_level_values("dataset").map(part.to_dict()) for part in (self.trivial, self.exact)
        )
        if trivial.isna().all():
            return errors.div(exact, axis=0)
        return errors.rsub(trivial, axis=0).div(trivial - exact, axis=0)

    @cached_property
    def wins(self) -> pd.DataFrame:
        """Whether the error of each method at each place is below that of the trivial answer, 1 or 0; NaN where it was
        not run. Where there is no such answer, whether it has a value in `EXISTS` of its runs, and is not `below`.
        """
        if self.trivial.isna().all():
            exists = self.cells["without"] <= (1 - EXISTS) * self.cells["runs"]
            return (exists & ~self.cells["below"]).astype(float).unstack("series")
        trivial = self.cells.index.get_level_values("dataset").map(self.trivial.to_dict())
        return (self.cells["error"] < trivial).astype(float).unstack("series")


def ranking_metric(report: Report) -> str:
    """The metric by which an arena ranks its methods: that of its figure of mean ranks, else the first of its metrics.

    Raises `UserError` if the report names neither.
    """
    ranks = [spec["metric"] for spec in report["figures"] if spec.get("kind") == "mean_ranks"]
    if named := [*ranks, *(report["metrics"] or [])]:
        return str(named[0])
    raise UserError("the experiment names no metric to rank by: give it report.metrics or a figure of kind mean_ranks")


def without_unit(metric: str, known: Collection[str]) -> str:
    """The metric, or the same one without a unit if it is among the known ones: errors of several tables compare."""
    free = IN_UNITS.get(metric, metric)
    return free if free in known else metric


def evidence_of(cells: pd.DataFrame, metric: str, labels: Mapping[str, str], level: float | None = None) -> Evidence:
    """The evidence in cells of `outcomes.method_cells`. A score s that is better if higher counts as the error 1 - s.

    A cell has the mean `error` and its standard error `se`, the number of `runs` and of those `without` a value, median
    `seconds` and `mb`, and for intervals of a `level` the mean `coverage`, and whether it is `below` the level by
    `ERRORS` standard errors. A run without a value counts as the trivial answer. If there is no such answer, the run is
    left out, and a cell in which half of the runs or more are has no error; nor has one without any value.

    Raises `UserError` if the metric cannot rank methods: it has no better direction, or an error is below zero, which
    has no multiples.
    """
    known = series_of(cells, labels)
    cells = mark_series(cells, known)
    rows = cells[cells["metric"] == metric]
    better = set(rows["direction"])
    if rows["valued"].any() and not better & {"lower", "higher"}:
        raise UserError(f"{metric} cannot rank methods: neither low nor high values of it are better")
    higher = "higher" in better
    if (rows["most"] > 1).any() if higher else (rows["least"] < 0).any():
        raise UserError(f"{metric} cannot rank methods: errors below zero have no ratio to the lowest")
    rows = rows.assign(error=1 - rows["mean"] if higher else rows["mean"], without=rows["runs"] - rows["valued"])
    trivial, exact = _references(rows, metric)
    answers = rows["dataset"].map(trivial).astype(float)
    found = rows["valued"] + rows["without"].where(answers.notna(), 0)
    error = _mean(rows["valued"], rows["error"], found, answers)
    squares = (rows["valued"] - 1).clip(lower=0) * rows["sd"].fillna(0) ** 2
    squares += rows["valued"] * (rows["error"] - error).fillna(0) ** 2
    squares += (found - rows["valued"]) * (answers - error).fillna(0) ** 2
    se = np.sqrt(squares / ((found - 1) * found).where(found > 1))
    rows = rows.assign(error=error.where((rows["valued"] > 0) & (2 * found > rows["runs"])), se=se)
    places = [*PLACE, "series"]
    private = rows[np.isfinite(rows["epsilon"])].set_index(places).sort_index()
    private = private[["error", "se", "runs", "without", "seconds", "mb"]]
    covered = cells[(cells["metric"] == "coverage") & (cells["valued"] > 0)].set_index(places)
    coverage = covered["mean"].reindex(private.index)
    error_of = (covered["sd"] / np.sqrt(covered["valued"])).reindex(private.index)
    below = coverage + ERRORS * error_of < (-math.inf if level is None else level)
    return Evidence({one.label: one for one in known}, private.assign(coverage=coverage, below=below), trivial, exact)


def _mean(
    valued: pd.Series[int], mean: pd.Series[float], found: pd.Series[int], answers: pd.Series[float]
) -> pd.Series[float]:
    """The mean over the `found` runs, of which those without a value have the trivial answer."""
    total = (valued * mean).fillna(0) + ((found - valued) * answers).fillna(0)
    return total / found.where(found > 0)


def _references(rows: pd.DataFrame, metric: str) -> tuple[pd.Series[float], pd.Series[float]]:
    """The error of the trivial answer to each data set, and the least one without privacy: 0 for queries."""
    means = rows[np.isinf(rows["epsilon"])].set_index(["dataset", "mechanism", "model"])["error"]
    named, datasets = means.index.get_level_values("mechanism"), pd.Index(rows["dataset"].unique())
    exact = means[named.str.startswith("exact")].groupby("dataset").min().reindex(datasets)
    if metric in TRIVIAL:
        return pd.Series(1 - TRIVIAL[metric], datasets), exact
    trivial = means[named.isin(TRIVIAL_ANSWERS)].groupby("dataset").min().reindex(datasets)
    return trivial, exact.mask(trivial.notna(), 0.0)


def nearest(errors: pd.DataFrame, sizes: Mapping[str, Size], own: Floats) -> pd.DataFrame:
    """The rows of `errors` at the `NEAREST` places, the nearest one first."""
    away = [math.dist(sizes[dataset].at(epsilon), own) for dataset, epsilon in errors.index]
    return errors.iloc[np.argsort(away, kind="stable")[:NEAREST]]


def ratios_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors as multiples of the lowest at the place: 1 for the lowest, even if it is 0; inf for the others if the
    lowest is 0; NaN where no method has a finite one.
    """
    lowest = errors.min(axis=1)
    lowest = lowest.where(np.isfinite(lowest))
    return errors.div(lowest, axis=0).where(errors.ne(lowest, axis=0), 1.0).where(errors.notna())


def ranked(errors: pd.DataFrame, part: float = 0.5) -> list[str]:
    """The methods over some places, the best first, by the geometric mean of `ratios_of` where they have an error.

    Those that have one at no more than this part of the places are left out, and those that are not to be used (inf) at
    any.
    """
    kept = errors.columns[(errors.notna().mean() > part) & (errors != math.inf).all()]
    ratios = ratios_of(errors)[kept]
    with np.errstate(divide="ignore"):
        return [str(name) for name in np.log(ratios).mean().sort_values(kind="stable").index]


def orders(errors: pd.DataFrame, sizes: Mapping[str, Size], own: Size, epsilon: float) -> dict[str, list[str]]:
    """The methods for a table of this size, the best first, by each of the `RULES`: those that have an error on most of
    the nearest places, and are to be used there.
    """
    at = errors.index.get_level_values("epsilon")
    budget = min(at.unique(), key=lambda one: abs(math.log(one / epsilon)))
    here = ranked(nearest(errors, sizes, own.at(epsilon)))
    by_rule = (here, ranked(errors[at == budget]), ranked(errors))
    return {rule: [name for name in names if name in here] for rule, names in zip(RULES, by_rule, strict=True)}


def left_out(errors: pd.DataFrame, sizes: Mapping[str, Size]) -> pd.DataFrame:
    """How each of the `RULES` chose in the past: at each place, the error of the method that is first by the other data
    sets, as a multiple of the lowest error there; inf if that method has none.

    The lowest is that of the methods that are to be used (not inf) on all other data sets: what covers on one alone may
    do so by chance. NaN where none of these has an error.
    """
    others = {name: errors.drop(index=name, level="dataset") for name in errors.index.unique("dataset")}
    used = {name: (rest != math.inf).all() for name, rest in others.items()}
    rows = []
    for dataset, epsilon in errors.index:
        here = errors.loc[(dataset, epsilon)].replace(math.inf, math.nan)
        least = here[used[dataset]].min()
        firsts = [names[:1] for names in orders(others[dataset], sizes, sizes[dataset], epsilon).values()]
        found = [here[names].min() for names in firsts]
        rows.append([math.nan if np.isnan(least) else _ratio(error, least) for error in found])
    return pd.DataFrame(rows, index=errors.index, columns=list(RULES))


def _ratio(error: float, least: float) -> float:
    """1 for two errors of 0; inf if there is no error, or the least one is 0."""
    if np.isnan(error):
        return math.inf
    return 1.0 if error == least else error / least if least else math.inf


def rates(costs: pd.DataFrame) -> pd.Series[int]:
    """In how many cases each rule was close to the best, the rule to choose by first."""
    return (costs <= CLOSE).sum().sort_values(ascending=False, kind="stable")


@dataclass(frozen=True)
class Payoff:
    """From the amount of data `least` on a method beat the trivial answer at `won` of `places`, and with less at
    `won_below` of `below`.
    """

    least: float
    won: int
    places: int
    won_below: int
    below: int

    @property
    def often_below(self) -> bool:
        """Whether it won at most of the places with less, or there is none."""
        return not self.below or 2 * self.won_below > self.below


def pays_from(won: pd.Series[float], amounts: pd.Series[float]) -> Payoff | None:
    """The least amount of data from which on a method pays: of the places that have as much, up to any larger amount,
    it won (1, not 0) at `PAYS` or more, and there are `NEAREST` or more of them. None if there is no such amount.

    >>> pays_from(pd.Series([0.0, 1, 0, 1, 1, 1, 1]), pd.Series([1, 2, 4, 8, 16, 32, 64]))
    >>> pays_from(pd.Series([0.0, 1, 0, 1, 1, 1, 1, 0]), pd.Series([1, 2, 4, 8, 16, 32, 64, 64]))
    Payoff(least=8, won=4, places=5, won_below=1, below=3)
    """
    ran = won.dropna()
    each = ran.groupby(amounts[ran.index]).agg(["sum", "size"])
    for least in each.index:
        passed, below = each[each.index >= least].cumsum(), each[each.index < least].sum()
        if passed["size"].iloc[-1] >= NEAREST and (passed["sum"] >= PAYS * passed["size"]).all():
            return Payoff(least, int(passed["sum"].iloc[-1]), int(passed["size"].iloc[-1]), *map(int, below))
    return None


def beyond(errors: pd.DataFrame, sizes: Mapping[str, Size], own: Size, epsilon: float) -> list[str]:
    """What lies outside the range of the places, and by which factor: nothing is known there."""

    def measures(size: Size, budget: float) -> list[float]:
        return [*np.exp(size.at(budget)), budget]

    known = np.array([measures(sizes[dataset], budget) for dataset, budget in errors.index])
    found, names = [], [*("n ε", "columns", "coefficients")[: len(own.at(epsilon))], "ε"]
    for name, value, least, most in zip(names, measures(own, epsilon), known.min(0), known.max(0), strict=True):
        if value < least:
            found.append(f"{name} = {value:,.6g} is {least / value:.3g} times less than the least, {least:,.6g}")
        elif value > most:
            found.append(f"{name} = {value:,.6g} is {value / most:.3g} times the most, {most:,.6g}")
    return found
