"""The effect of each option of a method: a metric with it, minus that at the method's declared setting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import Parameter
from typing import Any

import numpy as np
import pandas as pd

from dpbench.config.parts import declared_parts
from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable, parameters_of
from dpbench.grid.seeds import canonical
from dpbench.report.claims.statements import NOT_RUN
from dpbench.report.footnotes import sweep_footnotes
from dpbench.report.frames.frame import LEVEL, has_value, reach
from dpbench.report.frames.series import Series, declared_titles, in_order, mark_series, series_of
from dpbench.report.frames.settings import NO_SETTING
from dpbench.report.tables.runs import trials_at
from dpbench.report.text import mean_and_error, number
from dpbench.targets import own_folder

DECLARED = "declared"  # in place of an option
NO_PAIR = "no pair"  # where an option or the declared setting was run, and no repetition has a value at both
CELL, PAIR = ["row", "method", "option", "x"], ["row", "method", "x", "repetition"]
SIGNS = {"lower": "lower is better", "higher": "higher is better"}


def options_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """Mean paired difference of `spec["metric"]`: at each option of a method, minus that at the declared setting.

    The settings by which a method's trials differ are its options, except the values that the mechanism's config
    declares, or its function where the config leaves one out. For each data set and method a row of the declared
    setting, with mean ± standard error, then one for each option, with the mean of the differences and its 95 %
    interval; repetitions, which share their splits, are pairs. A column for each number of the setting `x`. A method
    of one setting has no row. `spec["whose"]`, {mechanism: {option: whose it is}}, such as {mwem: {rate=0.5: the
    authors' code}}, has a column, and gives the order of the options. Papers publish no such differences: `published`
    is not used.
    """
    rows = frame[frame["metric"] == spec["metric"]]
    marked = _with_options(rows, labels)
    cells, trials = _cells(marked[has_value(marked) & np.isfinite(marked["x"])])
    titles, columns = declared_titles(spec), sorted(marked.loc[np.isfinite(marked["x"]), "x"].unique())
    heads = ["", "", "option", *(["whose"] if "whose" in spec else [])]
    texts = dict.fromkeys(marked[CELL].itertuples(index=False, name=None), NO_PAIR)
    for cell in cells.to_dict("records"):
        texts[tuple(cell[key] for key in CELL)] = _text(cell)
    lines, keys = [], []
    for name in in_order(marked["row"], titles):
        for method, options in _options(marked[marked["row"] == name], spec).items():
            for option, whose in options.items():
                keys.append((name, method, option))
                named = [titles.get(name, name), method, option, whose][: len(heads)]
                lines.append(named + [texts.get((name, method, option, x), NOT_RUN) for x in columns])
    below = [
        f"Cells: {spec['metric']} at the declared setting, mean ± standard error (repetitions); below it that at each "
        f"option minus it, mean with its {100 * LEVEL:.0f} % interval (Student's t) of the paired differences (pairs)",
        *_summary(cells, rows),
        *_footnotes(rows.assign(dataset=rows["dataset"].replace(titles), variant=""), labels),
    ]
    tidy = cells.assign(row=[titles.get(name, name) for name in cells["row"]])
    places = trials_at(trials, ["row", "method", "option"], "x", keys, [*(None for _ in heads), *columns])
    return TextTable([*heads, *map(number, columns)], lines, below, tidy, places)


def _footnotes(merged: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """The footnotes on all trials, by method and not by option."""
    return sweep_footnotes(merged, series_of(merged, labels))


def _with_options(rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The rows with `row`, their panel, and the `method` and `option` of their series; not those of one setting."""
    known = series_of(rows, labels)
    methods = {one.label: one.label.removesuffix(f" [{one.variant}]") for one in known}
    options = {one.label: option_of(one) for one in known}
    marked = mark_series(rows, known)
    marked = marked.assign(row=marked["panel"], method=marked["series"].map(methods))
    marked["option"] = marked["series"].map(options)
    several: pd.DataFrame = marked[marked.groupby(["row", "method"])["variant"].transform("nunique") > 1]
    return several


def option_of(series: Series) -> str:
    """The settings of a variant that differ from its mechanism's config, as "rate=0.5"; `DECLARED` for none."""
    known = _declared(series.mechanism, str(own_folder()))
    changed = []
    for setting in series.variant.split(", ") if series.variant else []:
        name, _, value = setting.partition("=")
        own, default = known.get(name, (NO_SETTING, NO_SETTING))
        if (default if value == NO_SETTING else value) != own:
            changed.append(setting)
    return ", ".join(changed) or DECLARED


@cache
def _declared(mechanism: str, folder: str) -> dict[str, tuple[str, str]]:
    """For each parameter of a mechanism the value in its config, or else of its function, and the function's default.

    `folder`: the user's.
    """
    part = declared_parts("mechanism", own_folder()).get(mechanism)
    if part is None:
        return {}
    defaults = {name: one.default for name, one in parameters_of("mechanism", part.function).items()}
    own = {**defaults, **part.parameters}
    return {name: (_as_text(own[name]), _as_text(default)) for name, default in defaults.items()}


def _as_text(value: Any) -> str:
    """The text in a variant, which has `NO_SETTING` where a key leaves a parameter out."""
    if value is Parameter.empty:
        return NO_SETTING
    return value if isinstance(value, str) else canonical(value)


def _options(here: pd.DataFrame, spec: Spec) -> dict[str, dict[str, str]]:
    """The options of each method of a data set, the declared setting first, and whose each is."""
    found: dict[str, dict[str, str]] = {}
    for method, own in here.sort_values("series_order").groupby("method", sort=False):
        whose = {DECLARED: "", **(spec.get("whose") or {}).get(own["mechanism"].iloc[0], {})}
        seen = dict.fromkeys([DECLARED, *own["option"]])
        found[str(method)] = {one: str(whose.get(one, "")) for one in in_order(seen, dict.fromkeys(whose, ""))}
    return found


def _cells(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean, standard error, half of the 95 % interval and count of each row, method, option and x, and their trials.

    They are of the value at the declared setting, and of the differences from it at the others.
    """
    is_declared = rows["option"] == DECLARED
    base = rows[is_declared].groupby(PAIR)["value"].mean().rename("base").reset_index()
    pairs = rows[~is_declared].merge(base, on=PAIR)
    pairs = pairs.assign(value=pairs["value"] - pairs["base"])
    against = pairs[[*PAIR, "option"]].merge(rows.loc[is_declared, [*PAIR, "trial"]], on=PAIR)
    both = pd.concat([rows[is_declared], pairs])
    cells = both.groupby(CELL, sort=False)["value"].agg(["mean", "sem", "count"]).rename(columns={"sem": "se"})
    cells["half"] = reach(cells["count"]) * cells["se"]
    return cells.reset_index(), pd.concat([both[[*CELL, "trial"]], against[[*CELL, "trial"]]])


def _text(cell: Mapping[Any, Any]) -> str:
    if cell["option"] == DECLARED:
        return f"{mean_and_error(cell['mean'], cell['se'])} ({cell['count']:.0f})"
    sign = "+" if cell["mean"] > 0 else ""
    return f"{sign}{mean_and_error(cell['mean'], cell['half'])} ({cell['count']:.0f})"


def _summary(cells: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """In how many cells an option is below or above the declared setting, in all and by option."""
    differences = cells[cells["option"] != DECLARED]
    if differences.empty:
        return ["No option has a value in the same repetition as the declared setting"]
    below, above = (sign * differences["mean"] > differences["half"] for sign in (-1, 1))
    better = [SIGNS[one] for one in rows["direction"].unique() if one in SIGNS]
    sentences = [
        f"Of {len(differences)} differences the interval lies below 0 in {below.sum()}, above 0 in {above.sum()}; "
        + "; ".join([*better, "not corrected for their number"])
    ]
    each = differences.assign(below=below, above=above).groupby(["method", "option"], sort=False)
    counts = [
        f"{method} {option} {own['below'].sum()} below, {own['above'].sum()} above, of {len(own)}"
        for (method, option), own in each
        if (own["below"] | own["above"]).any()
    ]
    return sentences + ["By option: " + "; ".join(counts)] * bool(counts)
