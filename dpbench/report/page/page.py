"""The page: one HTML file with the figures, the tables and the trials behind them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pandas as pd

from dpbench.config import Paper
from dpbench.config.specs import Report, Spec
from dpbench.errors import UserError
from dpbench.files import Json, write_file
from dpbench.report.build import build_report
from dpbench.report.frames.ledgers import FirstLedger, LedgerOf, or_first
from dpbench.report.frames.results import Results
from dpbench.report.kinds import is_table
from dpbench.report.manifest import write_manifest
from dpbench.report.page.cautions import differences, failures, overspending, unfinished, unpaid
from dpbench.report.page.cells import Cell, Cells, cells_of
from dpbench.report.page.compressed import address, packed, packed_json
from dpbench.report.page.documents import Block, blocks
from dpbench.report.page.filters import Filters
from dpbench.report.page.ledgers import Ledgers
from dpbench.report.page.links import add_links, save_trials
from dpbench.report.page.parts import Part, read_part, save_part
from dpbench.report.page.templates import template
from dpbench.report.paper import build_paper

NAME = "report.html"
TRIALS = 10_000  # listed at most: of more, a sample of each cell
LARGEST_MB = 20.0  # of a page; larger ones are slow to open, and refused
CLAIMS = "statements"  # the table of a paper's claims
PUBLISHED = (CLAIMS, "protocol", "datasets", "runtimes")  # the tables on a paper, in their order
NO_LEDGERS: Mapping[str, FirstLedger] = MappingProxyType({})


@dataclass(frozen=True)
class Figure:
    """A figure of the page: its part, the table behind it, and what its chart needs besides the numbers."""

    name: str
    title: str
    part: Part
    table: Sequence[Block]
    chart: Json | None

    @property
    def csv(self) -> str:
        """The address that downloads its numbers; the chart reads them from there."""
        return address(packed(self.part.csv))


@dataclass(frozen=True)
class Table:
    """A table of the page that has no figure."""

    name: str
    title: str
    table: Sequence[Block]


def write_paper_page(
    paper: Paper,
    results: Sequence[Results],
    folder: Path,
    ledger_of: LedgerOf,
    kept: Mapping[str, FirstLedger] = NO_LEDGERS,
) -> Path:
    """Write the page of a paper into `folder`, from what `build_paper` writes; its path.

    `ledger_of` gives the ledgers of the available releases, `kept` those of exports by the releases for which they are
    shown. Raises `UserError` if there are no trials, or the page would be too large.
    """
    _check_any(results, f"dpbench run experiment={(paper.experiments or ('...',))[0]}", paper.title)
    with TemporaryDirectory() as made:
        build_paper(paper, results, Path(made), save_part, save_trials)
        write_manifest(paper, results, Path(made))
        ledgers = Ledgers(ledger_of, kept)
        return _write(paper.title, f"paper={paper.name}", paper.report, results, Path(made), folder, ledgers)


def write_experiment_page(
    results: Results, folder: Path, ledger_of: LedgerOf, kept: Mapping[str, FirstLedger] = NO_LEDGERS
) -> Path:
    """Write the page of an experiment into `folder`, from what `build_report` writes; its path.

    `ledger_of` and `kept` as for a paper. Raises `UserError` if there are no trials, or the page would be too large.
    """
    one = results.experiment
    _check_any([results], f"dpbench run experiment={one.name}", one.name)
    with TemporaryDirectory() as made:
        build_report(results, Path(made), save_part, or_first(ledger_of, kept), keep=save_trials)
        title, settings = one.title or one.name, f"experiment={one.name}"
        return _write(title, settings, one.report, [results], Path(made), folder, Ledgers(ledger_of, kept))


def _check_any(results: Sequence[Results], run: str, name: str) -> None:
    if not any(one.trials for one in results):
        raise UserError(f"no trial of {name} is stored, so that there is nothing to report; run it first: {run}")


def _write(
    title: str,
    settings: str,
    report: Report,
    results: Sequence[Results],
    made: Path,
    folder: Path,
    ledgers: Ledgers,
) -> Path:
    filters = Filters.of(results, report["panels"], report["labels"])
    cells = cells_of(results, filters, ledgers, TRIALS)
    documents = {path.stem: blocks(path.read_text()) for path in sorted((made / "tables").glob("*.md"))}
    experiments = {str(spec["name"]): spec.get("experiments") or [] for spec in report["figures"]}
    for name, found in documents.items():
        add_links(found, made / "tables", name, cells, experiments.get(name, []))
    figures = list(_figures(report["figures"], made, filters, documents))
    tables = list(_tables(report["figures"], documents))
    drawn = {one.name for one in figures} | {one.name for one in tables}
    path = made / "manifest.json"
    manifest = json.loads(path.read_text())["experiments"] if path.exists() else {}
    text = template("page.html.j2").render(
        title=title,
        settings=settings,
        library=packed(_bundle()),
        charts=packed_json({one.name: one.chart for one in figures if one.chart is not None}),
        trials=address(packed_json(cells.data)),
        filters=filters,
        figures=figures,
        tables=tables,
        documents={name: documents[name] for name in PUBLISHED if name in documents},
        others={name: found for name, found in documents.items() if name not in (*drawn, *PUBLISHED)},
        not_drawn=[str(spec["name"]) for spec in report["figures"] if str(spec["name"]) not in drawn],
        claims=_claims(made / "tables" / f"{CLAIMS}.csv"),
        results=[one for one in results if one.trials],
        not_run=[one.experiment.name for one in results if not one.trials],
        manifest=manifest,
        differs=differences(manifest),
        cells=cells,
        by_experiment=_by_experiment(cells),
        totals=_totals(results),
        failures=failures(cells.cells),
        overspending=overspending(cells.cells),
        unfinished=unfinished(cells.cells),
        unpaid=unpaid(cells.cells),
    )
    text = text.lstrip()
    size = len(text.encode()) / 1e6
    if size > LARGEST_MB:
        raise UserError(
            f"the report of {cells.trials:,} trials in {len(cells.cells):,} cells would have {size:.0f} MB, more than "
            f"{LARGEST_MB:.0f}, and freeze a browser; make one for each experiment (dpbench report experiment=...)"
        )
    return write_file(folder / NAME, text)


def _figures(
    specs: Sequence[Spec], made: Path, filters: Filters, documents: Mapping[str, Sequence[Block]]
) -> Iterator[Figure]:
    for spec in specs:
        name = str(spec["name"])
        path = made / "figures" / f"{name}.json"
        if not is_table(spec) and path.exists():
            part = read_part(path)
            yield Figure(name, _title(spec), part, documents.get(name, []), _chart(part, filters))


def _tables(specs: Sequence[Spec], documents: Mapping[str, Sequence[Block]]) -> Iterator[Table]:
    for spec in specs:
        name = str(spec["name"])
        if is_table(spec) and name in documents:
            yield Table(name, _title(spec), documents[name])


def _title(spec: Spec) -> str:
    return str(spec.get("title") or spec.get("metric") or spec["name"])


def _chart(part: Part, filters: Filters) -> Json | None:
    """The chart with the methods of its series; None if there is none."""
    if part.chart is None:
        return None
    return {**part.chart, "methods": {series: filters.method(series) for series in part.chart["series"]}}


def _claims(path: Path) -> dict[str, int]:
    """How often each verdict was given on the paper's claims."""
    return dict(Counter(pd.read_csv(path)["verdict"])) if path.exists() else {}


def _by_experiment(cells: Cells) -> dict[str, list[tuple[int, Cell]]]:
    found: dict[str, list[tuple[int, Cell]]] = {}
    for place, cell in enumerate(cells.cells):
        found.setdefault(cell.experiment, []).append((place, cell))
    return found


def _totals(results: Sequence[Results]) -> Json:
    """Counts over all experiments, a trial of two of them once."""
    trials = {trial.id: trial for one in results for trial in one.trials}.values()
    releases = {trial.release_id: trial for trial in trials}.values()
    made = [trial.release_provenance or trial.provenance for trial in releases]
    return {
        "trials": len(trials),
        "releases": len(releases),
        "lost": sum(trial.status != "done" for trial in trials),
        "hours": sum(trial.runtime.release_seconds or 0.0 for trial in releases) / 3600,
        "commits": sorted({str(record["commit"] or "no checkout")[:12] for record in made}),
        "dirty": any(record["dirty"] for record in made),
        "processors": sorted({str(record["cpu"]) for record in made}),
    }


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
