"""The page: one HTML file with the figures, the tables, the trials behind them, and links from numbers to these."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from dpbench.config import Paper, choices
from dpbench.config.specs import Report, Spec
from dpbench.errors import UserError
from dpbench.files import Json, write_file
from dpbench.report.build import build_report
from dpbench.report.frames.ledgers import FirstLedger, LedgerOf, or_first
from dpbench.report.frames.results import Results
from dpbench.report.kinds import is_table
from dpbench.report.page.cautions import differences, failures, overspending, unfinished, unpaid
from dpbench.report.page.compressed import address, packed, packed_json, template
from dpbench.report.page.filters import Filters, Tags
from dpbench.report.page.shown_ledgers import Ledgers
from dpbench.report.page.text_blocks import Block, Links, blocks
from dpbench.report.page.trial_cells import Cell, Cells, cells_of
from dpbench.report.page.vega import vega
from dpbench.report.paper import build_paper, write_manifest
from dpbench.report.picture.canvas import style
from dpbench.report.picture.looks import outline
from dpbench.report.picture.picture import Picture, title_of
from dpbench.report.picture.render_matplotlib import rendered
from dpbench.report.picture.render_vega import chart_of
from dpbench.report.tables.runs import Trials
from dpbench.report.text import csv_text

WIDTH, COLOURS = 1000, 64  # of a picture: pixels, and colours, which make it sharper and smaller than a lossy one
EFFORT = 60  # of WebP to make it small
NAME = "report.html"
TRIALS = 10_000  # listed at most: of more, a sample of each cell
LARGEST_MB = 20.0  # of a page; larger ones are slow to open, and refused
CLAIMS = "statements"  # the table of a paper's claims
PUBLISHED = (CLAIMS, "protocol", "datasets", "runtimes")  # the tables on a paper, in their order
NO_LEDGERS: Mapping[str, FirstLedger] = MappingProxyType({})
EPSILON = "data-e"


@dataclass(frozen=True)
class Part:
    """A picture (WebP in base64) with its `size` and panels' `titles`, the `chart`, the numbers, the footnotes."""

    picture: str
    size: tuple[int, int]
    titles: list[str]
    axes: list[str]
    footnotes: str
    csv: str
    legend: list[tuple[str, Json]]
    chart: Json | None


def save_part(picture: Picture, folder: Path, name: str) -> list[Path]:
    """Write `name`.json into `folder`; its path."""
    figure, panels = rendered(picture), picture.panels
    with style():
        dpi = WIDTH / figure.get_figwidth()
        image = _picture(figure, dpi)
    width, height = (round(dpi * inches) for inches in figure.get_size_inches())
    part = Part(
        base64.b64encode(image).decode(),
        (width, height),
        [panel.title for panel in panels if len(panels) > 1],
        [" ".join(label.split()) for panel in panels[:1] for label in (panel.x.label, panel.y.label) if label],
        " ".join(picture.footnote.split()),
        csv_text(picture.drawn),
        [(name, {**asdict(look), "marker": outline(look.marker)}) for name, look in picture.legend.items()],
        chart_of(picture),
    )
    return [write_file(folder / f"{name}.json", json.dumps(asdict(part)))]


def _picture(figure: Figure, dpi: float) -> bytes:
    drawn, file = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.convert("RGB").save(file, format="webp", lossless=True, quality=EFFORT, method=6)
    return file.getvalue()


def read_part(path: Path) -> Part:
    """What `save_part` wrote."""
    return Part(**json.loads(path.read_text()))


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the page: its part, the table behind it, and its chart."""

    name: str
    title: str
    part: Part
    table: Sequence[Block]
    chart: Json | None

    @property
    def csv(self) -> str:
        """The address that downloads its numbers."""
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
    shipped = one.name in choices("experiment")
    _check_any([results], f"dpbench run {f'experiment={one.name}' if shipped else 'with the same settings'}", one.name)
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
        library=vega(),
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
) -> Iterator[DrawnFigure]:
    for spec in specs:
        name = str(spec["name"])
        path = made / "figures" / f"{name}.json"
        if not is_table(spec) and path.exists():
            part = read_part(path)
            yield DrawnFigure(name, title_of(spec), part, documents.get(name, []), _chart(part, filters))


def _tables(specs: Sequence[Spec], documents: Mapping[str, Sequence[Block]]) -> Iterator[Table]:
    for spec in specs:
        name = str(spec["name"])
        if is_table(spec) and name in documents:
            yield Table(name, title_of(spec), documents[name])


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


def save_trials(tables: Sequence[Trials], folder: Path, name: str) -> list[Path]:
    """Write the trials behind the numbers of some tables into `folder`/`name`.trials.json; its path.

    Trials that several numbers share are written once.
    """
    path = folder / f"{name}.trials.json"
    saved = []
    for table in tables:
        shared: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        for place, trials in table.items():
            shared.setdefault(tuple(trials), []).append(place)
        saved.append([[places, trials] for trials, places in shared.items()])
    return [write_file(path, json.dumps(saved))]


def add_links(found: Iterable[Block], folder: Path, name: str, cells: Cells, experiments: Collection[str]) -> None:
    """Add the links that `save_trials` wrote to the tables of a document; none if it wrote nothing.

    `experiments` restricts the cells to theirs; all, if it is empty.
    """
    path = folder / f"{name}.trials.json"
    if not path.exists():
        return
    tables = (block for block in found if block.kind == "table")
    for block, saved in zip(tables, json.loads(path.read_text()), strict=True):
        block.links = _links(saved, cells, experiments)


def _links(saved: Iterable[tuple[list[list[int]], list[str]]], cells: Cells, experiments: Collection[str]) -> Links:
    led: dict[tuple[int, int], list[int]] = {}
    for places, trials in saved:
        if leads := _cover(trials, cells, experiments):
            led |= dict.fromkeys(((row, column) for row, column in places), leads)
    columns = _tags(((column, leads) for (_, column), leads in led.items()), cells)
    rows = {} if columns else _tags(((row, leads) for (row, _), leads in led.items()), cells)
    return Links(led, rows, columns)


def _cover(trials: Iterable[str], cells: Cells, experiments: Collection[str]) -> list[int]:
    """Few cells that hold all of the trials; none if some trial is in no cell of the experiments."""
    left = {
        trial: [
            place
            for place in cells.places.get(trial, [])
            if not experiments or cells.cells[place].experiment in experiments
        ]
        for trial in trials
    }
    if not all(left.values()):
        return []
    chosen = []
    while left:
        first = next(iter(left.values()))
        best = max(first, key=lambda place: sum(place in places for places in left.values()))
        chosen.append(best)
        left = {trial: places for trial, places in left.items() if best not in places}
    return chosen


def _tags(numbers: Iterable[tuple[int, Sequence[int]]], cells: Cells) -> Mapping[int, Tags]:
    """The epsilon of each row or column, from the links of its numbers; none where they do not share one.

    A non-private number has no epsilon: its row or column is shown at every one.
    """
    found: dict[int, list[set[str]]] = {}
    for line, leads in numbers:
        tags = [cells.cells[place].tags for place in leads]
        found.setdefault(line, []).append({one[EPSILON] for one in tags if EPSILON in one})
    return {
        line: {EPSILON: min(own[0])}
        for line, own in found.items()
        if len(own[0]) == 1 and all(e == own[0] for e in own)
    }
