"""Methods or settings by data set, compared with the paper's numbers (BinAgg, Tables 2, 3, 5, 6 and 7).

Below are the ratios of methods' means, ours and the published, and on how many data sets a method is best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpbench.config.specs import PublishedTable, Ranks, Spec
from dpbench.contracts import TextTable
from dpbench.errors import check_known
from dpbench.report.claims.agreement import RULE, counted, verdict
from dpbench.report.claims.statements import NOT_RUN
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.frame import NOT_FAILED, has_value
from dpbench.report.frames.series import declared_titles, in_order, mark_series, series_of
from dpbench.report.frames.settings import metric_rows
from dpbench.report.tables.cells import is_best
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import mean_and_error, number, span

NONE_PUBLISHED = "N/A"  # where a table of the paper has this in place of a number
ROUNDING = 1e-12  # relative to the mean: a smaller standard error is rounding, and shown as 0
CELL = ["row", "series", "method", "calibration", "setting"]
STATISTICS = {"mean": "mean ± standard error", "median": "median and quartiles"}
QUARTILES = {"median": 0.5, "low": 0.25, "high": 0.75}


def comparison_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
) -> TextTable:
    """Mean and standard error of `spec["metric"]` over the repetitions, one row per data set and one column per method.

    Models with one label are averaged within a repetition, without those that have no estimate; it is lost if one of
    them failed. The metric may be one that every trial has (see `metric_rows`). `spec` perhaps has

    - x: a setting whose values are the columns in place of the methods; these are then rows of each data set
    - panel: a setting whose values are the rows in place of the data sets; `panels` maps them to titles, in their order
    - where: as for `metric_by_setting`
    - statistic: "mean" (the default), or "median" with quartiles, for errors with heavy tails
    - level: what the trivial answer has; a run without a value counts as it, and is counted in its cell
    - gain: the part of a gain in place of the metric, as in `as_gains`
    - beside: {method: column of the paper}, for methods that are compared with a published number of another name
    - ranks: a list of {method, among: methods}, on how many data sets the method has the lowest and second lowest mean;
      one that lacks a value in a repetition ranks last
    - ratios: pairs of methods, the ratio of whose means over the data sets is a footnote.

    `published` may have rows (row -> {column: number}), repetitions and digit (a unit of the last published one).
    Where columns are settings, it has the `method` of its numbers, or rows are {method: {setting: number}}. Without
    repetitions there are no verdicts. `source` is the name of its numbers in the cells, "paper" unless given. Numbers
    compared with no method of the spec's `show` are left out.
    """
    statistic = str(spec.get("statistic", "mean"))
    check_known("statistic", statistic, STATISTICS)
    source = str(published.get("source", "paper"))
    rows = metric_rows(frame, str(spec["metric"]))
    marked = _marked(rows, labels, spec)
    cells = _with_published(_cells(marked, spec), published, spec)
    titles = declared_titles(spec)
    names = in_order(cells["row"], titles)
    by_setting = "x" in spec
    columns = list(dict.fromkeys(cells["setting" if by_setting else "series"]))
    if by_setting:
        columns.sort(key=_place)
    texts: dict[str, dict[str, dict[str, str]]] = {name: {} for name in names}  # row -> series, or "" -> column -> text
    for cell in cells.to_dict("records"):
        head, column = (cell["series"], cell["setting"]) if by_setting else ("", cell["series"])
        texts[cell["row"]].setdefault(head, {})[column] = _text(cell, source)
    lines = [
        [
            titles.get(name, name),
            *([head] if by_setting else []),
            *(line.get(at, _none(line, at, spec)) for at in columns),
        ]
        for name, heads in texts.items()
        for head, line in heads.items()
    ]
    header = ["", *([""] if by_setting else []), *columns]
    keys = [(name, head) for name, heads in texts.items() for head in heads]
    if by_setting:
        trials = trials_at(marked, ["row", "series"], "setting", keys, [None, None, *columns])
    else:
        trials = trials_at(marked, ["row"], "series", [(name,) for name in texts], [None, *columns])
    needless = ["unconverged", *([] if published else ["published", "verdict"])]
    needless += ["method"] if (cells["method"] == cells["series"]).all() else []
    tidy = cells.drop(columns=needless).assign(row=[titles.get(name, name) for name in cells["row"]])
    below = [f"Cells: {STATISTICS[statistic]} (repetitions with a value)", *_about_level(spec)]
    below += sweep_footnotes(rows.assign(dataset=rows["dataset"].replace(titles)), series_of(rows, labels))
    below += _about_published(cells, spec, published)
    best = _best(cells, marked, keys, header, by_setting) if statistic == "mean" else frozenset()
    return TextTable(header, lines, below, tidy, trials, best)


def _best(
    cells: pd.DataFrame,
    marked: pd.DataFrame,
    keys: Sequence[tuple[str, str]],
    header: Sequence[str],
    by_setting: bool,
) -> frozenset[tuple[int, int]]:
    """The rows and columns of the best private methods on each data set, at each setting."""
    place = ["row", "series", "setting"]
    known = marked.groupby(place, as_index=False).agg(epsilon=("epsilon", "min"), direction=("direction", "first"))
    found = cells.merge(known, on=place)
    found = found[np.isfinite(found["epsilon"])].drop_duplicates(place, keep=False)
    found = found[is_best(found, ["row", "setting"])]
    heads = found["series"] if by_setting else [""] * len(found)
    columns = found["setting" if by_setting else "series"]
    first = 2 if by_setting else 1
    return frozenset(
        (keys.index((row, head)), header.index(column, first))
        for row, head, column in zip(found["row"], heads, columns, strict=True)
    )


def _place(column: str) -> float:
    """Settings that are numbers are sorted by size, after those that are not."""
    try:
        return float(column)
    except ValueError:
        return -math.inf


def _none(texts: Mapping[str, str], column: str, spec: Spec) -> str:
    """The text of an empty cell. The columns of epsilon have one for a reference, "inf", and those of a
    mechanism's parameter one for mechanisms without it, "none": a method with a cell there has no others.
    """
    apart = "none" if str(spec.get("x")).startswith("release.mechanism.parameters.") else "inf"
    return "" if (apart in texts) != (column == apart) else NOT_RUN


def _marked(rows: pd.DataFrame, labels: Mapping[str, str], spec: Spec) -> pd.DataFrame:
    """The rows with the names of the cell that they belong to (`CELL`)."""
    marked = mark_series(rows, series_of(rows, labels))
    methods = (rows["mechanism"] + "/" + rows["model"]).map(dict(labels))
    marked["method"] = methods.fillna(rows["mechanism"])
    marked["row"] = marked["panel"]
    place = marked[spec["x"]] if "x" in spec else pd.Series("", index=marked.index)
    marked["setting"] = [_setting(value) for value in place]
    marked["_order"] = pd.to_numeric(place, errors="coerce")
    return marked


def _cells(marked: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Mean, standard error and counts of each row, series and setting, in the order in which they are shown; `failed`
    counts `unconverged` trials too.
    """
    marked = marked.copy()
    marked["_value"] = marked["value"].where(has_value(marked))
    marked["_none"] = marked["status"] == "no_estimate"
    marked["_failed"] = marked["_value"].isna() & ~marked["_none"]
    marked["_unconverged"] = marked["status"] == "unconverged"
    marked["_series"] = marked.groupby("series")["series_order"].transform("min")
    keys = ["row", "_series", "_order", *CELL[1:]]
    each = marked.groupby([*keys, "repetition"], dropna=False)
    lost = {"none": ("_none", "all"), "failed": ("_failed", "any"), "unconverged": ("_unconverged", "any")}
    one = each.agg(value=("_value", "mean"), **lost).reset_index()
    one["value"] = one["value"].where(~one["failed"])
    one["valued"] = one["value"].notna()
    one = _with_level(one, float(spec["level"])) if "level" in spec else one
    quartiles = {name: ("value", partial(pd.Series.quantile, q=q)) for name, q in QUARTILES.items()}
    cells = one.groupby(keys, dropna=False).agg(
        mean=("value", "mean"),
        se=("value", "sem"),
        count=("valued", "sum"),
        no_estimate=("none", "sum"),
        unconverged=("unconverged", "sum"),
        repetitions=("repetition", "count"),
        **(quartiles if spec.get("statistic") == "median" else {}),
    )
    cells["failed"] = cells.pop("repetitions") - cells["count"] - cells["no_estimate"]
    return cells.reset_index().drop(columns=["_series", "_order"])


def _with_level(one: pd.DataFrame, level: float) -> pd.DataFrame:
    """The repetitions with this level for those that have no value; without those in which no method has one."""
    known = one.groupby(["row", "repetition"])["valued"].transform("any")
    return one[known].assign(value=one["value"].fillna(level))


def _about_level(spec: Spec) -> list[str]:
    """The sentences on what runs without a value count as."""
    if "level" not in spec:
        return []
    level = number(float(spec["level"]))
    return [
        f"A run without a value counts as the trivial answer, {level}. Where no method has one, the split is left out"
    ]


def _setting(value: object) -> str:
    return number(value) if isinstance(value, (int, float)) else "none" if value is None else str(value)


def _numbers(cells: pd.DataFrame, published: PublishedTable, spec: Spec) -> pd.DataFrame:
    """The published numbers, each once for every series compared with it, or once if there is none."""
    paper_names, show = dict(spec.get("beside", {})), spec.get("show")
    asked = None if show is None else {paper_names.get(name, name) for name in show}
    known: dict[str, list[list[str]]] = {}  # the series compared with each published method
    for series in cells[CELL[1:4]].drop_duplicates().to_numpy().tolist():
        known.setdefault(paper_names.get(series[1], series[1]), []).append(series)
    found = []
    for row, values in (published.get("rows") or {}).items():
        for method, setting, value in _entries(values, published, spec):
            if asked is not None and method not in asked:
                continue
            series = known.get(method, [[method, method, ""]])
            stated = math.nan if value == NONE_PUBLISHED else float(value)
            found += [[str(row), *own, str(setting), stated, value == NONE_PUBLISHED] for own in series]
    return pd.DataFrame(found, columns=[*CELL, "published", "none"]).astype(
        {**dict.fromkeys(CELL, "str"), "published": "float64", "none": "bool"}
    )


def _entries(
    values: Mapping[Any, Any], published: PublishedTable, spec: Spec
) -> Iterator[tuple[str, object, float | str]]:
    """Method, setting and number of one published row; the paper's N/A stays a word."""
    if "x" not in spec:
        yield from ((str(column), "", value) for column, value in values.items())
    elif "method" in published:
        yield from ((str(published["method"]), setting, value) for setting, value in values.items())
    else:
        yield from ((str(method), at, value) for method, by in values.items() for at, value in by.items())


def _with_published(cells: pd.DataFrame, published: PublishedTable, spec: Spec) -> pd.DataFrame:
    """The cells with the published number and its verdict, and cells without trials for numbers that only the paper
    has.
    """
    numbers = _numbers(cells, published, spec)
    absent = numbers[~numbers["none"]].merge(cells[CELL], how="left", on=CELL, indicator=True)
    absent = absent[absent.pop("_merge") == "left_only"].assign(count=0, no_estimate=0, unconverged=0, failed=0)
    cells = cells.merge(numbers, how="left", on=CELL)
    cells = pd.concat([cells, absent], ignore_index=True) if len(absent) else cells
    verdicts = [_verdict(cell, published) for cell in cells.to_dict("records")]
    return cells.drop(columns="none").assign(verdict=verdicts)


def _verdict(cell: Mapping[Any, Any], published: PublishedTable) -> str:
    if np.isnan(cell["published"]):
        return NONE_PUBLISHED if cell["none"] is True else ""
    if not cell["count"] + cell["failed"] + cell["no_estimate"]:
        return NOT_RUN
    if "repetitions" not in published:
        return ""
    return verdict(cell["mean"], cell["se"], cell["count"], cell["published"], published)


def _text(cell: Mapping[Any, Any], source: str) -> str:
    """Such as "0.0952 ± 0.0011 (99; 1 no estimate), paper 0.095: within"."""
    each = {name.replace("_", " "): cell[name] for name in NOT_FAILED}
    each["failed"] = cell["failed"] - cell["unconverged"]
    lost = [f"{count:.0f} {name}" for name, count in each.items() if count]
    counts = "; ".join([f"{cell['count']:.0f}", *lost])
    ran = cell["count"] or lost
    se = 0.0 if cell["se"] < ROUNDING * abs(cell["mean"]) else cell["se"]
    found = mean_and_error(cell["mean"], se)
    if not np.isnan(cell.get("median", np.nan)):
        found = f"{span([cell['median']])}, {span([cell['low'], cell['high']])}"
    ours = f"{found} ({counts})" if ran else NOT_RUN
    if np.isnan(cell["published"]):
        return f"{ours}, {source} {NONE_PUBLISHED}" if cell["verdict"] else ours
    verdict = f": {cell['verdict']}" if ran and cell["verdict"] else ""
    return f"{ours}, {source} {number(cell['published'])}{verdict}"


def _about_published(cells: pd.DataFrame, spec: Spec, published: PublishedTable) -> list[str]:
    """The sentences on the paper, the ranks and the ratios."""
    sentences, source = [], str(published.get("source", "paper")).capitalize()
    if "repetitions" in published:
        sentences += [f"{source}: {published['where']}, over {published['repetitions']} repetitions", RULE]
        sentences.append(counted(cells.loc[cells["verdict"] != "", "verdict"]))
    elif published:
        sentences.append(f"{source}: {published['where']}")
    paper_names = spec.get("beside", {})
    sentences += [sentence for asked in spec.get("ranks", []) for sentence in ranks(cells, asked, paper_names)]
    return sentences + [sentence for pair in spec.get("ratios", []) for sentence in mean_ratios(cells, *pair)]


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
