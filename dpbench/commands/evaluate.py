"""`dpbench evaluate`: the quality of a synthetic table, as a CSV and one HTML file."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpbench.commands.run_settings import guard
from dpbench.config import composed
from dpbench.data.coding import code_frame
from dpbench.data.csv_format import CsvFormat
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Clique, Domain
from dpbench.data.load import load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table
from dpbench.data.tabular import read_csv
from dpbench.errors import UserError
from dpbench.metrics.quality import UNPROTECTED, Quality, quality
from dpbench.report.page.quality_page import write_quality
from dpbench.report.text import aligned, from_plain

FOLDER = "quality"  # in the results folder
LABEL = "marginal "  # begins the label of a measured marginal in a ledger
INTERVALS = re.compile(r" in \d+$")  # ends the name of a number there that was not in its bins


def evaluate(arguments: argparse.Namespace) -> int:
    """Score the rows of a CSV file against those of a data set, print the scores and write them."""
    path, overrides = Path(arguments.synthetic), arguments.overrides
    if not any(item.startswith("dataset=") for item in overrides):
        raise UserError(
            "name the data set whose rows are the real ones, after the file: dpbench evaluate synthetic.csv "
            "dataset=adult, or dataset=csv with dataset.path and dataset.domain"
        )
    config = composed(overrides, arguments.config_dir)
    dataset = Dataset.of(config["dataset"])
    guard([dataset])
    real = load_dataset(dataset)
    if isinstance(real, Simulation):
        raise UserError(f"dataset={dataset.name} draws its rows anew each time: there are no real rows to compare with")
    synthetic = _synthetic(path, real.domain, dataset)
    measured = _measured(Path(arguments.measured), real.domain) if arguments.measured else []
    found = quality(real, synthetic, dataset.target, measured=measured)
    print(f"{path} against {dataset.name}: {found.rows:,} synthetic rows, {found.real_rows:,} real ones\n")
    print(_text(found))
    for line in (*found.notes, UNPROTECTED):
        print(f"\n{line}")
    line = shlex.join(["dpbench", "evaluate", path.name, f"dataset={dataset.name}"])
    folder = Path(config["results"]) / FOLDER / path.name.split(".")[0]
    for written in write_quality(found, f"{path.name}: quality against {dataset.name}", line, folder):
        print(written)
    return 0


def _synthetic(path: Path, domain: Domain, dataset: Dataset) -> Table:
    """The synthetic rows. Raises `UserError` for a file that cannot be read or does not fit the domain."""
    if not path.is_file():
        raise UserError(f"{path}: {'it is a folder, not a file' if path.is_dir() else 'no such file'}")
    frame = read_csv(path, CsvFormat()).map(from_plain).rename(columns=from_plain)
    return code_frame(frame, domain, dataset.outside, str(path), [name for name in dataset.drop if name in frame])


def _measured(path: Path, domain: Domain) -> list[Clique]:
    """The marginals in the ledger of an exported release (`dpbench export --release`).

    Raises `UserError` for a file that is none, or whose ledger has no marginal of these attributes.
    """
    try:
        found = measured_in(json.loads(path.read_text(encoding="utf-8"))["ledger"], domain)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"--measured {path} cannot be read as the JSON of a release, which dpbench export --release ID writes"
        ) from error
    if not found:
        raise UserError(f"--measured {path}: its ledger has no marginal of the attributes {', '.join(domain.names)}")
    return found


def measured_in(events: Iterable[Mapping[str, object]], domain: Domain) -> list[Clique]:
    """The marginals of these attributes that a ledger, as plain data, has measured.

    A number that was measured in 32 intervals in place of its bins has a label such as "age in 32".
    """
    labels = [str(event.get("label", "")) for event in events]
    measured = [label.removeprefix(LABEL).split(",") for label in labels if label.startswith(LABEL)]
    cliques = [tuple(name if name in domain.names else INTERVALS.sub("", name) for name in one) for one in measured]
    return [clique for clique in cliques if set(clique) <= set(domain.names)]


def _text(found: Quality) -> str:
    rows = [[one.score, f"{one.value:.4f}", f"{one.bootstrap:.4f}"] for one in found.scores if not one.of]
    return aligned(zip(["score", "synthetic", "bootstrap"], *rows, strict=True))
