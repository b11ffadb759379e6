"""The report of a paper: figures over several experiments, and tables that compare published and reproduced results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from dpbench.config import Paper
from dpbench.config.specs import PublishedTable, Spec
from dpbench.report.build import draw_one, draw_table, made_figure, notes_below
from dpbench.report.claims.published import write_published
from dpbench.report.claims.verdicts import write_verdicts
from dpbench.report.figures.style import Save, save_figure
from dpbench.report.footnotes import as_text
from dpbench.report.frames.results import Results, frame_of, notes_on, titles_of
from dpbench.report.frames.series import ordered, shown
from dpbench.report.kinds import is_table
from dpbench.report.parallel import forked
from dpbench.report.tables.cells import write_tables
from dpbench.report.tables.trials import Keep


def build_paper(
    paper: Paper, results: Sequence[Results], folder: Path, save: Save = save_figure, keep: Keep | None = None
) -> list[Path]:
    """Write the paper's figures into `folder`/figures, with `save`, and its tables into `folder`/tables; the paths.
    `keep` writes which trials each number of a table comes from.

    `results` has every experiment of the paper. A figure is drawn from those of its experiments that have trials with
    its metric and labels, and names the others; it is left out if none has, except if it needs no experiment. The
    same trials give the same bytes.
    """
    for spec in paper.report["figures"]:
        ordered(paper.report["labels"], spec.get("show"))  # an unknown label is refused before anything is written
    by_name = {one.experiment.name: one for one in results}
    named = [one for one in results if one.experiment.name in paper.experiments]
    tables = folder / "tables"
    calls = [partial(write_verdicts, paper, by_name, tables), partial(write_published, paper, named, tables)]
    calls += [partial(_draw_spec, paper, spec, by_name, folder, save, keep) for spec in paper.report["figures"]]
    verdicts, published, *others = forked(calls)  # the longest first
    return [path for paths in (*others, published, verdicts) for path in paths]


def figure_of(paper: Paper, spec: Spec, results: Sequence[Results]) -> tuple[Figure, pd.DataFrame]:
    """A figure of the paper (not a table), and what it draws: no row if none of its experiments has trials for it."""
    labels, chosen, spec = _asked(paper, spec, {one.experiment.name: one for one in results})
    titled: Spec = {"panels": titles_of(chosen, paper.report["panels"]), **spec}
    return made_figure(chosen, labels, titled, notes_on(chosen))


def _asked(paper: Paper, spec: Spec, by_name: Mapping[str, Results]) -> tuple[dict[str, str], list[Results], Spec]:
    """The labels of a figure, its experiments as it sees them, and its spec with what is published of it."""
    labels = ordered(paper.report["labels"], spec.get("show"))
    chosen = [_concerned(by_name[name], spec, labels) for name in spec.get("experiments") or []]
    return labels, chosen, {**spec, "published": _published(paper, spec)}


def _published(paper: Paper, spec: Spec) -> PublishedTable:
    return (paper.published.get("tables") or {}).get(str(spec.get("published")), {})


def _draw_spec(
    paper: Paper,
    spec: Spec,
    by_name: Mapping[str, Results],
    folder: Path,
    save: Save,
    keep: Keep | None,
) -> list[Path]:
    """One figure or table of the paper."""
    if is_table(spec):
        labels = ordered(paper.report["labels"], spec.get("show"))
        chosen = [by_name[name] for name in spec.get("experiments") or []]
        titled: Spec = {"panels": paper.report["panels"], **spec}
        return draw_table(chosen, labels, titled, folder, notes_on(chosen), _published(paper, spec), keep)
    labels, chosen, spec = _asked(paper, spec, by_name)
    if chosen and not any(one.trials for one in chosen):
        return []
    return _draw(paper, labels, spec, chosen, folder, save, keep)


def _concerned(one: Results, spec: Spec, labels: Mapping[str, str]) -> Results:
    """The experiment as a figure sees it: not run, if none of its trials has the figure's metric and labels."""
    if "metric" not in spec or not one.trials:
        return one
    settings, _ = shown(one.rows.settings, labels, spec.get("show"))
    found = one.rows.scores.loc[one.rows.scores["metric"] == spec["metric"], "setting"]
    return one if found.isin(settings.index).any() else replace(one, trials=())


def _draw(
    paper: Paper,
    labels: Mapping[str, str],
    spec: Spec,
    chosen: Sequence[Results],
    folder: Path,
    save: Save,
    keep: Keep | None,
) -> list[Path]:
    """A figure and, if it shows a metric against epsilon, its numbers as a table."""
    titles, notes = titles_of(chosen, paper.report["panels"]), notes_on(chosen)
    paths = draw_one(chosen, labels, {"panels": titles, **spec}, folder, notes, save)
    if paths and spec.get("kind", "metric_by_epsilon") == "metric_by_epsilon":
        frame, absent = shown(frame_of(chosen, spec), labels, spec.get("show"))
        titled = frame.assign(dataset=frame["dataset"].replace(titles))
        below = notes_below(chosen, labels, {**spec, "panels": titles}, notes, absent)
        text = as_text([str(spec.get("caption") or ""), *below])
        paths += write_tables(titled, labels, [str(spec["metric"])], folder / "tables", str(spec["name"]), text, keep)
    return paths
