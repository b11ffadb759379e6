"""The report of a paper: figures over several experiments, and tables of what it prints beside what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbench.config import Paper
from dpbench.report.figures import draw_figure
from dpbench.report.metric_by_setting import settings_of
from dpbench.report.published import write_published
from dpbench.report.remarks import as_text
from dpbench.report.results import Results, frame_of, notes_on, titles_of
from dpbench.report.series import shown
from dpbench.report.style import save_figure
from dpbench.report.table_kinds import is_table, write_table
from dpbench.report.tables import write_tables
from dpbench.report.verdicts import write_verdicts


def build_paper(paper: Paper, results: Sequence[Results], folder: Path) -> list[Path]:
    """Write the paper's figures into `folder`/figures and its tables into `folder`/tables; the paths written.

    `results` has every experiment of the paper. A figure is drawn from those of its experiments that have trials with
    its metric and labels, and names the others; it is left out if none has, but for one that needs no experiment. The
    same trials give the same bytes.
    """
    by_name = {one.experiment.name: one for one in results}
    paths = []
    for spec in paper.report["figures"]:
        if is_table(spec):
            paths += _write_table(paper, spec, by_name, folder / "tables")
            continue
        chosen = [_concerned(by_name[name], spec, paper.report["labels"]) for name in spec.get("experiments") or []]
        if not chosen or any(one.trials for one in chosen):
            paths += _write_figure(paper.report, spec, chosen, folder)
    paths += write_published(paper, results, folder / "tables")
    return [*paths, *write_verdicts(paper, by_name, folder / "tables")]


def _concerned(one: Results, spec: Mapping[str, Any], labels: Mapping[str, str]) -> Results:
    """The experiment as a figure sees it: not run, if none of its trials has the figure's metric and labels."""
    if "metric" not in spec:
        return one
    frame, _ = shown(frame_of([one], settings_of(spec)), labels, spec.get("show"))
    return one if (frame["metric"] == spec["metric"]).any() else replace(one, trials=())


def _write_table(paper: Paper, spec: Mapping[str, Any], results: Mapping[str, Results], folder: Path) -> list[Path]:
    """The table of `spec`, beside what the published file has of it."""
    chosen = [results[name] for name in spec.get("experiments") or []]
    published = (paper.published.get("tables") or {}).get(spec.get("published"), {})
    trials = [trial for one in chosen for trial in one.trials]
    told = {"panels": paper.report["panels"], **spec}
    return write_table(trials, paper.report["labels"], told, published, folder, notes_on(chosen))


def _write_figure(
    report: Mapping[str, Any], spec: Mapping[str, Any], chosen: Sequence[Results], folder: Path
) -> list[Path]:
    """The figure and, if it shows a metric against epsilon, its numbers as a table."""
    name, labels, titles = str(spec["name"]), report["labels"], titles_of(chosen, report["panels"])
    frame, absent = shown(frame_of(chosen, settings_of(spec)), labels, spec.get("show"))
    told = [str(spec.get("caption") or ""), *notes_on(chosen)]
    notes = as_text([*told, f"Methods not run: {'; '.join(absent)}" if absent else ""])
    figure, drawn = draw_figure(frame, labels, {"panels": titles, **spec}, notes)
    if drawn.empty:
        return []
    paths = save_figure(figure, drawn, folder / "figures", name)
    if spec.get("kind", "metric_by_epsilon") == "metric_by_epsilon":
        titled = frame.assign(dataset=frame["dataset"].replace(titles))
        paths += write_tables(titled, labels, [str(spec["metric"])], folder / "tables", name, notes)
    return paths
