"""The table of a paper's claims with their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from dpbench.config import Paper
from dpbench.config.reports import kind_of
from dpbench.config.specs import Margin, Spec, Statement
from dpbench.files import write_file
from dpbench.report.claims.statements import (
    NOT_RUN,
    RELATIONS,
    SHARES,
    SIGNS,
    VERDICTS,
    WITHOUT_MARGIN,
    Place,
    compare,
)
from dpbench.report.footnotes import as_text
from dpbench.report.frames.frame import LEVEL
from dpbench.report.frames.results import Results, choice_of_setting, frame_of, notes_on, several_versions, titles_of
from dpbench.report.text import csv_text, markdown, markdown_table, mean_and_error, number, span

CLAIMS = ["statement", "claim", "where", "figure", "metric", "relation", "method", "baseline"]


def write_verdicts(paper: Paper, results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Write the paper's claims with their verdicts: statements.md, claims.csv, with one row per claim, and
    statements.csv, with one row per comparison and the number of its claim.

    A claim is checked on the experiments of its figure, without those in `except`, or with `only` some of them; for
    an experiment with several panels `except` may name panels.
    """
    figures = {str(spec["name"]): spec for spec in paper.report["figures"]}
    labels: Mapping[str, str] = paper.report["labels"]
    sections, tables, counts, claims = [], [], [], []
    for place, statement in enumerate(paper.published.get("statements") or [], start=1):
        spec = _own_spec(figures[statement["figure"]], statement)
        chosen = [results[name] for name in spec["experiments"] if _concerned(statement, name)]
        metric, claim = str(statement.get("metric", spec["metric"])), str(statement["claim"])
        frame = frame_of(chosen, spec, kind_of(spec).reads)
        frame = frame[~frame["panel"].isin(statement.get("except", []))]
        if isinstance(statement.get("at"), list) and any(isinstance(x, str) for x in statement["at"]):
            frame = frame.assign(x=frame[spec["x"]].fillna(np.inf))  # settings that are texts
        compared = compare(frame, statement, metric, _margin(paper, statement, metric), labels)
        compares = [_name(statement, role, labels) for role in ("method", "baseline")]
        versions = several_versions(chosen, labels, {**spec, "show": compares})
        symbol = str(spec.get("symbol", "ε"))
        sentences = [_rule(paper, statement, metric, symbol), *choice_of_setting(spec), *notes_on(chosen), *versions]
        parts = [f"## {place}. {markdown(claim)}", markdown(as_text(sentences))]
        titles = titles_of(chosen, paper.report["panels"]) | {str(k): str(v) for k, v in spec.get("panels", {}).items()}
        cell = _share if statement["relation"] in SHARES else _cell
        parts.append(_by_place(compared, cell, statement, labels, titles, symbol) if len(compared) else "No trials.")
        sections += parts
        tables.append(compared.assign(statement=place))
        claims.append([place, claim, statement["where"], spec["name"], metric, statement["relation"], *compares])
        counts += _counts(place, statement, labels, compared)
    if not tables:
        return []
    made = sum(int((table["pairs"] > 0).sum()) for table in tables)
    fixed = any(one.experiment.sample.split == "fixed" for one in results.values())
    shares = any(statement["relation"] in SHARES for statement in paper.published["statements"])
    caption = _caption(made, "noise" if fixed else "split and the noise", shares)
    head = [f"# {markdown(paper.title)}: the paper's claims and our results", markdown(caption)]
    text = "\n\n".join([*head, markdown_table(["", "claim", "figure", "against", *VERDICTS], counts), *sections])
    rows = csv_text(pd.concat([table.assign(x=table["x"].map(_place)) for table in tables], ignore_index=True))
    files = {
        "statements.md": text + "\n",
        "statements.csv": rows,
        "claims.csv": csv_text(pd.DataFrame(claims, columns=CLAIMS)),
    }
    return [write_file(folder / name, content) for name, content in files.items()]


def _margin(paper: Paper, statement: Statement, metric: str) -> Margin:
    """The margin of the statement, or else of its metric."""
    return statement.get("margin") or paper.published["margins"].get(metric, {})


def _own_spec(spec: Spec, statement: Statement) -> Spec:
    """The spec of the figure with the axis, panels and experiments that the statement has in place of its own."""
    own: Spec = {**spec}
    for key in ("x", "symbol", "experiments", "panel", "panels"):
        if key in statement:
            own[key] = statement[key]
    return own


def _concerned(statement: Statement, experiment: str) -> bool:
    return experiment not in statement.get("except", []) and experiment in statement.get("only", [experiment])


def _rule(paper: Paper, statement: Statement, metric: str, symbol: str) -> str:
    labels, relation = paper.report["labels"], str(statement["relation"])
    method, baseline = (_name(statement, role, labels) for role in ("method", "baseline"))
    measured = "In how many repetitions" if relation in SHARES else "By how much"
    comparative = relation if relation in SIGNS else "better"
    sentence = (
        f"{statement['where']}; {statement['figure']}. {measured} the {metric} of {method} is {comparative} than "
    )
    start = f" at {symbol} = {_place(statement['baseline_at'])}" if "baseline_at" in statement else ""
    start += f" on {_title(paper, statement['baseline_panel'])}" if "baseline_panel" in statement else ""
    that = "" if isinstance(statement["baseline"], int | float) else "that of "
    sentence += f"{that}{baseline}{start}. The claim, {relation.replace('_', ' ')}: {RELATIONS[relation]}"
    if relation in (*WITHOUT_MARGIN, *SHARES):
        return sentence
    margin = _margin(paper, statement, metric)
    if "absolute" in margin:
        return f"{sentence}. The margin is {margin['absolute']}: {margin['reason']}"
    of = labels.get(margin["of"], margin["of"])
    return f"{sentence}. The margin is {margin['part']:g} of the {metric} of {of}: {margin['reason']}"


def _title(paper: Paper, panel: str) -> str:
    return str(paper.report["panels"].get(panel, panel))


def _counts(place: int, statement: Statement, labels: Mapping[str, str], compared: pd.DataFrame) -> list[list[str]]:
    """How often each verdict was given, a row per calibration of the baseline."""
    rows = []
    for calibration in sorted(set(compared["calibration"]), reverse=True) or [""]:
        verdicts = compared.loc[compared["calibration"] == calibration, "verdict"]
        first = [
            str(place),
            str(statement["claim"]),
            str(statement["figure"]),
            _against(statement, labels, calibration),
        ]
        rows.append([*first, *(str((verdicts == name).sum()) for name in VERDICTS)])
    return rows


def _name(statement: Statement, role: Literal["method", "baseline"], labels: Mapping[str, str]) -> str:
    """The label of one of the two that are compared, a label or number as it is."""
    return labels.get(str(statement[role]), str(statement[role]))


def _place(x: Place) -> str:
    """A value of x as the tables have it."""
    return x if isinstance(x, str) else f"{x:.12g}"


def _against(statement: Statement, labels: Mapping[str, str], calibration: str) -> str:
    baseline = _name(statement, "baseline", labels)
    return f"{baseline} ({calibration})" if calibration else baseline


def _by_place(
    compared: pd.DataFrame,
    cell: Callable[[pd.Series], str],
    statement: Statement,
    labels: Mapping[str, str],
    titles: Mapping[str, str],
    symbol: str,
) -> str:
    """A row per panel and calibration of the baseline, a column per epsilon, or value of the figure's setting."""
    places = sorted(compared["x"].unique())
    rows = []
    for (panel, calibration), cells in compared.groupby(["panel", "calibration"], sort=False):
        against = _against(statement, labels, str(calibration))
        texts = ["unknown" if cells["margin"].isna().any() else span(cells["margin"], digits=2)]
        own = {row["x"]: cell(row) for _, row in cells.iterrows()}
        rows.append([titles.get(str(panel), str(panel)), against, *texts, *(own.get(x, "") for x in places)])
    return markdown_table(
        ["", "against", "margin", *(f"{symbol} = {x if isinstance(x, str) else number(x)}" for x in places)], rows
    )


def _cell(row: pd.Series) -> str:
    if row["verdict"] == NOT_RUN:
        return NOT_RUN
    return f"{row['verdict']}: {mean_and_error(row['difference'], row['se'])} ({row['pairs']})"


def _share(row: pd.Series) -> str:
    if row["verdict"] == NOT_RUN:
        return NOT_RUN
    if not row["pairs"]:
        return f"{row['verdict']}: no value"
    return f"{row['verdict']}: {row['pairs'] * row['difference']:.0f} of {row['pairs']}"


def _caption(made: int, redrawn: str, shares: bool) -> str:
    """How the verdicts were reached, and their limits."""
    tail = 100 * (1 - LEVEL) / 2
    about_shares = (
        " Where errors have heavy tails or estimates are missing, the verdict on ahead uses the exact interval of "
        "the share of repetitions in which the method is better, the one on always whether it is 1; cells there: that "
        "number, of all."
    )
    return (
        f"Each verdict uses Student's two-sided {100 * LEVEL:g} % interval of the mean difference between paired "
        "repetitions. Where such differences are normal, a claim that fails by exactly its margin is accepted in "
        f"{tail:g} % of comparisons, and one that holds by exactly its margin is rejected in as many (for similar, at "
        f"most twice as many). The {made} comparisons are not corrected for their number. The repetitions draw "
        f"the {redrawn} anew from one data set: their spread does not carry over to other data. Cells: mean difference "
        "± its standard error (pairs)."
    ) + about_shares * shares
