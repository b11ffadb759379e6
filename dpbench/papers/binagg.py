"""Tables of BinAgg: bins of its estimates (Table 8), coverage of its intervals (Table 1), average times (5.2.2)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Spec
from dpbench.config.values import listed
from dpbench.contracts import TextTable
from dpbench.data.domain import Floats
from dpbench.files import Json
from dpbench.report.claims.agreement import RULE, WITHIN, counted, verdict
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.frame import has_value
from dpbench.report.frames.series import declared_titles, mark_series, series_of
from dpbench.report.frames.settings import metric_rows
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import mean_and_error, number

BINS = "notes.bins"  # the model's note of how many bins it used
ENDS = ("min", "max", "median")
LEVEL = "model.parameters.level"  # of the intervals
QUANTITIES = ("bias", "empirical SD", "theoretical SD", "naive theoretical SD", "coverage", "naive coverage")
NAIVE = QUANTITIES[3], QUANTITIES[5]  # of another method's trials
PLACE = ["draw", "quantity", "coefficient"]
SOURCES = PUBLISHED, PACKAGE = "published", "authors' package"
VERDICTS = {source: f"verdict, {source}" for source in SOURCES}
TIDY = [*PLACE, "series", "value", "se", "count", *(column for pair in VERDICTS.items() for column in pair)]
AGREE, DIFFER = 0.9, 0.5  # two sources agree or differ if at least, at most this share of their numbers is within
Numbers = dict[str, tuple[int, Floats, Floats]]  # quantity -> repetitions, value and standard error by coefficient


def bins_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable, *, column: str = BINS
) -> TextTable:
    """Smallest, largest and median number of bins over the repetitions: one row per data set, value of `x` and series.

    `published` may have rows: data set -> {value of `x`: [min, max, median]}. The verdict is whether the published
    median lies within our smallest and largest number; trials without an estimate have no bins, and are not counted.
    """
    rows = frame.drop_duplicates("trial")
    rows = rows[np.isfinite(rows["x"])]
    known = series_of(rows, labels)
    rows = mark_series(rows, known).assign(bins=rows[column].astype("float64"))
    titles = declared_titles(spec)
    lines = []
    for (dataset, x, _), cell in rows.groupby(["dataset", "x", "series_order"], sort=True):
        bins = cell["bins"].dropna()
        found = [bins.min(), bins.max(), bins.median()] if len(bins) else [np.nan] * 3
        theirs = (published.get("rows") or {}).get(dataset, {}).get(x, [np.nan] * 3)
        if not len(bins) and np.isnan(theirs[2]):
            continue
        inside = "" if np.isnan(theirs[2]) or not len(bins) else "yes" if found[0] <= theirs[2] <= found[1] else "no"
        lines.append([str(dataset), float(str(x)), cell["series"].iloc[0], len(bins), *found, *theirs, inside])
    columns = ["dataset", "x", "series", "count", *ENDS, *(f"{end}, paper" for end in ENDS), "median inside"]
    tidy = pd.DataFrame(lines, columns=columns)
    order = {name: place for place, name in enumerate(titles)}
    tidy = tidy.sort_values("dataset", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    keys = list(tidy[["dataset", "x", "series"]].itertuples(index=False, name=None))
    counted = trials_at(
        rows.dropna(subset="bins").assign(column="count"), columns[:3], "column", keys, [None, None, None, "count"]
    )
    trials = {(row, at + place): own for (row, at), own in counted.items() for place in range(1 + len(ENDS))}
    tidy["dataset"] = tidy["dataset"].replace(titles)
    texts = [[_text_of_bins(value) for value in line] for line in tidy.to_numpy()]
    below = sweep_footnotes(rows.assign(value=rows["bins"], dataset=rows["dataset"].replace(titles)), known)
    below += [f"Paper: {published['where']}, over {published['repetitions']} repetitions"] if published else []
    below.append("The last column: whether the published median lies within our smallest and largest number")
    return TextTable(["", str(spec.get("xlabel", spec["x"])), *columns[2:]], texts, below, tidy, trials)


def _text_of_bins(value: object) -> str:
    if isinstance(value, str):
        return value
    shown = float(str(value))
    return "" if np.isnan(shown) else number(shown)


# --- bias, standard deviation and coverage of each coefficient, with those of the naive intervals (Table 1) -----------


def coverage_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable, *, level: str = LEVEL
) -> TextTable:
    """One row per value of `spec["x"]`, quantity and coefficient; one column per method and calibration.

    bias: mean of the estimate minus the population's coefficient; empirical SD: of the estimates; theoretical SD: mean
    half-width of the intervals over the normal quantile of their level; coverage: share of the repetitions whose
    interval holds the population's coefficient. All are from the detail of the metric "coverage". `spec["method"]`, one
    or a list, and `spec["naive"]` are labels; of the latter only the theoretical SD and the coverage are shown, in the
    column of each method of the same calibration.

    `published` may have rows (a coefficient's numbers, in the order of the quantities), repetitions and digit, one for
    all quantities or one for each; and as `package` the same of the authors' code, with null for what it does not give.
    """
    methods = (frame["mechanism"] + "/" + frame["model"]).map(dict(labels))
    rows = frame[(frame["metric"] == "coverage") & methods.isin([*listed(spec["method"]), spec["naive"]])]
    known = series_of(rows, labels)
    marked = mark_series(rows, known).assign(method=methods[rows.index], level=rows[level])
    naive = marked["method"] == spec["naive"]
    sources = {PUBLISHED: published, PACKAGE: published.get("package") or {}}
    found = []
    behind: dict[tuple[Hashable, ...], list[str]] = {}  # place and series -> trials
    for (draw, _, series), own in marked[~naive].groupby(["x", "series_order", "series"], sort=True):
        calibration = own["calibration"].iloc[0]
        of_naive = marked[naive & (marked["x"] == draw) & (marked["calibration"] == calibration)]
        cells = [{"series": series, **cell} for cell in _cells(own, of_naive, sources)]
        trials_of_own, trials_of_naive = _with_detail(own), _with_detail(of_naive)
        for cell in cells:
            at_series = number(float(str(draw))), cell["quantity"], cell["coefficient"], series
            behind[at_series] = trials_of_naive if cell["quantity"] in NAIVE else trials_of_own
        cells += _of_package(cells, sources) if calibration == "authors" else []
        found += [{"draw": number(float(str(draw))), **cell} for cell in cells]
    tidy = pd.DataFrame(found, columns=TIDY)
    shown = [source for source in SOURCES if sources[source]]
    columns = [*shown, *(one.label for one in known if one.name != spec["naive"])]
    lines: list[list[str]] = []
    trials: dict[tuple[int, int], list[str]] = {}
    for _, row in tidy.groupby(PLACE, sort=False):
        texts = {source: number(row[source].max()) if row[source].notna().any() else "" for source in shown}
        texts |= {str(cell["series"]): _text(cell) for _, cell in row.iterrows()}
        place = tuple(row[PLACE].iloc[0])
        for at, name in enumerate(columns, len(PLACE)):
            if (*place, name) in behind:
                trials[len(lines), at] = behind[*place, name]
        lines.append([*place, *(texts.get(column, "not run") for column in columns)])
    errors = "of an SD for normal estimates, of a coverage with two more repetitions that cover and two that do not"
    below = [
        f"Cells: number ± standard error, {errors}",
        *sweep_footnotes(marked, known),
        *_about_sources(tidy, sources),
    ]
    return TextTable([str(spec.get("xlabel", spec["x"])), *PLACE[1:], *columns], lines, below, tidy, trials)


def _with_detail(rows: pd.DataFrame) -> list[str]:
    return [str(trial) for trial in rows.loc[rows["detail"].astype(bool), "trial"]]


def _cells(own: pd.DataFrame, naive: pd.DataFrame, sources: Mapping[str, PublishedTable]) -> Iterator[Json]:
    """A cell for each quantity and coefficient: our number, those of the sources, and the verdicts on these."""
    found, of_naive = _numbers(own), _numbers(naive)
    found |= {f"naive {name}": of_naive[name] for name in ("theoretical SD", "coverage") if name in of_naive}
    names: list[str] = next((detail["columns"] for detail in own["detail"] if detail), [])
    given = {source: _rows(numbers, len(names)) for source, numbers in sources.items()}
    for order, quantity in ((order, name) for order, name in enumerate(QUANTITIES) if name in found):
        count, values, errors = found[quantity]
        for place, name in enumerate(names):
            cell = {"quantity": quantity, "coefficient": name, "value": values[place], "se": errors[place]}
            cell["count"] = count
            for source, rows in given.items():
                scale = rows[place, QUANTITIES.index("empirical SD")] if quantity == "bias" else None
                cell[source] = rows[place, order]
                cell[VERDICTS[source]] = _verdict(cell, source, sources[source], scale)
            yield cell


def _rows(given: PublishedTable, coefficients: int) -> Floats:
    """The numbers of a source by coefficient and quantity, NaN where it has none."""
    rows = np.full((coefficients, len(QUANTITIES)), math.nan)
    for place, numbers in enumerate((given.get("rows") or [])[:coefficients]):
        rows[place] = np.array(numbers, dtype=float)
    return rows


def _verdict(cell: Json, source: str, given: PublishedTable, scale: float | None = None) -> str:
    """The verdict on our number and that of the source, "" if it has none."""
    if np.isnan(cell[source]):
        return ""
    digit = np.broadcast_to(given["digit"], len(QUANTITIES))[QUANTITIES.index(cell["quantity"])]
    return verdict(cell["value"], cell["se"], cell["count"], cell[source], {**given, "digit": digit}, scale)


def _of_package(cells: Iterable[Json], sources: Mapping[str, PublishedTable]) -> Iterator[Json]:
    """The numbers of the authors' package as cells of their own, with our spread, and the verdicts on the published."""
    for cell in cells:
        if np.isfinite(cell[PACKAGE]):
            count = sources[PACKAGE]["repetitions"]
            se = cell["se"] * math.sqrt(cell["count"] / count)
            own = {**cell, "series": PACKAGE, "value": cell[PACKAGE], "se": se, "count": count}
            own |= {PACKAGE: math.nan, VERDICTS[PACKAGE]: ""}
            yield own | {VERDICTS[PUBLISHED]: _verdict(own, PUBLISHED, sources[PUBLISHED])}


def _numbers(rows: pd.DataFrame) -> Numbers:
    """The numbers of one method's intervals, none for fewer than two repetitions."""
    details = [detail for detail in rows["detail"] if detail]
    n = len(details)
    if n < 2:
        return {}
    parts = ("coefficients", "population", "lower", "upper")
    estimate, truth, lower, upper = (np.array([detail[part] for detail in details]) for part in parts)
    half = (upper - lower) / 2 / NormalDist().inv_cdf((1 + float(rows["level"].iloc[0])) / 2)
    sd = (estimate - truth).std(axis=0, ddof=1)
    held = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    likely = (n * held + 2) / (n + 4)  # Agresti and Coull (1998): where all hold, the next one may not
    return {
        "bias": (n, (estimate - truth).mean(axis=0), sd / math.sqrt(n)),
        "empirical SD": (n, sd, sd / math.sqrt(2 * (n - 1))),
        "theoretical SD": (n, half.mean(axis=0), half.std(axis=0, ddof=1) / math.sqrt(n)),
        "coverage": (n, held, np.sqrt(likely * (1 - likely) / n)),
    }


def _text(cell: pd.Series) -> str:
    """Such as "0.3507 ± 0.0055: higher; package: within"; the package's own numbers have no error."""
    ours = number(cell["value"]) if cell["series"] == PACKAGE else mean_and_error(cell["value"], cell["se"])
    text = f"{ours}: {cell[VERDICTS[PUBLISHED]]}" if cell[VERDICTS[PUBLISHED]] else ours
    return f"{text}; package: {cell[VERDICTS[PACKAGE]]}" if cell[VERDICTS[PACKAGE]] else text


def _about_sources(tidy: pd.DataFrame, sources: Mapping[str, PublishedTable]) -> list[str]:
    """The sentences on the published numbers and the authors' package: their source, and which of them agree."""
    published, package = sources[PUBLISHED], sources[PACKAGE]
    if not published:
        return []
    sentences = [
        f"Published: {published['where']}, over {published['repetitions']} repetitions, coefficients drawn once"
    ]
    ours = tidy[tidy["series"] != PACKAGE]
    sentences += [RULE, counted(ours.loc[ours[VERDICTS[PUBLISHED]] != "", VERDICTS[PUBLISHED]])]
    if package:
        sentences.append(f"Authors' package: {package['where']}, {package['repetitions']} repetitions")
        sentences.append("The verdicts on it follow the same rule, with its repetitions, as if its spread were ours")
        sentences += _agreement(tidy)
    return sentences


def _agreement(tidy: pd.DataFrame) -> Iterator[str]:
    """What the authors' package agrees with: how many numbers are within Monte Carlo error of its own."""
    own = tidy["series"] == PACKAGE
    verdicts = {str(name): rows[VERDICTS[PACKAGE]] for name, rows in tidy[~own].groupby("series", sort=False)}
    verdicts["the publication"] = tidy.loc[own, VERDICTS[PUBLISHED]]
    within = {name: given[given != ""] == WITHIN for name, given in verdicts.items() if (given != "").any()}
    counts = ", ".join(f"{name} {hits.sum()} of {len(hits)}" for name, hits in within.items())
    yield f"Numbers within Monte Carlo error of the authors' package: {counts}; for the same program 95 % are expected"
    agrees = [name for name, hits in within.items() if hits.mean() >= AGREE]
    differs = [name for name, hits in within.items() if hits.mean() <= DIFFER]
    if agrees:
        yield f"The authors' package agrees (at least {100 * AGREE:.0f} %) with {'; '.join(agrees)}"
    if differs:
        yield f"The authors' package does not agree (at most {100 * DIFFER:.0f} %) with {'; '.join(differs)}"


# --- averages over the data sets, and their ratios (section 5.2.2) ----------------------------------------------------


def averages_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """The mean of `spec["metric"]` over the data sets for each published average, and the ratio for each published one.

    A published row has the `method`, the `value`, its `digit` and, of a ratio, the method that its mean is divided
    `by`; `spec["beside"]` has the names (label -> the paper's). Each calibration of ours has a row; of a ratio both
    methods have the same one, or one of them has none. The verdict follows the rule of `claims.agreement` on
    logarithms, since a time is positive, with the smallest number of repetitions of a data set.
    """
    rows = metric_rows(frame, str(spec["metric"]))
    rows = rows[has_value(rows)].assign(method=(rows["mechanism"] + "/" + rows["model"]).map(dict(labels)))
    means = {name: _averages(rows[rows["method"] == label]) for label, name in spec["beside"].items()}
    found: list[list[Any]] = []
    for one in published.get("rows") or []:
        method, by, stated = one["method"], one.get("by"), float(one["value"])
        averages = _ratios(means[method], means[by]) if by else means[method]
        about: PublishedTable = {"repetitions": published["repetitions"], "digit": one["digit"] / stated}
        for calibration, (value, error, least, sets) in averages.items():
            judged = verdict(math.log(value), error, least, math.log(stated), about, scale=1.0)
            name = f"{method} / {by}" if by else method
            found.append([name, calibration, stated, value, value * error, sets, least, judged])
    columns = ["average", "calibration", "published", "ours", "se", "data sets", "least repetitions", "verdict"]
    tidy = pd.DataFrame(found, columns=columns)
    lines = [
        [name, calibration, number(stated), mean_and_error(value, error), str(sets), str(count), judged]
        for name, calibration, stated, value, error, sets, count, judged in found
    ]
    below = ["Ours: mean over the data sets ± its standard error", f"On logarithms. {RULE}", counted(tidy["verdict"])]
    below += [f"Published: {published['where']}"] if published else []
    return TextTable([*columns[:4], *columns[5:]], lines, below, tidy)


class Average(NamedTuple):
    """A mean over `sets` data sets, its relative standard error, the repetitions of that with the `least`."""

    value: float
    error: float
    least: int
    sets: int


Averages = dict[str, Average]  # by calibration, "" for a method without one


def _averages(rows: pd.DataFrame) -> Averages:
    """The mean over the data sets of their means, of one method."""
    each = rows.groupby(["calibration", "dataset"])["value"].agg(["mean", "sem", "count"])
    found = {}
    for calibration, sets in each.groupby(level="calibration"):
        error = float(np.sqrt((sets["sem"] ** 2).sum()) / sets["mean"].sum())
        found[str(calibration)] = Average(float(sets["mean"].mean()), error, int(sets["count"].min()), len(sets))
    return found


def _ratios(above: Averages, below: Averages) -> Averages:
    """The ratios of two methods' means; the relative error of one is that of independent means."""
    names = above.keys() & below.keys() or (below.keys() if "" in above else above.keys())
    found = {}
    for name in sorted(names):
        one, other = above.get(name) or above[""], below.get(name) or below[""]
        error = math.hypot(one.error, other.error)
        found[name] = Average(one.value / other.value, error, min(one.least, other.least), min(one.sets, other.sets))
    return found
