"""`dpbench release`: one private release of a table of one's own, in a folder with the statement on it."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dpbench.commands.evaluate import measured_in
from dpbench.commands.run_settings import guard
from dpbench.config import Part, choices, composed, every_part
from dpbench.config.catalogue import headline
from dpbench.config.experiment import Single, single
from dpbench.data.coding import Coded
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Clique, Domain
from dpbench.data.encode import Design
from dpbench.data.load import cautions, left_out, load_counted, many_pairs
from dpbench.data.public import public_part, shared_rows
from dpbench.data.simulate import Simulation
from dpbench.data.synthetic_csv import typed_rows
from dpbench.data.table import Table
from dpbench.errors import ContractError, NoEstimateError, UnconvergedError, UserError
from dpbench.files import Json, write_file
from dpbench.grid.feasibility import ANSWERS, check_counts, declared
from dpbench.grid.odometer import Odometer, Sum, TableKey
from dpbench.grid.plan import inputs_of
from dpbench.grid.provenance import provenance
from dpbench.grid.records import PartKey, spent_to_dict
from dpbench.grid.single import Watched, check_reads, design_of, fit_release, make_release, private_part
from dpbench.grid.spending import OverspentError
from dpbench.mechanisms.fitting import check_answers
from dpbench.mechanisms.workload import cliques_of
from dpbench.metrics.quality import quality
from dpbench.models.fitted import Fitted
from dpbench.privacy.accounting import Spent
from dpbench.releases import Release, SyntheticRows
from dpbench.releases.answer_table import answer_table
from dpbench.releases.release_file import release_bytes
from dpbench.releases.release_type import counts_of
from dpbench.report.page.quality_page import write_quality
from dpbench.report.statement import ENTRY_HEADER, Facts, coefficient_table, entry_row, statement, statement_page
from dpbench.report.tables.text_table import write_text_table
from dpbench.report.text import aligned, csv_text, number, plain_cells

FAILED = (ContractError, NoEstimateError, UnconvergedError, OverspentError)


WHAT = {
    "synthetic.csv": "synthetic rows, with the columns and types of the table, drawn from what was released",
    "coefficients.csv": "estimates of the models, also as .md and .tex",
    "answers.csv": "answers to queries: how many rows have these values of these attributes, as it was released",
    "quality.html": "scores of the synthetic rows, also as .csv: not protected, and not for publication",
    "release.npz": "all that was released, for further models (`dpbench.read_release`, in Python)",
    "ledger.json": "the ledger of the noise, and the settings",
    "statement.md": "this statement, also as .html",
}


@dataclass(frozen=True)
class Made:
    """A release as it was asked for, what it cost, all releases of its table, and what to say of rows left out.

    `id`: by which the odometer knows it. `real`: the rows that it was made of.
    """

    id: str
    asked: Single
    release: Release
    cost: Spent
    table: TableKey
    odometer: Sum
    left_out: str
    real: Table


def release(arguments: argparse.Namespace) -> int:
    """Make one release and write its folder, or list the releases of the table.

    1 if a model has no estimate, or the scores that were asked for cannot be computed.
    """
    if arguments.history:
        return _history(arguments)
    asked = single(arguments.overrides, arguments.config_dir)
    if arguments.quality and "rows" not in asked.mechanism.offers:
        raise UserError(f"--quality scores synthetic rows, and {asked.mechanism.name} releases none")
    guard([asked.dataset])
    folder = _new_folder(arguments.out)
    try:
        made = _made(asked, arguments.limit, arguments.config_dir)
    except BaseException:
        folder.rmdir()  # it is empty
        raise
    fits, failures = _fits(asked, made.release, arguments.config_dir)
    if failures:
        failures.append(f"{folder / 'release.npz'} has what was released: fit other models to it in Python, at no cost")
    paths = _write(folder, made, fits, drawn=arguments.numbers == "drawn", config_dir=arguments.config_dir)
    said = _write_statement(folder, made, paths, arguments.config_dir)
    if arguments.quality:  # after all that was paid for is written
        try:
            paths += _scores(folder, made)
            said = _write_statement(folder, made, paths, arguments.config_dir)
        except UserError as error:
            failures.append(f"--quality: {error}")
    for path in (*paths, *said):
        print(path)
    spent, total = number(made.cost.epsilon), made.odometer.total
    if made.left_out:
        print(made.left_out)
    print(f"epsilon = {spent} at delta = {number(made.cost.delta)} spent")
    count, label = len(made.odometer.entries), made.table.label
    releases = f"all {count} releases of {label} together" if count > 1 else f"the only release of {label}"
    print(f"{releases}: epsilon = {number(total.epsilon)} at delta = {number(total.delta)}")
    for failure in failures:
        print(f"dpbench: {failure}", file=sys.stderr)
    return 1 if failures else 0


# --- before the noise ------------------------------------------------------------------------------------------------


def _new_folder(given: Path | None) -> Path:
    """The folder of the release, made now: what is paid for must have a place, and replaces nothing."""
    if given is None:
        raise UserError("say where the release is to go: --out FOLDER")
    if given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise UserError(f"--out {given}: there is something already; a release is not made twice, so name a new folder")
    try:
        given.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {given}: {error.strerror or error}; name a folder that can be made") from error
    if not os.access(given, os.W_OK):
        raise UserError(f"--out {given}: it cannot be written to")
    return given


def checked(asked: Single, config_dir: Path | None) -> tuple[Part, Design | None]:
    """The mechanism with its parameters, and how rows become features if it regresses: what is known before any row.

    Raises `UserError` for a mechanism that is not private under the budget, for models that do not fit it, or if
    nothing would be written of the release.
    """
    budget, domain = asked.budget, asked.dataset.domain
    part = private_part(asked.mechanism, budget.relation, budget.epsilon, asked.parameters, config_dir)
    if budget.relation != "replace":
        check_counts(part, *declared(part))
    for model in asked.models:
        check_reads(model, part.offers, config_dir)
        if model.target == ANSWERS:
            check_answers(model.name, domain.sizes, _queries(part, domain))
        else:
            design_of(model, domain, asked.design)
    if not asked.models and "rows" not in part.offers:
        reading = [one.name for one in every_part("model", config_dir).values() if one.reads(part.offers) and one.needs]
        raise UserError(
            f"{part.name} releases {' and '.join(part.offers)}, and no rows: say what is to be estimated from it, with "
            f"dataset.target=... and a model, such as model={reading[0] if reading else '...'}"
        )
    return part, design_of(part, domain, asked.design) if part.takes("design") else None


def _queries(part: Part, domain: Domain) -> tuple[Clique, ...]:
    """The marginals that answer queries: the workload of the mechanism, or all of three attributes if it has none."""
    return cliques_of(domain, part.parameters.get("workload", min(3, len(domain.names))))


def _rows(dataset: Dataset) -> Coded:
    """The rows of a table. Raises `UserError` for a data set that draws its rows."""
    found = load_counted(dataset)
    if isinstance(found, Simulation):
        raise UserError(f"dataset={dataset.name} is simulated, so its rows are no one's data: use dpbench run")
    return found


def _public_rows(asked: Single, table: Table) -> tuple[Table | None, tuple[str, ...]]:
    """The rows of dataset.public_data, which need no privacy, and what is to be said of them."""
    if asked.dataset.public_data is None:
        return None, ()
    rows = public_part(table.domain, _rows(asked.dataset.public_data).table)
    return rows, shared_rows(table, rows, counted=asked.dataset.public)


# --- the release -----------------------------------------------------------------------------------------------------


def _made(asked: Single, limit: float | None, config_dir: Path | None) -> Made:
    """The release, entered in the odometer before its noise is drawn and again with its ledger.

    Raises `UserError`; after the first draw with the note that the release counts.
    """
    budget = asked.budget
    part, design = checked(asked, config_dir)
    coded, key, odometer = _rows(asked.dataset), TableKey.of(asked.dataset), Odometer()
    slow = many_pairs(asked.dataset.domain) if part.takes("workload") else []
    for line in (*slow, *cautions(coded.table, asked.dataset.target, [(budget.epsilon, budget.delta)])):
        print(f"dpbench: warning: {line}", file=sys.stderr)
    public, inputs = _public_rows(asked, coded.table) if part.takes("public") else (None, ())
    inputs += (*inputs_of(asked.dataset, asked.delta_power, part), *left_out(coded))
    if design is not None:
        design = replace(design, domain=coded.table.domain)
    begun = odometer.begin(key, part.name, budget, limit)
    with counting(odometer, begun) as rng:
        found = make_release(part, coded.table, budget, rng, design, public, inputs)
        cost = found.spent
        total = odometer.end(key, begun, found.ledger, cost)
    return Made(begun, replace(asked, mechanism=part), found, cost, key, total, " ".join(left_out(coded)), coded.table)


@contextmanager
def counting(odometer: Odometer, begun: str) -> Iterator[np.random.Generator]:
    """The generator of the noise, from the operating system's entropy. What fails before it is used does not count.

    Raises `UserError` for what fails as a release may, with whether it counts.
    """
    rng = Watched(np.random.PCG64())
    try:
        yield rng
    except BaseException as error:
        drawn = rng.drawn
        if not drawn:
            odometer.take_back(begun)
        if isinstance(error, (UserError, *FAILED)):
            counts = "noise was drawn, so that the release counts for what was asked" if drawn else "nothing was drawn"
            raise UserError(f"{error} ({counts})") from error
        raise


def _fits(asked: Single, made: Release, config_dir: Path | None) -> tuple[list[Fitted], list[str]]:
    """The fits of the models that have coefficients, and why others are missing but for answers to queries."""
    fits, failures = list[Fitted](), list[str]()
    for model in asked.models:
        if model.target == ANSWERS:
            continue
        try:
            fitted = fit_release(model, made, asked.design, np.random.default_rng(), config_dir)
        except (UserError, *FAILED) as error:
            failures.append(f"{model.name}: {error}")
            continue
        if len(fitted.coefficients):
            fits.append(fitted)
        else:
            instead = ": fit it to synthetic.csv" if made.get(SyntheticRows) is not None else ""
            failures.append(f"{model.name} has no coefficients, so that nothing is written of it{instead}")
    return fits, failures


# --- what is written -------------------------------------------------------------------------------------------------


def _scores(folder: Path, made: Made) -> list[Path]:
    """Write the scores of the synthetic rows against the real ones, as `dpbench evaluate` does; their paths.

    They are exact, and so no part of what is private. Raises `UserError` for a table that is too small for them.
    """
    rows, dataset, label = made.release.get(SyntheticRows), made.asked.dataset, made.table.label
    assert rows is not None
    measured = measured_in(made.release.ledger.to_list(), made.real.domain)
    found = quality(made.real, rows.table, dataset.target, measured=measured)
    line = shlex.join(["dpbench", "release", f"mechanism={made.asked.mechanism.name}", "--quality"])
    return write_quality(found, f"synthetic.csv: quality against {label}", line, folder)


def _write(folder: Path, made: Made, fits: Sequence[Fitted], *, drawn: bool, config_dir: Path | None) -> list[Path]:
    paths, rows = list[Path](), made.release.get(SyntheticRows)
    if rows is not None:
        frame = typed_rows(rows.table, np.random.default_rng() if drawn else None)
        content = plain_cells(frame).to_csv(index=False, lineterminator="\n")
        paths.append(write_file(folder / "synthetic.csv", content))
    if fits:
        about = {one.model: _about("model", one.model, config_dir) for one in fits}
        title = f"Coefficients for {fits[0].design.target}, from one private release of {made.table.label}"
        read = made.asked.design["exact"] and made.asked.mechanism.takes("design")
        paths += write_text_table(coefficient_table(fits, about, exact=read), folder, "coefficients", title)
    if any(model.target == ANSWERS for model in made.asked.models):
        counts, _ = counts_of(made.release, _queries(made.asked.mechanism, made.release.domain))
        paths.append(write_file(folder / "answers.csv", csv_text(answer_table(made.release.domain, counts))))
    ledger = json.dumps(_ledger(made), indent=2, ensure_ascii=False) + "\n"
    released = write_file(folder / "release.npz", release_bytes(made.release))
    return [*paths, released, write_file(folder / "ledger.json", ledger)]


def _write_statement(folder: Path, made: Made, paths: Sequence[Path], config_dir: Path | None) -> list[Path]:
    """Write the statement on these files; its paths."""
    names = [*(path.name for path in paths), "statement.md"]
    text = statement(made.release, made.cost, _facts(made, [name for name in WHAT if name in names], config_dir))
    page = statement_page(text)
    return [write_file(folder / "statement.md", text), write_file(folder / "statement.html", page)]


def _facts(made: Made, files: Sequence[str], config_dir: Path | None) -> Facts:
    dataset, origin, mechanism = made.asked.dataset, provenance(), made.asked.mechanism.name
    commit = f", commit {origin['commit']}{' with edits' if origin['dirty'] else ''}" if origin["commit"] else ""
    return Facts(
        table=made.table.label,
        table_hash=made.table.content,
        declared=dataset.bounds == "declared" and dataset.unpaid is None,
        outside=dataset.outside,
        drop=dataset.drop,
        left_out=made.left_out,
        mechanism=mechanism,
        about=_about("mechanism", mechanism, config_dir),
        when=datetime.now(UTC).date().isoformat(),
        made_by=f"dpbench {origin['versions']['dpbench']}{commit}",
        files=[(name, WHAT[name]) for name in files],
        odometer=made.odometer,
        scores="quality.html" in files,
    )


def _about(group: str, name: str, config_dir: Path | None) -> str:
    return headline(choices(group, config_dir)[name].read_text(encoding="utf-8", errors="replace")).rstrip(".")


def _ledger(made: Made) -> Json:
    """As `dpbench export --release` writes it."""
    asked, total = made.asked, made.odometer.total
    mechanism = PartKey(asked.mechanism.name, asked.mechanism.target, asked.mechanism.parameters)
    models = [PartKey(one.name, one.target, one.parameters).to_dict() for one in asked.models]
    return {
        "release": made.id,
        "table": made.table.content,
        "budget": vars(asked.budget),
        "spent": spent_to_dict(made.cost),
        "ledger": made.release.ledger.to_list(),
        "all releases of the table": {"releases": len(made.odometer.entries), "spent": spent_to_dict(total)},
        "nonprivate inputs": list(made.release.nonprivate_inputs),
        "settings": {
            "mechanism": mechanism.to_dict(),
            "models": models,
            "design": dict(asked.design),
            "domain": made.release.domain.to_list(),
            "outside": asked.dataset.outside,
            "drop": list(asked.dataset.drop),
        },
        "provenance": provenance(),
    }


# --- the history -----------------------------------------------------------------------------------------------------


def _history(arguments: argparse.Namespace) -> int:
    """List the releases of a table, and what they spent together; with --limit set that first."""
    settings = [item for item in arguments.overrides if re.match(r"\+*dataset[.=]", item)]
    if not settings or len(settings) < len(arguments.overrides):
        raise UserError("--history takes the table alone: dpbench release --history dataset=csv dataset.path=my.csv")
    dataset = Dataset.of(composed(settings, arguments.config_dir)["dataset"])
    key, odometer = TableKey.of(dataset), Odometer()
    if arguments.limit is not None:
        odometer.set_limit(key, arguments.limit)
    found = odometer.of(key)
    print(f"{key.label}: {len(found.entries)} releases, in {odometer.path}")
    if found.entries:
        print(aligned(zip(ENTRY_HEADER, *map(entry_row, found.entries), strict=True)))
        print(f"together: epsilon = {number(found.total.epsilon)} at delta = {number(found.total.delta)}")
    print("no limit is set" if found.limit is None else f"limit: epsilon = {number(found.limit)}")
    return 0
