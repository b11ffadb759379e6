"""The report of an experiment, drawn from its stored trials: figures, tables, how it was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from dpbench.config.reports import kind_of
from dpbench.config.specs import PublishedTable, Spec
from dpbench.errors import UserError
from dpbench.grid.audits import read_audits
from dpbench.grid.records import Trial
from dpbench.report.footnotes import as_text
from dpbench.report.frames.ledgers import LedgerOf, no_ledgers
from dpbench.report.frames.results import Results, choice_of_setting, frame_of, several_versions
from dpbench.report.frames.series import of_calibrations, ordered, shown
from dpbench.report.kinds import draw_figure, is_table, make_table
from dpbench.report.missing import not_run
from dpbench.report.picture.picture import Picture
from dpbench.report.picture.save import Save, save_figure
from dpbench.report.tables.cells import write_tables
from dpbench.report.tables.runs import Keep, write_runs
from dpbench.report.tables.text_table import write_text_table


def build_report(
    results: Results,
    folder: Path,
    save: Save = save_figure,
    ledger_of: LedgerOf = no_ledgers,
    others: Iterable[Trial] = (),
    keep: Keep | None = None,
) -> list[Path]:
    """Write `folder`/figures, with `save`, and `folder`/tables; the paths written.

    The experiment's report has `labels` ("mechanism/model" -> label), `metrics` (those with a table; all there are, if
    left out) and `figures` (specs of figures and tables: with a table there is none of `metrics`). A figure that shows
    nothing is not written. The same trials give the same bytes, in whatever order they come. `others`: trials of other
    runs of that name, for the total privacy cost. `keep` writes which trials each number of a table comes from.

    Raises `UserError` if there are no trials or the folder cannot be written to.
    """
    if not results.trials:
        raise UserError(
            f"no stored trials to draw {folder} from; run the experiment first (`dpbench run experiment=...`)"
        )
    report, name, notes = results.experiment.report, results.experiment.name, list(results.notes)
    paths = []
    for spec in report["figures"]:
        draw = partial(draw_table, keep=keep) if is_table(spec) else partial(draw_one, save=save)
        paths += draw([results], report["labels"], spec, folder, notes)
    if not any(map(is_table, report["figures"])):
        frame = frame_of([results], {})
        metrics = report["metrics"] or sorted(frame["metric"].unique())
        below = as_text(notes_below([results], report["labels"], {}, notes))
        paths += write_tables(frame, report["labels"], metrics, folder / "tables", name, below, keep)
    audits = read_audits(results.experiment.results)
    return [*paths, write_runs(results.trials, folder / "tables", name, audits, ledger_of, others)]


def draw_one(
    chosen: Sequence[Results],
    labels: Mapping[str, str],
    spec: Spec,
    folder: Path,
    notes: Sequence[str],
    save: Save = save_figure,
) -> list[Path]:
    """Draw the figure of `spec` into `folder`/figures, and its numbers as a table if it is a metric against epsilon.

    Nothing is written for an empty figure: it must not replace one with data.
    """
    picture = made_figure(chosen, labels, spec, notes)
    return save(picture, folder / "figures", str(spec["name"])) if len(picture.drawn) else []


def made_figure(chosen: Sequence[Results], labels: Mapping[str, str], spec: Spec, notes: Sequence[str]) -> Picture:
    """The figure of `spec`."""
    labels = ordered(labels, spec.get("show"))
    frame, absent = shown(frame_of(chosen, spec), labels, spec.get("show"))
    frame = of_calibrations(frame, spec.get("calibrations"))
    footnote = as_text([str(spec.get("caption") or ""), *notes_below(chosen, labels, spec, notes, absent)])
    return draw_figure(frame, labels, spec, footnote)


def draw_table(
    chosen: Sequence[Results],
    labels: Mapping[str, str],
    spec: Spec,
    folder: Path,
    notes: Sequence[str],
    published: PublishedTable | None = None,
    keep: Keep | None = None,
) -> list[Path]:
    """Write the table of `spec`, with the paper's numbers, into `folder`/tables; nothing if it is empty."""
    labels = ordered(labels, spec.get("show"))
    frame, absent = shown(frame_of(chosen, spec, kind_of(spec).reads), labels, spec.get("show"))
    if frame.empty:
        return []
    table = make_table(frame, labels, spec, published or {})
    if not table.rows:
        return []
    below = [str(spec.get("caption") or ""), *table.footnotes, *notes_below(chosen, labels, spec, notes, absent)]
    name, folder = str(spec["name"]), folder / "tables"
    paths = write_text_table(table._replace(footnotes=below), folder, name, str(spec["title"]))
    return paths + (keep([table.trials], folder, name) if keep else [])


def notes_below(
    chosen: Sequence[Results],
    labels: Mapping[str, str],
    spec: Spec,
    notes: Sequence[str],
    absent: Sequence[str] = (),
) -> list[str]:
    """The footnotes below a figure or table besides its own: how settings were chosen, the notes, the methods for which
    several versions of the code have results, and the methods not run; `absent` are those that it should show.
    """
    missing = [f"Methods not run: {'; '.join(absent)}"] if absent else []
    best = choice_of_setting(spec)
    return [*best, *notes, *several_versions(chosen, labels, spec), *missing, *not_run(chosen, labels, spec)]
