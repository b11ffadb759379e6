"""The report of a paper: figures over several experiments, tables that compare published and reproduced results.

Its manifest says where the trials of each experiment come from, and how to reproduce them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dpbench.config import Paper
from dpbench.config.specs import PublishedTable, Spec
from dpbench.files import Json, write_file
from dpbench.grid.records import Trial
from dpbench.report.build import draw_one, draw_table, made_figure, notes_below
from dpbench.report.claims.published import EQUAL, protocol_table, write_published
from dpbench.report.claims.statements import NOT_RUN
from dpbench.report.claims.verdicts import write_verdicts
from dpbench.report.export_file import Exported
from dpbench.report.figures.lines import statistic_of
from dpbench.report.footnotes import as_text
from dpbench.report.frames.results import Results, frame_of, notes_on, several_versions, titles_of
from dpbench.report.frames.series import of_calibrations, ordered, shown
from dpbench.report.kinds import is_table
from dpbench.report.parallel import started
from dpbench.report.picture.picture import Picture
from dpbench.report.picture.save import Save, save_figure
from dpbench.report.tables.cells import write_tables
from dpbench.report.tables.runs import Keep


def build_paper(
    paper: Paper, results: Sequence[Results], folder: Path, save: Save = save_figure, keep: Keep | None = None
) -> list[Path]:
    """Write the paper's figures into `folder`/figures, with `save`, and its tables into `folder`/tables; the paths.
    `keep` writes which trials each number of a table comes from.

    `results` has every experiment of the paper. A figure is drawn from those of its experiments that have trials with
    its metric and labels, and names the others; it is left out if none has, except if it needs no experiment. The
    same trials give the same bytes.
    """
    return start_paper(paper, results, folder, save, keep)()


def start_paper(
    paper: Paper, results: Sequence[Results], folder: Path, save: Save = save_figure, keep: Keep | None = None
) -> Callable[[], list[Path]]:
    """Start what `build_paper` does; its paths, waited for when they are asked for."""
    for spec in paper.report["figures"]:
        ordered(paper.report["labels"], spec.get("show"))  # an unknown label is refused before anything is written
    by_name = {one.experiment.name: one for one in results}
    named = [one for one in results if one.experiment.name in paper.experiments]
    tables = folder / "tables"
    calls = [partial(write_verdicts, paper, by_name, tables), partial(write_published, paper, named, tables)]
    calls += [partial(_draw_spec, paper, spec, by_name, folder, save, keep) for spec in paper.report["figures"]]
    made = started(calls)  # the longest first

    def paths() -> list[Path]:
        verdicts, published, *others = made()
        return [path for paths in (*others, published, verdicts) for path in paths]

    return paths


def figure_of(paper: Paper, spec: Spec, results: Sequence[Results]) -> Picture:
    """A figure of the paper (not a table); it draws no row if none of its experiments has trials for it."""
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
    """A figure and, if it shows a metric against epsilon, its numbers as a table.

    The table has a CSV only where the figure's has not the same numbers.
    """
    titles, notes = titles_of(chosen, paper.report["panels"]), notes_on(chosen)
    paths = draw_one(chosen, labels, {"panels": titles, **spec}, folder, notes, save)
    if paths and spec.get("kind", "metric_by_epsilon") == "metric_by_epsilon":
        frame, absent = shown(frame_of(chosen, spec), labels, spec.get("show"))
        frame = of_calibrations(frame, spec.get("calibrations"))
        titled = frame.assign(dataset=frame["dataset"].replace(titles))
        below = notes_below(chosen, labels, {**spec, "panels": titles}, notes, absent)
        text = as_text([str(spec.get("caption") or ""), *below])
        metrics, tables, name = [str(spec["metric"])], folder / "tables", str(spec["name"])
        tidy = statistic_of(spec) == "median"
        paths += write_tables(titled, labels, metrics, tables, name, text, keep, tidy=tidy)
    return paths


def write_manifest(paper: Paper, results: Sequence[Results], folder: Path) -> Path:
    """Write `folder`/manifest.json: for each experiment with trials its command, the numbers of trials, and of releases
    and trials by commit, the notes on them, and the settings that differ from the published ones.
    """
    found = {one.experiment.name: _entry(paper, one) for one in results if one.trials}
    manifest = {"draw": f"dpbench figures paper={paper.name}", "experiments": found}
    return write_file(folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def _entry(paper: Paper, one: Results) -> Json:
    protocol = protocol_table(paper.published.get("protocol") or [], [one])
    differs = protocol[~protocol["verdict"].isin([EQUAL, NOT_RUN])]
    origins = list(_origins(one.trials))
    return {
        "run": f"dpbench run experiment={one.experiment.name}",
        "trials": len(one.trials),
        "releases by commit": _counted({release: commit for release, commit, _ in origins}.values()),
        "trials by commit": _counted(commit for *_, commit in origins),
        "notes": [*one.notes, *several_versions([one], one.experiment.report["labels"], {})],
        "differs": [f"{row.fact}: {row.ours}, paper {row.paper}" for row in differs.itertuples()],
    }


def _origins(trials: Sequence[Trial]) -> Iterator[tuple[str, str, str]]:
    """The release of each trial, and the commits of both; trials of an export are not built for it."""
    if isinstance(trials, Exported):
        for cell, places in trials.parts:
            made, releases = cell.shared["provenance"], cell.release_ids
            commit, of_release = str(made["commit"]), str((cell.shared["release_provenance"] or made)["commit"])
            yield from ((releases[place], of_release, commit) for place in places)
        return
    for trial in trials:
        of_release = str((trial.release_provenance or trial.provenance)["commit"])
        yield trial.release_id, of_release, str(trial.provenance["commit"])


def _counted(commits: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(commits).items()))
