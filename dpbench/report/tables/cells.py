"""Tables of mean, standard error and count, failures counted in the cell: text, CSV, Markdown, LaTeX.

In LaTeX the best method is bold, with those that do not differ from it significantly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbench.files import write_file
from dpbench.report.footnotes import as_text, footnotes
from dpbench.report.frames.frame import CELL, NOT_FAILED, summarise
from dpbench.report.frames.series import Series, mark_series, series_of
from dpbench.report.tables.latex import Grid, latex_tables
from dpbench.report.tables.runs import Keep, Trials, trials_at
from dpbench.report.text import aligned, csv_text, markdown, markdown_table, mean_and_error, number, powers

NOT_RUN = "not run"
_TIDY = [
    "dataset", "series", "mechanism", "model", "calibration", "variant", "epsilon", "delta",
    "spent_epsilon_max", "metric", "unit", "direction", "mean", "se", "count", "failed", "nonfinite",
]  # fmt: skip
ERRORS = 1.96  # standard errors of a difference that is not significant at 95 %
RULE = "In bold: the best private method, and those whose difference from it is within 1.96 standard errors"
_SIGNS = {"lower": 1.0, "higher": -1.0}


def cell_table(frame: pd.DataFrame, labels: Mapping[str, str], metric: str) -> pd.DataFrame:
    """One metric: a row per series in label order, a column per epsilon (text), the reference under "inf".

    A cell reads `0.0812 ± 0.0011 (5)`: mean, standard error, trials done, in the metric's unit. Failures are
    counted in it: `(3; 2 failed)`, `all 5 failed`, and so are trials without an estimate or unconverged. It is "not
    run" where a private series has no trial, and empty where it cannot have one. Rows are separate by data set and
    delta if the frame has several.
    """
    return _table(_with_names(_named(_cells(frame, series_of(frame, labels), [metric]))))


def _table(named: pd.DataFrame) -> pd.DataFrame:
    """`cell_table` of the cells of one metric, which have the `name` of their row."""
    columns = sorted(named["epsilon"].unique())
    rows: dict[str, dict[str, str]] = {}
    order = ["dataset", "place_delta", "series_order", "epsilon"]
    for row in named.sort_values(order).to_dict("records"):
        rows.setdefault(row["name"], {})[number(row["epsilon"])] = _cell(row)
    for filled in rows.values():
        private = any(name != "inf" for name in filled)
        for name in map(number, columns):
            filled.setdefault(name, NOT_RUN if private and name != "inf" else "")
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[number(epsilon) for epsilon in columns], dtype="str")
    return table.rename_axis(index="series", columns="epsilon")


def _trials(rows: pd.DataFrame, named: pd.DataFrame, table: pd.DataFrame) -> Trials:
    """The trials of each number of the table of one metric, whose first column of numbers is the column 1.

    `rows`: those of the metric. `named`: their cells.
    """
    cells = named[~named.duplicated(["name", "epsilon"], keep=False)]  # only one of two cells in one place is shown
    rows = rows.merge(cells[[*CELL, "name"]], on=list(CELL))
    rows["column"] = rows["epsilon"].map(number)
    return trials_at(rows, ["name"], "column", [(name,) for name in table.index], [None, *table.columns])


def terminal_table(frame: pd.DataFrame, labels: Mapping[str, str], metric: str, width: int = 100) -> str:
    """`cell_table` as plain aligned text with its heading; columns that do not fit `width` go below."""
    table = cell_table(frame, labels, metric)
    names = ["", *(str(name) for name in table.index)]
    columns = [[f"ε = {name}", *(str(cell) for cell in table[name])] for name in table.columns]
    blocks: list[list[list[str]]] = []
    space = 0
    for column in columns:
        wide = max(map(len, column)) + 2
        if not blocks or space < wide:
            blocks.append([names])
            space = width - max(map(len, names))
        blocks[-1].append(column)
        space -= wide
    return "\n\n".join(
        [_heading(frame[frame["metric"] == metric], metric), *(aligned(_filled(block)) for block in blocks)]
    )


def _filled(block: list[list[str]]) -> list[list[str]]:
    """The block's columns without the rows that have a name and nothing else."""
    kept = [place for place, cells in enumerate(zip(*block[1:], strict=True)) if place == 0 or any(cells)]
    return [[column[place] for place in kept] for column in block]


def write_tables(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    metrics: Sequence[str],
    folder: Path,
    name: str,
    notes: str = "",
    keep: Keep | None = None,
    *,
    tidy: bool = True,
) -> list[Path]:
    """Write `name`.md and .tex (one section per metric) and, if `tidy`, `name`.csv (one row per cell) into `folder`;
    their paths.

    `keep` writes which trials the numbers come from.

    Raises `UserError` if the folder cannot be written to.
    """
    text, tex = [f"# {name}"], ["% needs \\usepackage{booktabs}"]
    trials: list[Trials] = []
    known = series_of(frame, labels)
    cells = _cells(frame, known, metrics)
    for metric in metrics:
        rows_of_metric, own = frame[frame["metric"] == metric], cells[cells["metric"] == metric]
        named = _with_names(_named(own))
        table, heading = _table(named), _heading(rows_of_metric, metric)
        text.append(f"## {markdown(heading)}")
        if table.empty:
            text.append("No trial has a score of this metric.")
            tex.append(f"% {metric}: no trial has a score of this metric")
            continue
        rows = [[str(series), *map(str, cells)] for series, cells in zip(table.index, table.to_numpy(), strict=True)]
        footnote = as_text([*footnotes(rows_of_metric, known, notes, cells=own), "In brackets: trials done"])
        trials += [_trials(rows_of_metric, named, table)] if keep else []
        text += [markdown_table(["", *(f"ε = {epsilon}" for epsilon in table.columns)], rows), markdown(footnote)]
        grid = _grid(named, table)
        caption = as_text([f"{name}: {heading}", footnote, *([RULE] if grid.best else [])])
        tex.append(latex_tables(grid, caption, f"{name}-{metric}"))
    contents = {"csv": csv_text(_tidy(cells, metrics))} if tidy else {}
    contents |= {"md": "\n\n".join(text) + "\n", "tex": "\n\n".join(tex) + "\n"}
    paths = [write_file(folder / f"{name}.{suffix}", content) for suffix, content in contents.items()]
    return paths + (keep(trials, folder, name) if keep else [])


def _grid(named: pd.DataFrame, table: pd.DataFrame) -> Grid:
    """`_table` of the cells of one metric for LaTeX: data sets above their methods, the best in bold."""
    places = named.drop_duplicates("name").set_index("name")[["place", "series"]].loc[table.index]
    header = ["", *(f"ε = {epsilon.replace('inf', '∞')}" for epsilon in table.columns)]
    rows = [[*cells] for cells in zip(places["series"], *(table[name] for name in table.columns), strict=True)]
    private = named[np.isfinite(named["epsilon"])].drop_duplicates(["name", "epsilon"], keep=False)
    best = private[is_best(private, ["place", "epsilon"])]
    at = zip(best["name"], best["epsilon"].map(number), strict=True)
    names, budgets = list(table.index), list(table.columns)
    marked = {(names.index(name), 1 + budgets.index(epsilon)) for name, epsilon in at}
    return Grid(header, rows, places["place"].tolist(), best=marked)


def _tidy(cells: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per cell of these metrics, sorted by metric (as given), data set, series and budget."""
    cells = _named(cells).rename(columns={"spent_epsilon": "spent_epsilon_max"})
    cells["metric_order"] = [list(metrics).index(metric) for metric in cells["metric"]]
    order = ["metric_order", "dataset", "series_order", "epsilon", "delta"]
    return cells.sort_values(order, kind="stable", ignore_index=True)[_TIDY]


def _cells(frame: pd.DataFrame, known: Sequence[Series], metrics: Sequence[str]) -> pd.DataFrame:
    """The summary of these metrics; `known`: the series of the entire frame, not of the selection."""
    return mark_series(summarise(frame[frame["metric"].isin(list(metrics))]), known)


def _named(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells; a label that several models share, such as the four of `AIM-Synth, ML`, has the model behind it."""
    shared = cells.groupby("series")["model"].transform("nunique") > 1
    return cells.assign(series=cells["series"].mask(shared, cells["series"] + ", " + cells["model"]))


def _with_names(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with `name`, that of their row, and what `_with_places` adds."""
    cells = _with_places(cells)
    names = [
        f"{place}: {series}" if place else series for place, series in zip(cells["place"], cells["series"], strict=True)
    ]
    return cells.assign(name=names)


def _with_places(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with `place`, the data set and delta of the row where the table holds several, else "".

    `place_delta` is the delta named in it, 0 where none is.
    """
    deltas = cells.loc[np.isfinite(cells["epsilon"]), "delta"].dropna().unique()
    delta_of = cells["delta"].where(cells["delta"].isin(deltas) & (len(deltas) > 1), 0.0)
    several = cells["dataset"].nunique() > 1
    places = [
        ", ".join(([str(dataset)] if several else []) + ([f"δ = {number(delta)}"] if delta else []))
        for dataset, delta in zip(cells["dataset"], delta_of, strict=True)
    ]
    return cells.assign(place=places, place_delta=delta_of)


def _cell(row: Mapping[Any, Any]) -> str:
    apart = {name.replace("_", " "): int(row[name]) for name in NOT_FAILED}
    lost = {"not finite": int(row["nonfinite"]), **apart, "failed": int(row["failed"]) - sum(apart.values())}
    if row["count"] + sum(lost.values()) == lost["failed"]:
        return f"all {lost['failed']} failed"
    counts = [f"{row['count']}", *(f"{count} {name}" for name, count in lost.items() if count)]
    return f"{mean_and_error(row['mean'], row['se'])} ({'; '.join(counts)})"


def _heading(rows: pd.DataFrame, metric: str) -> str:
    """The metric with its unit and its better direction: `mse (scaled target², lower is better)`."""
    about = [powers(unit) for unit in sorted(set(rows["unit"].unique()) - {""})]
    about += [f"{direction} is better" for direction in sorted(set(rows["direction"].unique()) - {"none", ""})]
    return f"{metric} ({', '.join(about)})" if about else metric


def is_best(cells: pd.DataFrame, by: Sequence[str]) -> pd.Series[bool]:
    """Whether the `mean` of each cell is the best, by its `direction`, of those with the same values of `by`.

    So is one whose interval of the difference from the best, which takes both standard errors `se` for independent,
    holds 0. Nothing is, where there is nothing to compare with, or no direction is the better one.
    """
    value = cells["mean"].astype(float) * cells["direction"].map(_SIGNS).astype(float)
    known = cells.assign(_value=value.where(np.isfinite(value))).dropna(subset="_value")
    found = pd.Series(False, index=cells.index)
    if len(known):
        group = known.groupby(list(by))["_value"]
        leader = known.loc[group.transform("idxmin"), ["_value", "se"]].set_axis(known.index)
        error = np.hypot(known["se"].fillna(0.0), leader["se"].fillna(0.0))
        near = known["_value"] - leader["_value"] <= ERRORS * error
        found[known.index] = near & (group.transform("size") > 1)
    return found
